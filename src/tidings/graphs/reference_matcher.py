"""Reference matcher for graphs, and explanations of matches. Everything faster is tested against it.

A pattern matches if its variables can be bound so that every edge of it is an edge of the graph and every constraint
holds. Edges are bound one after another, the one with the fewest possibilities first; the order only affects the time.
Two variables may be bound to one node, as in a natural join (section 4.2 of the G-ToPSS paper) and in SPARQL.
"""

from __future__ import annotations

import math
import operator as compared
from collections import ChainMap
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import accumulate, islice, product, takewhile
from typing import Any, NamedTuple

from tidings.errors import BudgetExceeded
from tidings.graphs.model import STRING, TYPE, Edge, Graph, Term, TermKind, compare, equal, scalar, text_of
from tidings.graphs.patterns.pattern_tree import (
    Constraint,
    ConstraintKind,
    Pattern,
    PatternEdge,
    Variable,
    selected,
    show_constraint,
    show_edge,
    variables,
)
from tidings.graphs.taxonomy import Taxonomy
from tidings.model import Reason
from tidings.values import Scalar

MOST_LOOKS = 1_000_000
"""Maximum number of possibilities tried to explain one match: about a second."""

MOST_BINDINGS = 100
"""Maximum number of bindings in a notification. The search ends one beyond them."""

SHOWN = 200
"""Maximum length of a value in a reason."""

LONGEST_NAME = 2_000
"""Maximum length of the subject of a reason."""

Binding = dict[str, Term]
NO_TAXONOMY = Taxonomy()


class ShownBindings(NamedTuple):
    """The bindings that a notification shows, in graph order, and whether the match has more of them.

    `more` is None if the search ended at its step limit: whether there are more is unknown.
    """

    bindings: tuple[Binding, ...]
    more: bool | None = False

    def note(self) -> str:
        """Describe bindings that are not shown; empty if all of them are."""
        if self.more is None:
            return f"at least {len(self.bindings):,} bindings: the search for more was ended"
        return f"more than {len(self.bindings):,} bindings" if self.more else ""

    def shortened(self, most: int) -> ShownBindings:
        """Keep the first bindings, up to a total number of characters of their values."""
        sizes = accumulate(sum(len(term.text) for term in row.values()) for row in self.bindings)
        fitting = sum(1 for _ in takewhile(lambda size: size <= most, sizes))
        return self if fitting == len(self.bindings) else ShownBindings(self.bindings[:fitting], more=True)


def matches(pattern: Pattern, graph: Graph, taxonomy: Taxonomy = NO_TAXONOMY) -> bool:
    """Return whether a graph satisfies a subscription."""
    return next(_GraphSearch(graph, taxonomy).solutions(pattern), None) is not None


def bindings(pattern: Pattern, graph: Graph, taxonomy: Taxonomy = NO_TAXONOMY) -> tuple[Binding, ...]:
    """Return all distinct bindings of the selected variables, in graph order."""
    return Explainer(graph, taxonomy, math.inf).bindings(pattern, math.inf).bindings


def explain(pattern: Pattern, graph: Graph, taxonomy: Taxonomy = NO_TAXONOMY) -> tuple[Reason, ...]:
    """Return the edges and constraints of the first binding, in text order. Empty for a miss."""
    return Explainer(graph, taxonomy).explain(pattern)


class _Part(NamedTuple):
    """Search result for a connected part of a pattern.

    `rows` are distinct bindings of its selected variables by their place in the graph, at most one more than asked for;
    `first` binds all of its variables and has the first of those places. `is_cut` means that the step limit ended the
    search.
    """

    rows: dict[tuple[int, ...], Binding]
    first: Binding
    is_cut: bool


