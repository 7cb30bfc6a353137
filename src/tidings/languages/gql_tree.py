"""The tree of a subscription to graphs: edges between terms and variables, and what is asked of the variables."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from tidings.graphs import Term
from tidings.languages.tree import NOWHERE, Span

BLANK = "_:"
"""How the name of a variable begins that was written as a blank node."""


class Asked(Enum):
    """What may be asked of what a variable stands for.

    The first eight compare the value of a literal, `in` with several; `is` and `is not` ask whether it is one term. The
    others ask the taxonomy: where a node stands is at its classes, and, if it is a class, at itself.
    """

    EQUAL = "="
    UNEQUAL = "!="
    LESS = "<"
    AT_MOST = "<="
    GREATER = ">"
    AT_LEAST = ">="
    CONTAINS = "contains"
    STARTS_WITH = "starts with"
    IN = "in"
    IS = "is"
    IS_NOT = "is not"
    AT_CLASS = "at class"
    NOT_AT_CLASS = "not at class"
    AT_OR_BELOW = "at or below class"
    BELOW = "below class"
    AT_OR_ABOVE = "at or above class"
    ABOVE = "above class"


@dataclass(frozen=True, slots=True)
class Variable:
    """`?x`; `name` is without the question mark. A blank node in a pattern is a variable, too: `_:x`."""

    name: str
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class PatternEdge:
    """An edge that must be there, with variables for what may be anything."""

    subject: Term | Variable
    property: Term | Variable
    object: Term | Variable
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Constraint:
    """What is asked of a variable. There is one operand; of IN there are several."""

    variable: str
    asked: Asked
    operands: tuple[Term, ...]
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Pattern:
    """All edges must be there with one binding of the variables, for which all constraints hold.

    `select` are the variables that a notification shows; all of them if it is empty (`SELECT *`).
    """

    select: tuple[str, ...]
    edges: tuple[PatternEdge, ...]
    constraints: tuple[Constraint, ...] = ()


def variables(pattern: Pattern) -> tuple[str, ...]:
    """The names of all variables, in the order of the edges."""
    places = [place for edge in pattern.edges for place in (edge.subject, edge.property, edge.object)]
    return tuple(dict.fromkeys(place.name for place in places if isinstance(place, Variable)))


def selected(pattern: Pattern) -> tuple[str, ...]:
    """The names of the variables that a notification shows; `_:x` is a variable that nobody selects."""
    return pattern.select or tuple(name for name in variables(pattern) if not name.startswith(BLANK))
