"""What a match of a graph is, and why one is. The definition: everything faster is tested against it.

A pattern matches if its variables can be bound so that every edge of it is an edge of the graph and every constraint
holds. Bindings are found one edge after another, the one with the fewest possibilities first: in which order is a
matter of time only. Two variables may be bound to one node, as in a natural join (section 4.2 of the G-ToPSS paper) and
in SPARQL.
"""

from __future__ import annotations

import math
import operator as compared
from collections.abc import Callable, Iterable, Iterator
from itertools import product
from typing import Any, NamedTuple

from tidings.graph_values import compare, equal, scalar, text_of
from tidings.graphs import TYPE, Edge, Graph, Term, TermKind
from tidings.languages.gql_shown import show, show_constraint, show_edge
from tidings.languages.gql_tree import Asked, Constraint, Pattern, PatternEdge, Variable, selected, variables
from tidings.model import Reason
from tidings.taxonomies import Taxonomy
from tidings.values import Scalar

MOST_LOOKS = 1_000_000
"""How many possibilities may be looked at for one match: about a second's work."""

MOST_BINDINGS = 100
"""How many bindings a notification shows; of more, it tells how many."""

SHOWN = 200
"""How many characters of a value a reason tells."""

Binding = dict[str, Term]
NO_TAXONOMY = Taxonomy()


class Kept(NamedTuple):
    """The bindings that a notification shows, and how many more there are; at least so many, if not `counted`."""

    bindings: tuple[Binding, ...]
    more: int
    counted: bool = True

    def note(self) -> str:
        """What people are told of those that are not shown; nothing if there are none."""
        if self.counted:
            return f"and {self.more:,} more" if self.more else ""
        return f"and at least {self.more:,} more" if self.more else "and maybe more"


def matches(pattern: Pattern, graph: Graph, taxonomy: Taxonomy = NO_TAXONOMY) -> bool:
    """Whether a graph satisfies a subscription."""
    return next(_Published(graph, taxonomy).solutions(pattern), None) is not None


def bindings(pattern: Pattern, graph: Graph, taxonomy: Taxonomy = NO_TAXONOMY) -> tuple[Binding, ...]:
    """All distinct bindings of the selected variables, in the order in which the graph has what they are bound to."""
    return Explainer(graph, taxonomy, math.inf).bindings(pattern, math.inf).bindings


def explain(pattern: Pattern, graph: Graph, taxonomy: Taxonomy = NO_TAXONOMY) -> tuple[Reason, ...]:
    """The edges and constraints of the first binding, in the order of the text. Empty for a miss."""
    return Explainer(graph, taxonomy).explain(pattern)


class Explainer:
    """Explains the matches of one graph, and gives their bindings.

    A pattern whose edges have nothing in common is bound in every combination: after MOST_LOOKS, what was found until
    then has to do, and if that is nothing, the reason is the subscription itself, without values.
    """

    def __init__(self, graph: Graph, taxonomy: Taxonomy = NO_TAXONOMY, most: float = MOST_LOOKS) -> None:
        self._published, self._most = _Published(graph, taxonomy), most

    def bindings(self, pattern: Pattern, most: float = MOST_BINDINGS) -> Kept:
        names, rows, counted = selected(pattern), {}, False
        try:
            for found in self._found(pattern):
                row = {name: found[name] for name in names}
                rows[self._place(row)] = row
            counted = True
        except _TooMuch:
            pass
        ordered = [rows[place] for place in sorted(rows)]
        shown = ordered if most == math.inf else ordered[: int(most)]
        return Kept(tuple(shown), len(ordered) - len(shown), counted)

    def explain(self, pattern: Pattern) -> tuple[Reason, ...]:
        names, first = dict.fromkeys((*selected(pattern), *variables(pattern))), None
        try:
            for found in self._found(pattern):
                row = {name: found[name] for name in names}
                first = row if first is None else min(first, row, key=self._place)
        except _TooMuch:
            if first is None:
                return (Reason(_cut(show(pattern)), None, ""),)
        return tuple(_reasons(pattern, first)) if first is not None else ()

    def _found(self, pattern: Pattern) -> Iterator[Binding]:
        self._published.left = self._most
        return self._published.solutions(pattern)

    def _place(self, row: Binding) -> tuple[int, ...]:
        return tuple(self._published.order[term] for term in row.values())


class _TooMuch(Exception):
    """More possibilities were looked at than allowed."""


_Key = tuple[Term | None, Term | None, Term | None]


