"""The operators of predicates, each declared once: spelling, meaning, operands and lowering.

`holds` is the specification: whether one value satisfies the operator. The parser, the checks, the compiler,
the reference matcher and the explanations all read this table, so a new operator is one declaration.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from tidings.atoms import Aspect
from tidings.matching.compiler.plan import Operand, Relation
from tidings.values import Instant, Kind, Literal, Scalar, kind_of, parse_instant


class Takes(Enum):
    """Number of literals after an operator."""

    NOTHING = "nothing"
    ONE = "one value"
    PAIR = "two values joined by 'and'"
    SEVERAL = "values in parentheses"


class Order(Protocol):
    """A domain that defines its own order: a hierarchy, or an enumeration with a partial order."""

    @property
    def name(self) -> str: ...

    def at_most(self, low: str, high: str) -> bool: ...


@dataclass(frozen=True, slots=True, eq=False)
class Ordered:
    """The meaning of an operator on a domain that defines its own order, and the aspect that indexes it."""

    aspect: Aspect
    holds: Callable[[Order, str, str], bool]


@dataclass(frozen=True, slots=True, eq=False)
class Operator:
    """An operator. `ordered` is None if the operator does not depend on order."""

    spelling: str
    meaning: str
    takes: Takes
    kinds: frozenset[Kind]
    holds: Callable[[Scalar, Operand], bool]
    relation: Relation
    aspect: Aspect = Aspect.VALUE
    ordered: Ordered | None = None

    @property
    def on_text(self) -> bool:
        """Whether the operator looks inside strings."""
        return self.aspect is not Aspect.VALUE

    def __repr__(self) -> str:
        return f"<{self.spelling}>"


def compare(value: Scalar, literal: Literal) -> int | None:
    """Return -1, 0 or 1 if the value is before, equal to or after the literal; None if they are not comparable."""
    if isinstance(literal, Instant):
        moment = parse_instant(value) if isinstance(value, str) else None
        return None if moment is None else (moment > literal) - (moment < literal)
    if kind_of(value) is not kind_of(literal):
        return None
    return (value > literal) - (value < literal)  # type: ignore[operator]


def literals_of(operand: Operand) -> tuple[Literal, ...]:
    """Return the literals of an operand."""
    if operand is None:
        return ()
    return operand if isinstance(operand, tuple) else (operand,)


def _compared(accept: Iterable[int]) -> Callable[[Scalar, Operand], bool]:
    accepted = frozenset(accept)
    return lambda value, operand: compare(value, literals_of(operand)[0]) in accepted


def _differs(value: Scalar, operand: Operand) -> bool:
    return compare(value, literals_of(operand)[0]) != 0


def _is_one_of(value: Scalar, operand: Operand) -> bool:
    return any(compare(value, literal) == 0 for literal in literals_of(operand))


def _lies_within(value: Scalar, operand: Operand) -> bool:
    low, high = literals_of(operand)
    return compare(value, low) in (0, 1) and compare(value, high) in (-1, 0)


def _text(compare: Callable[[str, str], bool]) -> Callable[[Scalar, Operand], bool]:
    def holds(value: Scalar, operand: Operand) -> bool:
        return isinstance(value, str) and isinstance(operand, str) and compare(value, operand)

    return holds


def _never(_value: Scalar, _operand: Operand) -> bool:
    return False


_ANY = frozenset(Kind)
_ORDERED = frozenset({Kind.NUMBER, Kind.STRING, Kind.INSTANT})
_STRING = frozenset({Kind.STRING})

_AT_MOST = Ordered(Aspect.AT_MOST, lambda order, value, literal: order.at_most(value, literal))
_AT_LEAST = Ordered(Aspect.AT_LEAST, lambda order, value, literal: order.at_most(literal, value))
_BELOW = Ordered(
    Aspect.BELOW, lambda order, value, literal: value != literal and order.at_most(value, literal)
)
_ABOVE = Ordered(
    Aspect.ABOVE, lambda order, value, literal: value != literal and order.at_most(literal, value)
)

EQ = Operator("=", "Some value equals the literal.", Takes.ONE, _ANY, _compared({0}), Relation.EQ)
NE = Operator(
    "!=", "Some value differs from the literal, in value or in kind.", Takes.ONE, _ANY, _differs, Relation.NE
)
LT = Operator(
    "<",
    "Some value comes before the literal; in a hierarchy: it is a kind of the literal, and not the literal itself.",
    Takes.ONE,
    _ORDERED,
    _compared({-1}),
    Relation.LT,
    ordered=_BELOW,
)
LE = Operator(
    "<=",
    "Some value is the literal or comes before it; in a hierarchy: it is the literal or a kind of it.",
    Takes.ONE,
    _ORDERED,
    _compared({-1, 0}),
    Relation.LE,
    ordered=_AT_MOST,
)
GT = Operator(
    ">",
    "Some value comes after the literal; in a hierarchy: it is above the literal.",
    Takes.ONE,
    _ORDERED,
    _compared({1}),
    Relation.GT,
    ordered=_ABOVE,
)
GE = Operator(
    ">=",
    "Some value is the literal or comes after it; in a hierarchy: it is the literal or above it.",
    Takes.ONE,
    _ORDERED,
    _compared({0, 1}),
    Relation.GE,
    ordered=_AT_LEAST,
)
IN = Operator("in", "Some value equals one of the literals.", Takes.SEVERAL, _ANY, _is_one_of, Relation.IN)
BETWEEN = Operator(
    "between",
    "One value lies between the two literals, both included.",
    Takes.PAIR,
    _ORDERED,
    _lies_within,
    Relation.BETWEEN,
)
CONTAINS = Operator(
    "contains",
    "Some string contains the literal; where values are not free text: some value equals it.",
    Takes.ONE,
    _ANY,
    _text(lambda value, part: part in value),
    Relation.EQ,
    Aspect.SUBSTRING,
)
STARTS_WITH = Operator(
    "starts with",
    "Some string begins with the literal.",
    Takes.ONE,
    _STRING,
    _text(str.startswith),
    Relation.EQ,
    Aspect.PREFIX,
)
ENDS_WITH = Operator(
    "ends with",
    "Some string ends with the literal.",
    Takes.ONE,
    _STRING,
    _text(str.endswith),
    Relation.EQ,
    Aspect.SUFFIX,
)
EXISTS = Operator(
    "exists",
    "The attribute has at least one value.",
    Takes.NOTHING,
    frozenset(),
    lambda _value, _operand: True,
    Relation.EXISTS,
)
IS_A = Operator(
    "is a",
    "Some value is the concept or a kind of it, in the attribute's hierarchy.",
    Takes.ONE,
    _STRING,
    _never,
    Relation.EQ,
    ordered=_AT_MOST,
)

OPERATORS: tuple[Operator, ...] = (
    *(EQ, NE, LT, LE, GT, GE, IN, BETWEEN),
    *(CONTAINS, STARTS_WITH, ENDS_WITH, EXISTS, IS_A),
)
BY_SPELLING = {operator.spelling: operator for operator in OPERATORS}
