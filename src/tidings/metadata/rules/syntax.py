"""The words of a rule or a query over metadata: names, literals, operators, and where each stands."""

from __future__ import annotations

import re
from itertools import accumulate

from tidings.core.source_text import Tokens
from tidings.errors import Place, SyntaxProblem
from tidings.metadata.rules.tree import (
    And,
    Comparison,
    Condition,
    Constant,
    Or,
    Path,
    Query,
    Rule,
    Step,
    Variable,
)
from tidings.values import show as show_value

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
    """The tokens of a text, or a problem at the first character that is part of none."""
    parts = _TOKEN.split(text)
    if "".join(parts[::2]).strip(_SPACE):
        raise _stray(text, parts)
    words = parts[1::2]
    words += ("", "")
    return Tokens(text, words, list(accumulate(map(len, parts))))


def is_word(token: str) -> bool:
    """Whether a token is a name or a keyword, and not quoted."""
    first = token[:1]
    return first == "_" or (
        first.isalnum() and not first.isdecimal()
    )  # as the pattern has it: `²` begins a word


def _stray(text: str, parts: list[str]) -> SyntaxProblem:
    edges = [0, *accumulate(map(len, parts))]
    part = next(i for i in range(0, len(parts), 2) if parts[i].strip(_SPACE))
    start = edges[part] + len(parts[part]) - len(parts[part].lstrip(_SPACE))
    first = text[start]
    if first == "'":
        place = Place.at(text, start, len(text.rstrip()))
        return SyntaxProblem("this string is not closed", place=place, accepted="a closing '")
    if first == '"':
        place = Place.at(text, start, len(text.rstrip()))
        return SyntaxProblem("this name is not closed", place=place, accepted='a closing "')
    hint = "strings stand in straight quotes: '...'" if first in _CURLY else None
    shown = f"'{first}'" if first.isprintable() else f"U+{ord(first):04X}"
    return SyntaxProblem(f"the character {shown} means nothing here", place=Place.at(text, start), hint=hint)


# The way back: the text of a rule, a query or a condition, in the one form that equal trees are shown in.


_OF_RULES = ("search", "register", "where", "and", "or", "not", "contains", "true", "false")
_OF_QUERIES = ("select", "order", "by", "asc", "desc", "limit")
KEYWORDS = frozenset((*_OF_RULES, *_OF_QUERIES))
_BARE = re.compile(rf"{WORD}(?::{WORD})?")
_URI = re.compile(r"[^<>\s=][^<>\s]*")


def format_rule(tree: Rule | Query) -> str:
    """The text of a rule or a query; `parse`, or `parse_query`, reads the same tree from it."""
    if isinstance(tree, Rule):
        return format_head(tree.searched, tree.register) + _show_where(tree.where)
    shown = format_head(tree.searched, tree.of) + _show_where(tree.where)
    if tree.select:
        shown += " select " + ", ".join(map(format_path, tree.select))
    if tree.order:
        ordered = (format_path(path) + (" desc" if falls else "") for path, falls in tree.order)
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
    return f"{left} {comparison.compares.value} {right}"


def _show_operand(operand: Path | Constant) -> str:
    return format_path(operand) if isinstance(operand, Path) else format_constant(operand)


def format_path(path: Path) -> str:
    return path.variable + "".join(_show_step(step) for step in path.steps)


def _show_step(step: Step) -> str:
    name = step.property if _BARE.fullmatch(step.property) else f'"{step.property}"'
    return f".{name}?" if step.any else f".{name}"


def format_constant(constant: Constant) -> str:
    """A constant as it is written; a URI that no brackets can hold is quoted, which the checker takes for the same."""
    if constant.is_resource and _URI.fullmatch(str(constant.value)):
        return f"<{constant.value}>"
    return show_value(constant.value)


def format_name(name: str) -> str:
    """The name of a class or of a rule: bare where that reads back, else in double quotes."""
    bare = _BARE.fullmatch(name) and name.lower() not in KEYWORDS
    return name if bare else f'"{name}"'
