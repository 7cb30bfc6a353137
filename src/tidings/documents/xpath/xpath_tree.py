"""The tree of an XPath subscription: paths with predicates, compared with literals, joined by and, or and not()."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from enum import Enum
from typing import Any

from tidings.core.source_text import NOWHERE, Span
from tidings.documents.model import Axis, NodeKind, show_node

__all__ = ["And", "Expression", "Not", "Or", "Path", "PathTest", "Step", "ValueOperator"]


class ValueOperator(Enum):
    """What may be asked of a node's value. The value is the spelling."""

    EQUAL = "="
    UNEQUAL = "!="
    LESS = "<"
    AT_MOST = "<="
    GREATER = ">"
    AT_LEAST = ">="
    CONTAINS = "contains"
    STARTS_WITH = "starts-with"


@dataclass(frozen=True, slots=True)
class Step:
    """A step of a path. `name` is as in `documents.LinearStep`; all `predicates` must hold."""

    axis: Axis
    kind: NodeKind
    name: str
    predicates: tuple[Expression, ...] = ()
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Path:
    """Steps from the document (`absolute`) or from the node whose predicate this is; no steps at all is `.`."""

    absolute: bool
    steps: tuple[Step, ...]
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class PathTest:
    """Some node at the path; with an operator, some node whose value stands so to the literal.

    A literal is a string or a number. Order is asked of numbers only: the literal of `<` is a number always.
    `contains` and `starts-with` ask only the first node at the path, in the order of the document.
    """

    path: Path
    operator: ValueOperator | None = None
    literal: str | float | None = None
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class And:
    """`and`."""

    parts: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Or:
    """`or`."""

    parts: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Not:
    """`not(...)`."""

    part: Expression


Expression = PathTest | And | Or | Not


# Nodes of XPath trees, made without their constructors.
#
# The constructor of a frozen dataclass sets each field through `object.__setattr__`, which looks its name up; setting
# the slots themselves takes half the time, and making nodes is half of parsing. The nodes are the same.


_new = object.__new__


def _setters(kind: type[Span | Step | Path | PathTest]) -> list[Callable[[Any, Any], None]]:
    """What sets each field, in the order of the fields."""
    return [kind.__dict__[name].__set__ for name in kind.__slots__]


_span_start, _span_end = _setters(Span)
_step_axis, _step_kind, _step_name, _step_predicates, _step_span = _setters(Step)
_path_absolute, _path_steps, _path_span = _setters(Path)
_found_path, _found_operator, _found_literal, _found_span = _setters(PathTest)


def make_span(start: int, end: int) -> Span:
    made = _new(Span)
    _span_start(made, start)
    _span_end(made, end)
    return made


def make_step(axis: Axis, kind: NodeKind, name: str, predicates: tuple[Expression, ...], span: Span) -> Step:
    made = _new(Step)
    _step_axis(made, axis)
    _step_kind(made, kind)
    _step_name(made, name)
    _step_predicates(made, predicates)
    _step_span(made, span)
    return made


def make_path(absolute: bool, steps: tuple[Step, ...], span: Span) -> Path:
    made = _new(Path)
    _path_absolute(made, absolute)
    _path_steps(made, steps)
    _path_span(made, span)
    return made


def make_path_test(
    path: Path, operator: ValueOperator | None, literal: str | float | None, span: Span
) -> PathTest:
    made = _new(PathTest)
    _found_path(made, path)
    _found_operator(made, operator)
    _found_literal(made, literal)
    _found_span(made, span)
    return made


# The tree of an XPath as text, in the one form that every text of the same tree is shown in.
#
# Namespaces are declared in front, as n1, n2 and so on in the order of their first use.


XML_NAMESPACE = "http://www.w3.org/XML/1998/namespace"

_Namer = Callable[[str], str]


def show(expression: Expression) -> str:
    """The text of a tree; it parses back to the same tree."""
    prefixes: dict[str, str] = {XML_NAMESPACE: "xml"}

    def prefixed(name: str) -> str:
        if not name.startswith("{"):
            return name
        uri, _, local = name[1:].rpartition("}")
        return f"{prefixes.setdefault(uri, f'n{len(prefixes)}')}:{local}"

    shown = _show(expression, prefixed)
    declared = [(prefix, uri) for uri, prefix in prefixes.items() if prefix != "xml"]
    return "".join(f"declare namespace {prefix} = {show_string(uri)}; " for prefix, uri in declared) + shown


def show_briefly(expression: Expression) -> str:
    """The text of a part of a tree for people to read: names as in places of documents, `{uri}price > 50`."""
    return _show(expression, lambda name: name)


def show_string(text: str) -> str:
    if '"' in text and "'" in text:
        raise ValueError(f"no XPath literal has both kinds of quotes: {text!r}")
    return f"'{text}'" if '"' in text else f'"{text}"'


def show_number(number: float) -> str:
    """A number as XPath writes it, without an exponent: 50, -2.5, 0.0000001."""
    shown = format(Decimal(repr(number)), "f")
    return shown.removesuffix(".0")


def _show(expression: Expression, named: _Namer) -> str:
    if isinstance(expression, PathTest):
        return _show_found(expression, named)
    if isinstance(expression, Not):
        return f"not({_show(expression.part, named)})"
    word = " and " if isinstance(expression, And) else " or "
    return word.join(_show_part(part, named) for part in expression.parts)


def _show_part(part: Expression, named: _Namer) -> str:
    shown = _show(part, named)
    return f"({shown})" if isinstance(part, And | Or) else shown


def _show_found(found: PathTest, named: _Namer) -> str:
    path, operator, literal = _show_path(found.path, named), found.operator, found.literal
    if operator is None or literal is None:
        return path
    shown = show_string(literal) if isinstance(literal, str) else show_number(literal)
    if operator in (ValueOperator.CONTAINS, ValueOperator.STARTS_WITH):
        return f"{operator.value}({path}, {shown})"
    return f"{path} {operator.value} {shown}"


def _show_path(path: Path, named: _Namer) -> str:
    shown = "".join(_show_step(step, named) for step in path.steps)
    if path.absolute:
        return shown
    return f".{shown}" if not shown or shown.startswith("//") else shown[1:]


def _show_step(step: Step, named: _Namer) -> str:
    slashes = "//" if step.axis is Axis.DESCENDANT else "/"
    name = step.name if step.kind is NodeKind.TEXT else named(step.name)
    return slashes + show_node(step.kind, name) + _show_predicates(step, named)


def _show_predicates(step: Step, named: _Namer) -> str:
    if not step.predicates:
        return ""
    whole = And(step.predicates) if len(step.predicates) > 1 else step.predicates[0]
    return f"[{_show(whole, named)}]"
