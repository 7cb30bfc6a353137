"""Syntax trees of rules and queries over metadata, their tokens, and their text.

search CycleProvider c register c where c.serverHost contains 'uni-passau.de' and c.serverInformation.memory > 64
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import Enum
from itertools import accumulate

from tidings.core.source_text import NOWHERE, Span, Tokens
from tidings.errors import Place, SyntaxProblem
from tidings.values import Scalar
from tidings.values import show as show_value


class Operator(Enum):
    """The operator of a comparison."""

    EQUAL = "="
    UNEQUAL = "!="
    LESS = "<"
    AT_MOST = "<="
    GREATER = ">"
    AT_LEAST = ">="
    CONTAINS = "contains"


@dataclass(frozen=True, slots=True)
class Step:
    """`.memory`, or `.tags?` for any value of a set-valued property."""

    property: str
    any: bool = False
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Path:
    """A variable and the steps from it: `c`, `c.serverInformation.memory`."""

    variable: str
    steps: tuple[Step, ...] = ()
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Constant:
    """`64`, `'uni-passau.de'`, `true`; `<doc.rdf#host>` is a resource."""

    value: Scalar
    is_resource: bool = False
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Comparison:
    left: Path | Constant
    operator: Operator
    right: Path | Constant
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class And:
    """All parts hold."""

    parts: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class Or:
    """Some part holds."""

    parts: tuple[Condition, ...]


Condition = Comparison | And | Or


@dataclass(frozen=True, slots=True)
class Variable:
    """The declaration of a variable: `CycleProvider c`. `extension` is a class or the name of another rule."""

    extension: str
    variable: str
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule: it registers the resources of `register` for which other variables can be bound so that `where` holds."""

    searched: tuple[Variable, ...]
    register: str
    where: Condition | None = None


@dataclass(frozen=True, slots=True)
class Query:
    """A rule that is evaluated once, with selected paths, an order and a limit."""

    searched: tuple[Variable, ...]
    of: str
    where: Condition | None = None
    select: tuple[Path, ...] = ()
    order: tuple[tuple[Path, bool], ...] = ()
    """Paths to sort by, each with whether it is descending."""

    limit: int | None = None

    @property
    def rule(self) -> Rule:
        """The rule that finds the results."""
        return Rule(self.searched, self.of, self.where)


WORD = r"[^\W\d][\w-]*"
_TOKEN = re.compile(
    rf"({WORD}(?::{WORD})?"
    r"|[0-9]{4}-[0-9]{2}-[0-9]{2}(?:[Tt][0-9:.]+(?:[Zz]|[+-][0-9]{2}:?[0-9]{2})?)?"
    r"|-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?"
    r"""|'(?:[^']|'')*'|"[^"]+\""""
    r"""|(?<![\w"'?)])<[^<>\s=][^<>\s]*>"""  # `c.a<5)or(c.b>3` has no resource in it
    r"|!=|<=|>=|==|<>|=<|=>|&&|\|\||[=<>.,()?*+/%;!|&-])"
)
_SPACE = " \t\r\n"
_CURLY = "“”„‘’‚«»"


def tokenize(text: str) -> Tokens:
    """Split a text into tokens, or raise SyntaxProblem at the first character that is part of none."""
    parts = _TOKEN.split(text)
    if "".join(parts[::2]).strip(_SPACE):
        raise _unexpected_character(text, parts)
    words = parts[1::2]
    words += ("", "")
    return Tokens(text, words, list(accumulate(map(len, parts))))


def is_word(token: str) -> bool:
    """Whether a token is a name or a keyword, and not quoted."""
    first = token[:1]
    return first == "_" or (
        first.isalnum() and not first.isdecimal()
    )  # as the pattern has it: `²` begins a word


def _unexpected_character(text: str, parts: list[str]) -> SyntaxProblem:
    edges = [0, *accumulate(map(len, parts))]
    part = next(i for i in range(0, len(parts), 2) if parts[i].strip(_SPACE))
    start = edges[part] + len(parts[part]) - len(parts[part].lstrip(_SPACE))
    first = text[start]
    if first in "'\"":
        message = "this string is not closed" if first == "'" else "this name is not closed"
        place = Place.at(text, start, len(text.rstrip()))
        return SyntaxProblem(message, place=place, accepted=f"a closing {first}")
    hint = "write strings in straight quotes: '...'" if first in _CURLY else None
    shown = f"'{first}'" if first.isprintable() else f"U+{ord(first):04X}"
    return SyntaxProblem(f"unexpected character {shown}", place=Place.at(text, start), hint=hint)


# Formatting: equal trees have the same text, which parses to the same tree.


_RULE_KEYWORDS = ("search", "register", "where", "and", "or", "not", "contains", "true", "false")
_QUERY_KEYWORDS = ("select", "order", "by", "asc", "desc", "limit")
KEYWORDS = frozenset((*_RULE_KEYWORDS, *_QUERY_KEYWORDS))
_BARE = re.compile(rf"{WORD}(?::{WORD})?")
_URI = re.compile(r"[^<>\s=][^<>\s]*")


def format_rule(tree: Rule | Query) -> str:
    """Format a rule or a query; `parse_rule` or `parse_query` returns the same tree."""
    if isinstance(tree, Rule):
        return format_head(tree.searched, tree.register) + _show_where(tree.where)
    shown = format_head(tree.searched, tree.of) + _show_where(tree.where)
    if tree.select:
        shown += " select " + ", ".join(map(format_path, tree.select))
    if tree.order:
        ordered = (
            format_path(path) + (" desc" if is_descending else "") for path, is_descending in tree.order
        )
        shown += " order by " + ", ".join(ordered)
    return shown if tree.limit is None else f"{shown} limit {tree.limit}"


def format_head(searched: tuple[Variable, ...], register: str) -> str:
    listed = ", ".join(f"{format_name(each.extension)} {each.variable}" for each in searched)
    return f"search {listed} register {register}"


def _show_where(where: Condition | None) -> str:
    return "" if where is None else f" where {format_condition(where)}"


def format_condition(condition: Condition) -> str:
    if isinstance(condition, Comparison):
        return format_comparison(condition)
    word = " and " if isinstance(condition, And) else " or "
    return word.join(_show_part(part) for part in condition.parts)


def _show_part(part: Condition) -> str:
    shown = format_condition(part)
    return f"({shown})" if isinstance(part, And | Or) else shown


def format_comparison(comparison: Comparison) -> str:
    left, right = _show_operand(comparison.left), _show_operand(comparison.right)
    return f"{left} {comparison.operator.value} {right}"


def _show_operand(operand: Path | Constant) -> str:
    return format_path(operand) if isinstance(operand, Path) else format_constant(operand)


def format_path(path: Path) -> str:
    return path.variable + "".join(_show_step(step) for step in path.steps)


def _show_step(step: Step) -> str:
    name = step.property if _BARE.fullmatch(step.property) else f'"{step.property}"'
    return f".{name}?" if step.any else f".{name}"


def format_constant(constant: Constant) -> str:
    """Format a constant. A URI that cannot be in brackets is quoted, which means the same after validation."""
    if constant.is_resource and _URI.fullmatch(str(constant.value)):
        return f"<{constant.value}>"
    return show_value(constant.value)


def format_name(name: str) -> str:
    """Format the name of a class or a rule, in double quotes where necessary."""
    bare = _BARE.fullmatch(name) and name.lower() not in KEYWORDS
    return name if bare else f'"{name}"'


def format_property(property: str) -> str:
    """Format a compared property as in rules; a path has several steps."""
    return ".".join(map(format_name, property.split(".")))
