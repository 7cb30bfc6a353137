"""Syntax tree of an XPath subscription: paths with predicates, compared with literals, joined by and, or and not()."""

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
    """Comparisons of a node's value. The enum value is the spelling."""

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
    """A step of a path. `name` is as in `documents.model.LinearStep`; all `predicates` must hold."""

    axis: Axis
    kind: NodeKind
    name: str
    predicates: tuple[Expression, ...] = ()
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Path:
    """Steps from the document (`absolute`) or from the node of the enclosing predicate; without steps, it is `.`."""

    absolute: bool
    steps: tuple[Step, ...]
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class PathTest:
    """A test that some node exists at the path; with an operator, that some node's value compares with the literal.

    A literal is a string or a number. Only numbers have an order: the literal of `<` is always a number. `contains` and
    `starts-with` test only the first node at the path, in document order.
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


# Fast constructors. The constructor of a frozen dataclass sets each field through `object.__setattr__`, which looks its
# name up; setting the slots directly takes half the time, and making nodes is half of parsing. The nodes are the same.

_new = object.__new__


def _setters(kind: type[Span | Step | Path | PathTest]) -> list[Callable[[Any, Any], None]]:
    """Return the setters of the fields, in field order."""
    return [kind.__dict__[name].__set__ for name in kind.__slots__]


_span_start, _span_end = _setters(Span)
_step_axis, _step_kind, _step_name, _step_predicates, _step_span = _setters(Step)
_path_absolute, _path_steps, _path_span = _setters(Path)
_test_path, _test_operator, _test_literal, _test_span = _setters(PathTest)


def make_span(start: int, end: int) -> Span:
    node = _new(Span)
    _span_start(node, start)
    _span_end(node, end)
    return node


def make_step(axis: Axis, kind: NodeKind, name: str, predicates: tuple[Expression, ...], span: Span) -> Step:
    node = _new(Step)
    _step_axis(node, axis)
    _step_kind(node, kind)
    _step_name(node, name)
    _step_predicates(node, predicates)
    _step_span(node, span)
    return node


def make_path(absolute: bool, steps: tuple[Step, ...], span: Span) -> Path:
    node = _new(Path)
    _path_absolute(node, absolute)
    _path_steps(node, steps)
    _path_span(node, span)
    return node


def make_path_test(
    path: Path, operator: ValueOperator | None, literal: str | float | None, span: Span
) -> PathTest:
    node = _new(PathTest)
    _test_path(node, path)
    _test_operator(node, operator)
    _test_literal(node, literal)
    _test_span(node, span)
    return node


XML_NAMESPACE = "http://www.w3.org/XML/1998/namespace"

_Namer = Callable[[str], str]


def show(expression: Expression) -> str:
    """Format a tree in canonical form; it parses back to the same tree.

    Namespaces are declared in front, as n1, n2 and so on in the order of their first use.
    """
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
    """Format a part of a tree for explanations, with names as in tag paths: `{uri}price > 50`."""
    return _show(expression, lambda name: name)


def show_string(text: str) -> str:
    if '"' in text and "'" in text:
        raise ValueError(f"an XPath literal cannot contain both kinds of quotes: {text!r}")
    return f"'{text}'" if '"' in text else f'"{text}"'


def show_number(number: float) -> str:
    """Format a number as in XPath, without an exponent: 50, -2.5, 0.0000001."""
    shown = format(Decimal(repr(number)), "f")
    return shown.removesuffix(".0")


def _show(expression: Expression, named: _Namer) -> str:
    if isinstance(expression, PathTest):
        return _show_test(expression, named)
    if isinstance(expression, Not):
        return f"not({_show(expression.part, named)})"
    word = " and " if isinstance(expression, And) else " or "
    return word.join(_show_part(part, named) for part in expression.parts)


def _show_part(part: Expression, named: _Namer) -> str:
    shown = _show(part, named)
    return f"({shown})" if isinstance(part, And | Or) else shown


def _show_test(test: PathTest, named: _Namer) -> str:
    path, operator, literal = _show_path(test.path, named), test.operator, test.literal
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
