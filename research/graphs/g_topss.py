"""G-ToPSS (paper 002, section 4): all subscriptions in one graph, binding tables, and a join where all edges are there.

Time: lookups for each published edge, as many as the square of the most variables a subscription has; a sum for each
      subscription and edge of it that is there; a join and a walk through the taxonomy for each that is complete.
Space: an edge that many subscriptions have is stored once, with a list of them.
Change: cheap; an added or removed subscription touches only its own edges.

The paper's pseudo-code is followed, except where it gives wrong answers. Each place says how.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from research.events.shared import deep_size
from research.graphs.binding_tables import Table, joined
from research.graphs.constraints import Constraints, Walk, entailed
from research.graphs.merged_graph import MergedEdge, MergedGraph, Row, Star, labelled, starred
from research.graphs.protocol import Bindings
from tidings.graphs.gql.gql_tree import Pattern, selected
from tidings.graphs.model import Edge, Graph
from tidings.graphs.taxonomy import Taxonomy


@dataclass(frozen=True, slots=True)
class Held:
    """A subscription: its pattern, its edges in G_M, and the star of each variable."""

    pattern: Pattern
    edges: tuple[MergedEdge, ...]
    stars: dict[str, Star]


@dataclass(frozen=True, slots=True)
class Reached:
    """What one publication has reached in G_M: binding tables, and how many edges of each subscription have one.

    The paper keeps both in G_M and sets back only the counters of subscriptions that matched. Then the second of
    two publications with one half of a subscription each would match it. Here both end with the publication.
    """

    tables: dict[MergedEdge, list[Row]]
    counts: Counter[str]


class GTopss:
    def __init__(self, taxonomy: Taxonomy) -> None:
        self.merged = MergedGraph()
        self._held: dict[str, Held] = {}
        self._needed: dict[str, int] = {}
        self._walk = Walk(taxonomy)

    def add(self, id: str, pattern: Pattern) -> None:
        self.remove(id)
        stars = starred(pattern)
        edges = self.merged.insert(id, labelled(pattern, stars))
        self._held[id], self._needed[id] = Held(pattern, edges, stars), len(edges)

    def remove(self, id: str) -> bool:
        held = self._held.pop(id, None)
        if held is not None:
            self.merged.delete(id, held.edges)
            del self._needed[id]
        return held is not None

    def match(self, graph: Graph) -> dict[str, Bindings]:
        edges = entailed(graph, self._walk.taxonomy)
        reached, constraints = self.reached(edges), Constraints(edges, self._walk)
        needed = self._needed
        complete = [id for id, count in reached.counts.items() if count == needed[id]]
        found = {id: self._bindings(self._held[id], reached, constraints) for id in complete}
        return {id: bindings for id, bindings in found.items() if bindings}

    def reached(self, edges: Iterable[Edge]) -> Reached:
        """The first stage: the published edges into the binding tables of the edges they may stand for.

        An edge is counted when its table gets its first row. The paper counts each row, and asks whether the sum is
        greater than the number of edges: with (A, p, B), (A, p, C), (A, p, D) published, the two edges (A, p, ?x)
        (?x, q, E) have a sum of three, though there is no q at all; and with each of them there once, the sum of two
        is not greater. It also adds a row once for each subscription that has the edge.
        """
        tables, counts = dict[MergedEdge, list[Row]](), Counter[str]()
        for edge in edges:
            for merged in self.merged.matched_by(edge):
                row = merged.row(edge)
                if row is None:
                    continue
                if merged in tables:
                    tables[merged].append(row)
                else:
                    tables[merged] = [row]
                    counts.update(merged.subscriptions.keys())
        return Reached(tables, counts)

    def _bindings(self, held: Held, reached: Reached, constraints: Constraints) -> Bindings:
        """The second stage: the join, the constraints, and of the rows that are left what is selected.

        The paper's CheckConstraint returns with the first variable's answer. All constraints must hold.
        """
        columns, rows = joined([Table(edge.columns(), reached.tables[edge]) for edge in held.edges])
        asked = [(columns.index(held.stars[each.variable]), each) for each in held.pattern.constraints]
        chosen = [columns.index(held.stars[name]) for name in selected(held.pattern)]
        return frozenset(
            tuple(row[at] for at in chosen)
            for row in rows
            if all(constraints.hold(each, row[at]) for at, each in asked)
        )

    def size(self) -> int:
        return deep_size(self)

    def __len__(self) -> int:
        return len(self._held)
