"""From a twig to branches: linear paths, what is asked at their ends, and the points where they meet (section 3.2).

    /a//b[.//c/d/text() = "v1" and p//q/text() = "v2"]/x[@y = "v3"]//z/text() = "v4"

    /a//b{bp#1}//c/d/text() = "v1"      /a//b{bp#1}/x{bp#2}/@y = "v3"
    /a//b{bp#1}/p//q/text() = "v2"      /a//b{bp#1}/x{bp#2}//z/text() = "v4"

A branching point is a node with two or more things asked of it or below it. The document element is none: there is only
one, so branches that pass through it meet in it anyway.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from tidings.documents.model import Axis, LinearStep, show_steps
from tidings.documents.twigs import DOCUMENT, Twig, TwigNode, ValueTest
from tidings.documents.xpath.xpath_tree import ValueOperator
from tidings.relational.tables import path_id

EQUAL, EXISTS = "=", "exists"
RANGES = ("<", "<=", ">", ">=")

_OPPOSITES = {ValueOperator.EQUAL: "!=", ValueOperator.UNEQUAL: EQUAL}
"""Of one node's value these are opposites. `not(. < 5)` is not `. >= 5`: it also holds of what is no number."""


@dataclass(frozen=True, slots=True)
class Branch:
    """A linear path, what is asked of a node at its end, and which branching point is which of its steps."""

    path: str
    operator: str
    literal: str | float | None = None
    points: tuple[tuple[int, int], ...] = ()

    @property
    def info(self) -> str:
        """The branching information, as figure 3.4 writes it."""
        return "&".join(f"bp#{number}={step}" for number, step in self.points)


@dataclass(frozen=True, slots=True)
class Alternative:
    """The branches of a twig, those with equalities first. Unless it is `exact`, what they find must be verified."""

    branches: tuple[Branch, ...]
    exact: bool


def alternative_of(twig: Twig) -> Alternative:
    """What a twig asks for, but for what must not be there and for who is first: that must still be verified."""
    found = _Positive(twig)
    branches = sorted(dict.fromkeys(found.branches()), key=_rank)
    exact = len(found.places) == len(twig) and not any(node.firsts for node in twig)
    return Alternative(tuple(branches), exact)


def _rank(branch: Branch) -> int:
    """Equalities are most selective, then ranges; that something exists says least."""
    if branch.operator == EQUAL:
        return 0
    return 1 if branch.operator in RANGES else 3 if branch.operator == EXISTS else 2


class _Positive:
    """The nodes of a twig that must be there, and the tests of their own values."""

    def __init__(self, twig: Twig) -> None:
        self.twig = twig
        self.places: list[int] = []
        for place, node in enumerate(twig):
            if not node.negated and (node.parent == DOCUMENT or node.parent in self.places):
                self.places.append(place)
        self.tests = {place: list(twig[place].tests) for place in self.places}
        for place in self.places:
            self.tests[self._last(place)] += twig[place].firsts
        self.points = {place: number for number, place in enumerate(self._meetings(), start=1)}

    def _below(self, place: int) -> list[int]:
        return [child for child in self.places if self.twig[child].parent == place]

    def _last(self, place: int) -> int:
        """Where the tests in `firsts` are asked. If the first node there passes them, some node does."""
        further = [child for child in self._below(place) if self.twig[child].leads_on]
        return self._last(further[0]) if further else place

    def _meetings(self) -> Iterator[int]:
        for place in self.places:
            if len(self.tests[place]) + len(self._below(place)) > 1 and not _is_document_element(
                self.twig[place]
            ):
                yield place

    def branches(self) -> Iterator[Branch]:
        for place in self.places:
            for test in self.tests[place]:
                yield self._branch(place, *_asked(test))
            if not self.tests[place] and not self._below(place):
                yield self._branch(place, EXISTS, None)

    def _branch(self, place: int, operator: str, literal: str | float | None) -> Branch:
        way = list(self._way(place))[::-1]
        points = [(self.points[at], step) for step, at in enumerate(way, start=1) if at in self.points]
        steps = [LinearStep(node.axis, node.kind, node.name) for node in map(self.twig.__getitem__, way)]
        return Branch(show_steps(steps), operator, literal, tuple(points))

    def _way(self, place: int) -> Iterator[int]:
        while place != DOCUMENT:
            yield place
            place = self.twig[place].parent


def _is_document_element(node: TwigNode) -> bool:
    return node.parent == DOCUMENT and node.axis is Axis.CHILD


def _asked(test: ValueTest) -> tuple[str, str | float]:
    operator = test.operator.value
    if test.negated:
        operator = _OPPOSITES.get(test.operator, f"not {operator}")
    return operator, test.literal


# Predicates as the tables have them: a linear path, an operator, a literal; and where branches pass.


class Predicate(NamedTuple):
    """A row of Query_Predicate without its chain, the text of its path, and its branching information."""

    linearpath_id: int
    op: str
    value: str | None
    number: float | None
    path: str
    info: str

    @classmethod
    def of(cls, branch: Branch) -> Predicate:
        literal = branch.literal
        number = literal + 0.0 if isinstance(literal, float) else None  # -0.0 is 0.0
        value = literal if isinstance(literal, str) else None if number is None else repr(number)
        return cls(path_id(branch.path), branch.operator, value, number, branch.path, branch.info)

    @property
    def columns(self) -> tuple[int, str, str | None, float | None]:
        return self[:4]


class PredicateSet(NamedTuple):
    """The predicates of an alternative, equalities first, and whether they say all there is to say."""

    predicates: list[Predicate]
    exact: bool
