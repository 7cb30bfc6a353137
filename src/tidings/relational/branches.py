"""XPath texts as branches: linear paths, tests at their ends, and the points where they meet (section 3.2).

    /a//b[.//c/d/text() = "v1" and p//q/text() = "v2"]/x[@y = "v3"]//z/text() = "v4"

    /a//b{bp#1}//c/d/text() = "v1"      /a//b{bp#1}/x{bp#2}/@y = "v3"
    /a//b{bp#1}/p//q/text() = "v2"      /a//b{bp#1}/x{bp#2}//z/text() = "v4"

A branching point is a node with two or more tests on it or nodes below it. The document element is not one: there is
only one, so branches that pass through it meet in any case.

Texts that differ only in their literals are compiled once: millions of subscriptions have a few thousand shapes.

    /a/b = "v1" and /a/c > 5       /a/b = "v7" and /a/c > 9       one template: /a/b = (0) and /a/c > (1)

A template is compiled from a text of the same shape with marks for literals. Texts for which marks could change the
result go to the compiler: those with declarations (their literals are names), empty strings, infinite numbers, and
shapes that do not compile with marks.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from math import isinf
from typing import NamedTuple

from tidings.documents.model import Axis, LinearStep, show_steps
from tidings.documents.twigs import DOCUMENT, Twig, TwigNode, ValueTest
from tidings.documents.xpath import xpath_parser
from tidings.documents.xpath.xpath_tree import ValueOperator
from tidings.documents.xpath_compiler import twigs_of
from tidings.errors import SubscriptionError
from tidings.matching.compiler.language import Context
from tidings.relational.tables import path_id

EQUAL, EXISTS = "=", "exists"
RANGES = ("<", "<=", ">", ">=")

_OPPOSITES = {ValueOperator.EQUAL: "!=", ValueOperator.UNEQUAL: EQUAL}
"""Opposites for the value of one node. `not(. < 5)` is not `. >= 5`: it also holds for values that are not numbers."""


@dataclass(frozen=True, slots=True)
class Branch:
    """A linear path, the test of a node at its end, and the steps of its branching points."""

    path: str
    operator: str
    literal: str | float | None = None
    points: tuple[tuple[int, int], ...] = ()

    @property
    def info(self) -> str:
        """The branching information in the notation of figure 3.4."""
        return "&".join(f"bp#{number}={step}" for number, step in self.points)


@dataclass(frozen=True, slots=True)
class Alternative:
    """The branches of a twig, equalities first. Unless it is `exact`, matches must be verified."""

    branches: tuple[Branch, ...]
    exact: bool


def alternative_of(twig: Twig) -> Alternative:
    """Convert a twig, without negated nodes and positions, which must be verified."""
    found = _Positive(twig)
    branches = sorted(dict.fromkeys(found.branches()), key=_rank)
    exact = len(found.places) == len(twig) and not any(node.firsts for node in twig)
    return Alternative(tuple(branches), exact)


def _rank(branch: Branch) -> int:
    """Rank branches by selectivity: equalities first, then ranges, existence last."""
    if branch.operator == EQUAL:
        return 0
    return 1 if branch.operator in RANGES else 3 if branch.operator == EXISTS else 2


class _Positive:
    """The nodes of a twig that must exist, and the tests of their own values."""

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
        """Return the node that the tests in `firsts` apply to. If the first node there passes them, some node does."""
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
                yield self._branch(place, *_operator_and_literal(test))
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


def _operator_and_literal(test: ValueTest) -> tuple[str, str | float]:
    operator = test.operator.value
    if test.negated:
        operator = _OPPOSITES.get(test.operator, f"not {operator}")
    return operator, test.literal


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
    """The predicates of an alternative, equalities first, and whether they are sufficient."""

    predicates: list[Predicate]
    exact: bool


LANGUAGE = "xpath"

_LITERAL = re.compile(r"""("[^"]*"|'[^']*'|(?<![\w.\-])(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+))""")
"""A string, or a number that is not part of a name."""

_MARKS_FROM = 987_654_321_000.5
"""The first number that marks a literal."""

MOST = 100_000
"""Maximum number of cached shapes."""