class Explainer:
    """Decides which patterns match one graph, explains the matches, and gives their bindings.

    A pattern of k edges that share no variable has n^k bindings in a graph of n edges. So each connected part is
    searched by itself, their rows are combined only as far as they are shown, and a search ends after one row more
    than is shown or after `most` possibilities. `BudgetExceeded` means that nothing was found by then, so whether the
    pattern matches is unknown.
    """

    def __init__(self, graph: Graph, taxonomy: Taxonomy = NO_TAXONOMY, most: float = MOST_LOOKS) -> None:
        self._published, self._most = _GraphSearch(graph, taxonomy), most
        self._last: tuple[Pattern, float, list[_Part]] | None = None

    def matches(self, pattern: Pattern) -> bool:
        return bool(self._parts(pattern, 0))

    def bindings(self, pattern: Pattern, most: float = MOST_BINDINGS) -> ShownBindings:
        parts = self._parts(pattern, most)
        if not parts:
            return ShownBindings(())
        combined = product(*(part.rows.values() for part in parts))
        rows = list(combined if most == math.inf else islice(combined, int(most) + 1))
        names = selected(pattern)
        merged = [{name: row[name] for name in names} for row in (ChainMap(*each) for each in rows)]
        ordered = sorted(merged, key=self._place)
        if len(ordered) > most:
            return ShownBindings(tuple(ordered[: int(most)]), more=True)
        return ShownBindings(tuple(ordered), more=None if any(part.is_cut for part in parts) else False)

    def explain(self, pattern: Pattern) -> tuple[Reason, ...]:
        parts = self._parts(pattern, MOST_BINDINGS)
        return tuple(_reasons(pattern, dict(ChainMap(*(part.first for part in parts))))) if parts else ()

    def _parts(self, pattern: Pattern, most: float) -> list[_Part]:
        """The search results of all connected parts; none if one of them cannot be bound."""
        if self._last is None or self._last[0] is not pattern or self._last[1] != most:
            self._last = pattern, most, self._search_parts(pattern, most)
        return self._last[2]

    def _search_parts(self, pattern: Pattern, most: float) -> list[_Part]:
        self._published.left = self._most
        parts = []
        for part in _connected(pattern):
            searched = self._search(part, most)
            if searched is None:
                return []
            parts.append(searched)
        return parts

    def _search(self, pattern: Pattern, most: float) -> _Part | None:
        """Search one connected part. Nothing but its existence matters if no variable of it is selected."""
        names, all_names = pattern.select, dict.fromkeys((*pattern.select, *variables(pattern)))
        rows: dict[tuple[int, ...], Binding] = {}
        first: Binding | None = None
        try:
            for solution in self._published.solutions(pattern):
                self._published.look(len(all_names))
                whole = {name: solution[name] for name in all_names}
                first = whole if first is None else min(first, whole, key=self._place)
                row = {name: solution[name] for name in names}
                rows[self._place(row)] = row
                if len(rows) > most or not names:
                    return _Part(rows, first, is_cut=False)
        except _TooMuch:
            if first is None:
                raise BudgetExceeded(
                    "whether this subscription matches could not be decided",
                    received=f"more than {self._most:,} possibilities to bind its variables",
                    hint="give the pattern fewer variables, or edges that share them",
                ) from None
            return _Part(rows, first, is_cut=True)
        return None if first is None else _Part(rows, first, is_cut=False)

    def _place(self, row: Mapping[str, Term]) -> tuple[int, ...]:
        return tuple(self._published.order[term] for term in row.values())


def _connected(pattern: Pattern) -> list[Pattern]:
    """Split a pattern into parts that share no variable, each selecting its own variables."""
    groups: list[tuple[set[str], list[PatternEdge]]] = []
    for edge in pattern.edges:
        names, edges = _names(edge), [edge]
        apart = []
        for group in groups:
            if group[0] & names:
                names, edges = names | group[0], group[1] + edges
            else:
                apart.append(group)
        groups = [*apart, (names, edges)]
    return [
        Pattern(
            tuple(name for name in selected(pattern) if name in group),
            tuple(edges),
            tuple(each for each in pattern.constraints if each.variable in group),
        )
        for group, edges in groups
    ]


def _names(edge: PatternEdge) -> set[str]:
    places = (edge.subject, edge.property, edge.object)
    return {place.name for place in places if isinstance(place, Variable)}


class _TooMuch(Exception):
    """The limit of possibilities is exceeded."""


_Key = tuple[Term | None, Term | None, Term | None]
_Step = tuple[Binding, tuple[PatternEdge, ...]]
"""A binding and the edges that are still to be bound."""