class _Published:
    """A graph's edges, with those that its properties imply, under all keys: `(s, None, o)` are those from s to o.

    `left` is how many possibilities may still be looked at.
    """

    def __init__(self, graph: Graph, taxonomy: Taxonomy) -> None:
        self.taxonomy, self.left = taxonomy, math.inf
        self.edges = tuple(
            dict.fromkeys(implied for edge in graph.edges for implied in _implied(edge, taxonomy))
        )
        self.under: dict[_Key, list[Edge]] = {}
        for edge in self.edges:
            for subject, property, object in product(*((term, None) for term in edge)):
                self.under.setdefault((subject, property, object), []).append(edge)
        self.order: dict[Term, int] = {}
        for edge in self.edges:
            for term in edge:
                self.order.setdefault(term, len(self.order))

    def solutions(self, pattern: Pattern) -> Iterator[Binding]:
        """Every binding of all variables, some of them perhaps twice."""
        waiting: list[tuple[Binding, tuple[PatternEdge, ...]]] = [({}, pattern.edges)]
        while waiting:
            bound, edges = waiting.pop()
            if not edges:
                yield bound
                continue
            fewest = min(edges, key=lambda edge: len(self.possible(edge, bound)))
            possible = self.possible(fewest, bound)
            self.left -= len(edges) + len(possible)
            if self.left < 0:
                raise _TooMuch
            rest = tuple(edge for edge in edges if edge is not fewest)
            rows = [row for edge in possible if (row := _bound(fewest, edge, bound)) is not None]
            waiting += [(row, rest) for row in reversed(rows) if self.holds(pattern, bound, row)]

    def possible(self, edge: PatternEdge, bound: Binding) -> list[Edge]:
        """The published edges that an edge of the pattern may be, by what is known of its ends and its property."""
        subject, property, object = (
            bound.get(place.name) if isinstance(place, Variable) else place
            for place in (edge.subject, edge.property, edge.object)
        )
        return self.under.get((subject, property, object), [])

    def holds(self, pattern: Pattern, before: Binding, now: Binding) -> bool:
        """Whether the constraints hold of the variables that have just been bound."""
        new = now.keys() - before.keys()
        asked = [constraint for constraint in pattern.constraints if constraint.variable in new]
        return all(self.satisfies(now[constraint.variable], constraint) for constraint in asked)

    def satisfies(self, term: Term, constraint: Constraint) -> bool:
        of_values = OF_VALUES.get(constraint.asked)
        if of_values is not None:
            return of_values(term, constraint.operands)
        typed = [edge.object for edge in self.under.get((term, _TYPE, None), [])]
        places = self.taxonomy.stands_at(term, typed)
        return _OF_CLASSES[constraint.asked](self.taxonomy, places, constraint.operands[0])


_TYPE = Term(TermKind.IRI, TYPE)


def _implied(edge: Edge, taxonomy: Taxonomy) -> Iterable[Edge]:
    return [edge._replace(property=above) for above in taxonomy.super_properties(edge.property)]


def _bound(asked: PatternEdge, edge: Edge, bound: Binding) -> Binding | None:
    """The binding under which an edge of the pattern is a published one; None if there is none."""
    row = dict(bound)
    for place, term in zip((asked.subject, asked.property, asked.object), edge, strict=True):
        if (row.setdefault(place.name, term) if isinstance(place, Variable) else place) != term:
            return None
    return row


def _ordered(order: Callable[[Any, Any], bool]) -> Callable[[Term, tuple[Term, ...]], bool]:
    return lambda term, operands: compare(term, order, operands[0])


def _looks(term: Term, inside: Callable[[str], bool]) -> bool:
    text = text_of(term)
    return text is not None and inside(text)


OF_VALUES: dict[Asked, Callable[[Term, tuple[Term, ...]], bool]] = {
    Asked.EQUAL: lambda term, operands: equal(term, operands[0]) is True,
    Asked.UNEQUAL: lambda term, operands: equal(term, operands[0]) is False,
    Asked.IN: lambda term, operands: any(equal(term, operand) for operand in operands),
    Asked.LESS: _ordered(compared.lt),
    Asked.AT_MOST: _ordered(compared.le),
    Asked.GREATER: _ordered(compared.gt),
    Asked.AT_LEAST: _ordered(compared.ge),
    Asked.CONTAINS: lambda term, operands: _looks(term, lambda text: operands[0].text in text),
    Asked.STARTS_WITH: lambda term, operands: _looks(term, lambda text: text.startswith(operands[0].text)),
    Asked.IS: lambda term, operands: term == operands[0],
    Asked.IS_NOT: lambda term, operands: term != operands[0],
}
"""What is asked of a term by itself, whatever the taxonomy says."""

_Places = frozenset[Term]
_OF_CLASSES: dict[Asked, Callable[[Taxonomy, _Places, Term], bool]] = {
    Asked.AT_CLASS: lambda taxonomy, places, of: of in places,
    Asked.NOT_AT_CLASS: lambda taxonomy, places, of: of not in places,
    Asked.AT_OR_BELOW: lambda taxonomy, places, of: any(taxonomy.is_below(place, of) for place in places),
    Asked.BELOW: lambda taxonomy, places, of: any(taxonomy.is_below(each, of) for each in places - {of}),
    Asked.AT_OR_ABOVE: lambda taxonomy, places, of: not places.isdisjoint(taxonomy.ancestors(of)),
    Asked.ABOVE: lambda taxonomy, places, of: not places.isdisjoint(taxonomy.ancestors(of) - {of}),
}


def _reasons(pattern: Pattern, bound: Binding) -> Iterator[Reason]:
    """One reason for each edge, with its object, then one for each constraint; each at the subject it is about."""
    for edge in pattern.edges:
        yield Reason(show_edge(edge), _told(_end(edge.object, bound)), _named(_end(edge.subject, bound)))
    for constraint in pattern.constraints:
        edge = next(edge for edge in pattern.edges if _has(edge, constraint.variable))
        value = _told(bound[constraint.variable])
        yield Reason(show_constraint(constraint), value, _named(_end(edge.subject, bound)))


def _end(place: Term | Variable, bound: Binding) -> Term:
    return bound[place.name] if isinstance(place, Variable) else place


def _has(edge: PatternEdge, name: str) -> bool:
    places = (edge.subject, edge.property, edge.object)
    return any(isinstance(place, Variable) and place.name == name for place in places)


def _told(term: Term) -> Scalar:
    found = scalar(term) if term.kind is TermKind.LITERAL else _named(term)
    return _cut(found) if isinstance(found, str) else found


def _named(term: Term) -> str:
    return f"_:{term.text}" if term.kind is TermKind.BLANK else term.text


def _cut(value: str) -> str:
    return value if len(value) <= SHOWN else value[: SHOWN - 1] + "…"