class Slot(NamedTuple):
    """A predicate whose literal, with its sign, is at a place of the text; at place -1 it is constant."""

    predicate: Predicate
    place: int
    sign: float


Template = tuple[tuple[tuple[Slot, ...], bool], ...]
"""The slots of each alternative, and whether it is exact."""


def alternatives_of(text: str) -> list[Alternative]:
    """Compile an XPath to alternatives."""
    return [alternative_of(twig) for twig in twigs_of(xpath_parser.parse(text), Context(text))]


def predicate_sets_of(text: str) -> list[PredicateSet]:
    """Compile an XPath to predicates by alternative."""
    return [_predicate_set(each) for each in alternatives_of(text)]


def _predicate_set(alternative: Alternative) -> PredicateSet:
    return PredicateSet([Predicate.of(branch) for branch in alternative.branches], alternative.exact)


@dataclass(slots=True)
class Templates:
    """Compiler of texts that compiles each shape once."""

    known: dict[tuple[str, ...], Template | None] = field(default_factory=dict)

    def predicate_sets_of(self, text: str) -> list[PredicateSet]:
        """Return the predicates of a text by alternative."""
        parts = _LITERAL.split(text)
        literals = parts[1::2]
        parts[1::2] = ["s" if literal[0] in "\"'" else "n" for literal in literals]
        template = self._template(tuple(parts))
        values = None if template is None or len(text) > xpath_parser.DEFAULT.length else _values(literals)
        return predicate_sets_of(text) if template is None or values is None else _fill(template, values)

    def _template(self, shape: tuple[str, ...]) -> Template | None:
        if shape not in self.known:
            if len(self.known) >= MOST:
                self.known.clear()
            self.known[shape] = _make_template(shape)
        return self.known[shape]


def _values(literals: Sequence[str]) -> list[str | float] | None:
    """Return the literals; None if some need the compiler."""
    values = [literal[1:-1] if literal[0] in "\"'" else float(literal) for literal in literals]
    return (
        None
        if any(value == "" or (isinstance(value, float) and isinf(value)) for value in values)
        else values
    )


def _make_template(shape: tuple[str, ...]) -> Template | None:
    """Compile the template of a shape; None if it has none."""
    marks = [f"\ue000{n}\ue001" if kind == "s" else _MARKS_FROM + n for n, kind in enumerate(shape[1::2])]
    written = [f'"{mark}"' if isinstance(mark, str) else repr(mark) for mark in marks]
    text = "".join(part for pair in zip(shape[::2], [*written, ""], strict=True) for part in pair)
    if "declare" in text or any(mark.strip('"') in part for mark in written for part in shape[::2]):
        return None
    try:
        template = tuple(_slots(each, marks) for each in alternatives_of(text))
    except SubscriptionError:  # perhaps because of the marks, so each text is compiled
        return None
    placed = {slot.place for slots, _ in template for slot in slots}
    return template if placed >= set(range(len(marks))) else None


def _slots(alternative: Alternative, marks: Sequence[str | float]) -> tuple[tuple[Slot, ...], bool]:
    slots = (_slot(predicate, marks) for predicate in _predicate_set(alternative).predicates)
    return tuple(slots), alternative.exact


def _slot(predicate: Predicate, marks: Sequence[str | float]) -> Slot:
    if predicate.number is not None and abs(predicate.number) in marks:
        sign = 1.0 if predicate.number > 0 else -1.0
        return Slot(predicate, marks.index(abs(predicate.number)), sign)
    return Slot(predicate, marks.index(predicate.value) if predicate.value in marks else -1, 1.0)


def _fill(template: Template, values: Sequence[str | float]) -> list[PredicateSet]:
    return [PredicateSet(list(_predicates(slots, values)), exact) for slots, exact in template]


def _predicates(slots: Iterable[Slot], values: Sequence[str | float]) -> Iterable[Predicate]:
    for predicate, place, sign in slots:
        if place < 0:
            yield predicate
            continue
        value = values[place]
        linear, op, _, _, path, info = predicate
        if isinstance(value, str):
            yield Predicate(linear, op, value, None, path, info)
        else:
            number = sign * value + 0.0
            yield Predicate(linear, op, repr(number), number, path, info)