class _GraphSearch:
    """A graph's edges, including implied ones, under all keys: `(s, None, o)` are those from s to o.

    `left` is how many possibilities may still be tried.
    """

    def __init__(self, graph: Graph, taxonomy: Taxonomy) -> None:
        self.taxonomy, self.left = taxonomy, math.inf
        self.edges = tuple(
            dict.fromkeys(implied for edge in graph.edges for implied in _implied_edges(edge, taxonomy))
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
        """Yield every binding of all variables lazily; some may repeat."""
        waiting: list[Iterator[_Step]] = [iter([({}, pattern.edges)])]
        while waiting:
            step = next(waiting[-1], None)
            if step is None:
                waiting.pop()
            elif step[1]:
                waiting.append(self._next(pattern, *step))
            else:
                yield step[0]

    def _next(self, pattern: Pattern, bound: Binding, edges: tuple[PatternEdge, ...]) -> Iterator[_Step]:
        """Yield the bindings after binding one more edge, the one with the fewest possibilities."""
        fewest = min(edges, key=lambda edge: len(self.possible(edge, bound)))
        self.look(len(edges))
        remaining = tuple(edge for edge in edges if edge is not fewest)
        for edge in self.possible(fewest, bound):
            self.look(1)
            row = _bound(fewest, edge, bound)
            if row is not None and self.holds(pattern, bound, row):
                yield row, remaining

    def look(self, count: int) -> None:
        """Count possibilities that are tried."""
        self.left -= count
        if self.left < 0:
            raise _TooMuch

    def possible(self, edge: PatternEdge, bound: Binding) -> list[Edge]:
        """Return the published edges that an edge of the pattern may be, given the current binding."""
        subject, property, object = (
            bound.get(place.name) if isinstance(place, Variable) else place
            for place in (edge.subject, edge.property, edge.object)
        )
        return self.under.get((subject, property, object), [])

    def holds(self, pattern: Pattern, bound: Binding, binding: Binding) -> bool:
        """Return whether the constraints hold for the variables that have just been bound."""
        new = binding.keys() - bound.keys()
        constraints = [constraint for constraint in pattern.constraints if constraint.variable in new]
        return all(self.satisfies(binding[constraint.variable], constraint) for constraint in constraints)

    def satisfies(self, term: Term, constraint: Constraint) -> bool:
        of_values = OF_VALUES.get(constraint.kind)
        if of_values is not None:
            return of_values(term, constraint.operands)
        typed = [edge.object for edge in self.under.get((term, _TYPE, None), [])]
        places = self.taxonomy.classes_of(term, typed)
        return _OF_CLASSES[constraint.kind](self.taxonomy, places, constraint.operands[0])


_TYPE = Term(TermKind.IRI, TYPE)


def _implied_edges(edge: Edge, taxonomy: Taxonomy) -> Iterable[Edge]:
    return [edge._replace(property=above) for above in taxonomy.super_properties(edge.property)]


def _bound(pattern_edge: PatternEdge, edge: Edge, bound: Binding) -> Binding | None:
    """Extend the binding so that an edge of the pattern is a published one; None if that is impossible."""
    row = dict(bound)
    for place, term in zip(
        (pattern_edge.subject, pattern_edge.property, pattern_edge.object), edge, strict=True
    ):
        if (row.setdefault(place.name, term) if isinstance(place, Variable) else place) != term:
            return None
    return row


def _ordered(order: Callable[[Any, Any], bool]) -> Callable[[Term, tuple[Term, ...]], bool]:
    return lambda term, operands: compare(term, order, operands[0])


def _text_satisfies(term: Term, inside: Callable[[str], bool]) -> bool:
    text = text_of(term)
    return text is not None and inside(text)


OF_VALUES: dict[ConstraintKind, Callable[[Term, tuple[Term, ...]], bool]] = {
    ConstraintKind.EQUAL: lambda term, operands: equal(term, operands[0]) is True,
    ConstraintKind.UNEQUAL: lambda term, operands: equal(term, operands[0]) is False,
    ConstraintKind.IN: lambda term, operands: any(equal(term, operand) for operand in operands),
    ConstraintKind.LESS: _ordered(compared.lt),
    ConstraintKind.AT_MOST: _ordered(compared.le),
    ConstraintKind.GREATER: _ordered(compared.gt),
    ConstraintKind.AT_LEAST: _ordered(compared.ge),
    ConstraintKind.CONTAINS: lambda term, operands: _text_satisfies(
        term, lambda text: operands[0].text in text
    ),
    ConstraintKind.STARTS_WITH: lambda term, operands: _text_satisfies(
        term, lambda text: text.startswith(operands[0].text)
    ),
    ConstraintKind.IS: lambda term, operands: term == operands[0],
    ConstraintKind.IS_NOT: lambda term, operands: term != operands[0],
}
"""Constraints on a term by itself, independent of the taxonomy."""

_Places = frozenset[Term]
_OF_CLASSES: dict[ConstraintKind, Callable[[Taxonomy, _Places, Term], bool]] = {
    ConstraintKind.AT_CLASS: lambda taxonomy, places, of: of in places,
    ConstraintKind.NOT_AT_CLASS: lambda taxonomy, places, of: of not in places,
    ConstraintKind.AT_OR_BELOW: lambda taxonomy, places, of: any(
        taxonomy.is_below(place, of) for place in places
    ),
    ConstraintKind.BELOW: lambda taxonomy, places, of: any(
        taxonomy.is_below(each, of) for each in places - {of}
    ),
    ConstraintKind.AT_OR_ABOVE: lambda taxonomy, places, of: not places.isdisjoint(taxonomy.ancestors(of)),
    ConstraintKind.ABOVE: lambda taxonomy, places, of: not places.isdisjoint(taxonomy.ancestors(of) - {of}),
}


def _reasons(pattern: Pattern, bound: Binding) -> Iterator[Reason]:
    """Yield one reason per edge, with its object, then one per constraint, each at its subject."""
    for edge in pattern.edges:
        yield Reason(
            show_edge(edge), _shown_value(_end(edge.object, bound)), _named(_end(edge.subject, bound))
        )
    for constraint in pattern.constraints:
        edge = next(edge for edge in pattern.edges if _mentions(edge, constraint.variable))
        value = _shown_value(bound[constraint.variable])
        yield Reason(show_constraint(constraint), value, _named(_end(edge.subject, bound)))


def _end(place: Term | Variable, bound: Binding) -> Term:
    return bound[place.name] if isinstance(place, Variable) else place


def _mentions(edge: PatternEdge, variable: str) -> bool:
    places = (edge.subject, edge.property, edge.object)
    return any(isinstance(place, Variable) and place.name == variable for place in places)


def _shown_value(term: Term) -> Scalar:
    value = scalar(term) if term.kind is TermKind.LITERAL else _named(term)
    return _cut(value) if isinstance(value, str) else value


def _named(term: Term) -> str:
    return _cut(f"_:{term.text}" if term.kind is TermKind.BLANK else term.text, LONGEST_NAME)


def _cut(value: str, most: int = SHOWN) -> str:
    return value if len(value) <= most else value[: most - 1] + "…"


MOST_TEXT = 100_000
"""Maximum total length of the values of a notification's bindings: a literal may be a whole book."""


def results_of(pattern: Pattern, bindings: ShownBindings) -> dict[str, Any]:
    """Format the bindings of a match as SPARQL 1.1 JSON results; `note` mentions those that are not shown."""
    shown = bindings.shortened(MOST_TEXT)
    rows = [{name: _value(term) for name, term in row.items()} for row in shown.bindings]
    results: dict[str, Any] = {"head": {"vars": list(selected(pattern))}, "results": {"bindings": rows}}
    return results | {"note": shown.note()} if shown.note() else results


def _value(term: Term) -> dict[str, str]:
    if term.kind is TermKind.IRI:
        return {"type": "uri", "value": term.text}
    if term.kind is TermKind.BLANK:
        return {"type": "bnode", "value": term.text}
    value = {"type": "literal", "value": term.text}
    if term.language:
        return value | {"xml:lang": term.language}
    return value if term.datatype == STRING else value | {"datatype": term.datatype}
