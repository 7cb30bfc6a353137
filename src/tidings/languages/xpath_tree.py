"""The tree of an XPath subscription: paths with predicates, compared with literals, joined by and, or and not()."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from tidings.documents import Axis, NodeKind
from tidings.languages.tree import NOWHERE, Span

__all__ = ["All", "Any", "Expression", "Found", "Never", "Path", "Step", "ValueOperator"]


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
class Found:
    """Some node at the path; with an operator, some node whose value stands so to the literal.

    A literal is a string or a number. Order is asked of numbers only: the literal of `<` is a number always.
    `contains` and `starts-with` ask only the first node at the path, in the order of the document.
    """

    path: Path
    operator: ValueOperator | None = None
    literal: str | float | None = None
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class All:
    """`and`."""

    parts: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Any:
    """`or`."""

    parts: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Never:
    """`not(...)`."""

    part: Expression


Expression = Found | All | Any | Never
