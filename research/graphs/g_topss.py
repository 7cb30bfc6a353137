"""G-ToPSS (paper 002, section 4): all subscriptions in one graph, binding tables, and a join of complete
ones.

Time: lookups for each published edge, up to the square of the most variables of a subscription; a sum for each
      subscription and present edge of it; a join and a walk through the taxonomy for each complete one.
Space: an edge of many subscriptions is stored once, with a list of them.
Change: cheap; an added or removed subscription touches only its own edges.

The code follows the paper's pseudo-code, except where that gives wrong answers; comments mark these places.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import NamedTuple

from research.events.algorithm import deep_size
from research.graphs.algorithm import Bindings, Constraints, TaxonomyWalk, entail_edges
from tidings.graphs.model import Edge, Graph, Term
from tidings.graphs.patterns.pattern_tree import Pattern, Variable, selected, variables
from tidings.graphs.taxonomy import Taxonomy


class Star(NamedTuple):
    """⋆1, ⋆2, ...: a variable of any subscription."""

    number: int


Label = Term | Star
"""The label of a node or an edge of G_M."""

Row = tuple[Term, ...]


@dataclass(slots=True, eq=False)
class MergedEdge:
    """An edge of G_M, and the ids of the subscriptions that have it."""

    source: Label
    property: Label
    target: Label
    subscriptions: dict[str, None] = field(default_factory=dict)

    def columns(self) -> tuple[Label, ...]:
        """Return the columns of its binding table: `newTable(E.v, E.w)` in the paper.

        The property is a third column if it is a variable. An edge from ⋆1 to ⋆1 has one column, not two.
        """
        named = (self.property,) if isinstance(self.property, Star) else ()
        return tuple(dict.fromkeys((self.source, self.target, *named)))

    def row(self, edge: Edge) -> Row | None:
        """Return the row that a published edge adds. (A, p, B) adds none to (⋆1, p, ⋆1): a star is one term."""
        bound: dict[Label, Term] = {}
        for label, term in ((self.source, edge.subject), (self.target, edge.object)):
            if bound.setdefault(label, term) != term:
                return None
        if (
            isinstance(self.property, Star)
            and bound.setdefault(self.property, edge.property) != edge.property
        ):
            return None
        return tuple(bound.values())


class MergedGraph:
    """G_M: all subscriptions in one graph (paper 002, section 4.1, figure 7).

        (A, B)    ->   a  ->  {s1, s2}         two levels of hashing: the names of the two nodes,
                       b  ->  {s1}             then the name of the edge; then its subscriptions
        (A, ⋆1)   ->   c  ->  {s2}

    A node that several subscriptions name is stored once. Variables have no common names, so they become
    *stars*: the first variable of each subscription is ⋆1, the second ⋆2, and all subscriptions share the
    stars.
    """

    def __init__(self) -> None:
        self.pairs: dict[tuple[Label, Label], dict[Label, MergedEdge]] = {}
        self._nodes = Counter[Star]()
        self._properties = Counter[Star]()

    def insert(self, id: str, edges: Iterable[tuple[Label, Label, Label]]) -> tuple[MergedEdge, ...]:
        """Algorithm `Insert`: return the edges of G_M for those of a subscription, each once.

        (?x, p, ?y) written twice is one edge of G_M. Counted twice, it would be awaited twice.
        """
        return tuple(self._insert_edge(id, *edge) for edge in dict.fromkeys(edges))

    def _insert_edge(self, id: str, source: Label, property: Label, target: Label) -> MergedEdge:
        named = self.pairs.setdefault((source, target), {})
        edge = named.get(property)
        if edge is None:
            edge = named[property] = MergedEdge(source, property, target)
            self._nodes.update(_stars(source, target))
            self._properties.update(_stars(property))
        edge.subscriptions[id] = None
        return edge

    def delete(self, id: str, edges: Iterable[MergedEdge]) -> None:
        """Delete a subscription, which the paper leaves out. An edge without subscriptions goes, and the last
        use of a star.

        Otherwise one subscription of ten variables would make each publication look up a hundred pairs for
        ever.
        """
        for edge in edges:
            del edge.subscriptions[id]
            if not edge.subscriptions:
                self._drop(edge)

    def _drop(self, edge: MergedEdge) -> None:
        named = self.pairs[edge.source, edge.target]
        del named[edge.property]
        if not named:
            del self.pairs[edge.source, edge.target]
        for uses, stars in (
            (self._nodes, _stars(edge.source, edge.target)),
            (self._properties, _stars(edge.property)),
        ):
            uses.subtract(stars)
            for star in stars:
                if not uses[star]:
                    del uses[star]

    @property
    def stars(self) -> tuple[Star, ...]:
        """The stars at nodes: at most as many as the most variables of a subscription."""
        return tuple(self._nodes)

    def find_matches(self, edge: Edge) -> Iterator[MergedEdge]:
        """Yield the edges of G_M that a published edge matches: (v, w), (v, ⋆i), (⋆i, w) and (⋆i, ⋆j).

        The paper speaks of a fully connected graph of v, w and all stars. That has (w, v) too, and with it
        the published (A, p, B) would match a subscription to (B, p, A); section 4.2 lists only the four.

        Variables at properties, which the paper leaves for the future, are stars too: at the second level.
        """
        stars = self.stars
        sources: tuple[Label, ...] = (edge.subject, *stars)
        targets: tuple[Label, ...] = (edge.object, *stars)
        for source in sources:
            for target in targets:
                named = self.pairs.get((source, target))
                if named is not None:
                    yield from self._find_labelled(named, edge.property)

    def _find_labelled(self, named: Mapping[Label, MergedEdge], property: Term) -> Iterator[MergedEdge]:
        if (found := named.get(property)) is not None:
            yield found
        for star in self._properties:
            if (found := named.get(star)) is not None:
                yield found


def _stars(*labels: Label) -> tuple[Star, ...]:
    return tuple(label for label in labels if isinstance(label, Star))


def number_variables(pattern: Pattern) -> dict[str, Star]:
    """Return a star for each variable, in order of appearance: ?x is ⋆1 if it is the first."""
    return {name: Star(number) for number, name in enumerate(variables(pattern), 1)}


def label_edges(pattern: Pattern, stars: Mapping[str, Star]) -> Iterator[tuple[Label, Label, Label]]:
    """Yield the edges of the pattern with stars for variables: source, property, target."""

    def label(each: Term | Variable) -> Label:
        return stars[each.name] if isinstance(each, Variable) else each

    for edge in pattern.edges:
        yield label(edge.subject), label(edge.property), label(edge.object)


class Table(NamedTuple):
    """A binding table (paper 002, section 4.2, figure 8): rows of terms under labels.

        A   ⋆1          ⋆1  B           A   ⋆1  B
        A   B           C   B           A   C   B
        A   C     ⋈     D   B     =     A   E   B
        A   E           E   B

    Each edge of G_M has a table of the published edges that match it. The rows of the join over the edges of
    a subscription are its bindings: every edge is present, and each star means one term throughout.
    """

    columns: tuple[Label, ...]
    rows: list[Row]


def join_tables(tables: Sequence[Table]) -> Table:
    """Return the natural join of all tables.

    The paper leaves the order open. In the written order, (A, p, ?x) (B, q, ?y) (?x, r, ?y) makes every pair
    of an ?x and an ?y before the third edge removes most of them.
    """
    return reduce(natural_join, order_tables(tables))


def order_tables(tables: Sequence[Table]) -> list[Table]:
    """Order tables: next is one that adds few stars, among those one that shares some; short ones first."""
    left = sorted(tables, key=lambda table: len(table.rows))
    known: set[Label] = set()
    order: list[Table] = []

    def adds(table: Table) -> tuple[int, bool]:
        stars = {column for column in table.columns if isinstance(column, Star)}
        return len(stars - known), known.isdisjoint(stars)

    while left:
        best = left.pop(min(range(len(left)), key=lambda at: adds(left[at])))
        known.update(best.columns)
        order.append(best)
    return order


def natural_join(left: Table, right: Table) -> Table:
    """Join rows that agree in all columns with the same label; all pairs if there is no such column."""
    common = [column for column in left.columns if column in right.columns]
    added = [column for column in right.columns if column not in left.columns]
    from_left = [left.columns.index(column) for column in common]
    from_right = [right.columns.index(column) for column in common]
    rest = [right.columns.index(column) for column in added]
    by_key: dict[Row, list[Row]] = defaultdict(list)
    for row in right.rows:
        by_key[tuple(row[at] for at in from_right)].append(tuple(row[at] for at in rest))
    rows = [row + more for row in left.rows for more in by_key.get(tuple(row[at] for at in from_left), ())]
    return Table((*left.columns, *added), rows)


@dataclass(frozen=True, slots=True)
class StoredPattern:
    """A subscription: its pattern, its edges in G_M, and the star of each variable."""

    pattern: Pattern
    edges: tuple[MergedEdge, ...]
    stars: dict[str, Star]


@dataclass(frozen=True, slots=True)
class ReachedEdges:
    """What one publication reaches in G_M: binding tables, and how many edges of each subscription have one.

    The paper keeps both in G_M and resets only the counters of subscriptions that matched. Then the second of
    two publications with one half of a subscription each would match it. Here both end with the publication.
    """

    tables: dict[MergedEdge, list[Row]]
    counts: Counter[str]


class GTopss:
    def __init__(self, taxonomy: Taxonomy) -> None:
        self.merged = MergedGraph()
        self._held: dict[str, StoredPattern] = {}
        self._needed: dict[str, int] = {}
        self._walk = TaxonomyWalk(taxonomy)

    def add(self, id: str, pattern: Pattern) -> None:
        self.remove(id)
        stars = number_variables(pattern)
        edges = self.merged.insert(id, label_edges(pattern, stars))
        self._held[id], self._needed[id] = StoredPattern(pattern, edges, stars), len(edges)

    def remove(self, id: str) -> bool:
        held = self._held.pop(id, None)
        if held is not None:
            self.merged.delete(id, held.edges)
            del self._needed[id]
        return held is not None

    def match(self, graph: Graph) -> dict[str, Bindings]:
        edges = entail_edges(graph, self._walk.taxonomy)
        reached, constraints = self.reach_edges(edges), Constraints(edges, self._walk)
        needed = self._needed
        complete = [id for id, count in reached.counts.items() if count == needed[id]]
        found = {id: self._bindings(self._held[id], reached, constraints) for id in complete}
        return {id: bindings for id, bindings in found.items() if bindings}

    def reach_edges(self, edges: Iterable[Edge]) -> ReachedEdges:
        """Fill the binding tables with the published edges: the first stage.

        An edge is counted when its table gets its first row. The paper counts each row, and tests whether the
        sum is greater than the number of edges: with (A, p, B), (A, p, C), (A, p, D) published, the two edges
        (A, p, ?x) (?x, q, E) have a sum of three, though there is no q at all; and with each of them present
        once, the sum of two is not greater. It also adds a row once for each subscription that has the edge.
        """
        tables, counts = dict[MergedEdge, list[Row]](), Counter[str]()
        for edge in edges:
            for merged in self.merged.find_matches(edge):
                row = merged.row(edge)
                if row is None:
                    continue
                if merged in tables:
                    tables[merged].append(row)
                else:
                    tables[merged] = [row]
                    counts.update(merged.subscriptions.keys())
        return ReachedEdges(tables, counts)

    def _bindings(self, held: StoredPattern, reached: ReachedEdges, constraints: Constraints) -> Bindings:
        """Join, check the constraints, and project to the selected variables: the second stage.

        The paper's CheckConstraint returns with the answer for the first variable. All constraints must hold.
        """
        columns, rows = join_tables([Table(edge.columns(), reached.tables[edge]) for edge in held.edges])
        checks = [(columns.index(held.stars[each.variable]), each) for each in held.pattern.constraints]
        chosen = [columns.index(held.stars[name]) for name in selected(held.pattern)]
        return frozenset(
            tuple(row[at] for at in chosen)
            for row in rows
            if all(constraints.hold(each, row[at]) for at, each in checks)
        )

    def size(self) -> int:
        return deep_size(self)

    def __len__(self) -> int:
        return len(self._held)
