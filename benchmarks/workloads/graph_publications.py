"""Publications of graphs. Their first halves recur in others, so that many match the same subscriptions.

If subscriptions test values, each node has a number; if they test classes, each has a leaf of a tree of 121 classes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from benchmarks.workloads.graph_draws import Places, random_places
from benchmarks.workloads.graph_patterns import EXAMPLE, VALUE, EdgeCodes, Ints, named
from benchmarks.workloads.graph_table import COMMON_NODES, Table1
from tidings.graphs.model import RDFS, TYPE, XSD, Edge, Graph, iri, literal

VALUES = 1000
BRANCHES, INNER, LEAVES = 3, 40, 81
"""The tree of classes: class 0 above 1, 2 and 3, class 1 above 4, 5 and 6, ...; the first 40 are inner nodes."""


@dataclass(frozen=True)
class Core:
    """A publication whose first half recurs in others."""

    table: Table1
    number: int
    places: Places
    first: Ints

    @classmethod
    def drawn(cls, rng: np.random.Generator, table: Table1, number: int) -> Core:
        size = table.publication
        first = rng.integers(0, table.labels, (1, size.pairs))
        return cls(table, number, random_places(rng, size, 1), first)

    def nodes(self, at: int) -> Ints:
        """Return the nodes of publication `at`: those of the core, then its own."""
        place = np.arange(self.table.publication.nodes)
        of = np.where(place < self.table.core, self.number, at)
        return COMMON_NODES + of * self.table.publication.nodes + place

    def edges(self, first: Ints) -> EdgeCodes:
        source, target = self.table.publication.ends()
        pair, labels = self.places.pair[0], self.places.labels(first, self.table.labels)[0]
        return list(zip(source[pair].tolist(), labels.tolist(), target[pair].tolist(), strict=True))

    def inner(self) -> EdgeCodes:
        """Return the edges between nodes of the core."""
        core = self.table.core
        return [edge for edge in self.edges(self.first) if edge[0] < core and edge[2] < core]

    def publication(self, rng: np.random.Generator, at: int) -> Graph:
        """Generate a publication: the same edges, with new labels at edges of new nodes."""
        source, target = self.table.publication.ends()
        renewed = np.maximum(source, target) >= self.table.core
        first = np.where(renewed, rng.integers(0, self.table.labels, self.first.shape), self.first)
        nodes = self.nodes(at).tolist()
        edges = [
            Edge(named("n", nodes[s]), named("p", label), named("n", nodes[t]))
            for s, label, t in self.edges(first)
        ]
        return Graph((*edges, *_values_and_classes(self.table, nodes)))


def _values_and_classes(table: Table1, nodes: list[int]) -> Iterator[Edge]:
    for node in nodes:
        if table.values:
            value = literal(str(value_of(node)), XSD + "integer")
            yield Edge(named("n", node), iri(EXAMPLE + VALUE), value)
        if table.classes:
            yield Edge(named("n", node), iri(TYPE), named("c", class_of(node)))


def value_of(node: Ints | int) -> Ints | int:
    return node * 7919 % VALUES


def class_of(node: Ints | int) -> Ints | int:
    return INNER + node * 31 % LEAVES


def class_above(number: Ints | int) -> Ints | int:
    """Return the parent class; the root is its own parent."""
    return np.maximum(0, (number - 1) // BRANCHES)


def tree_of_classes() -> Graph:
    below = range(1, INNER + LEAVES)
    is_below = iri(RDFS + "subClassOf")
    return Graph(
        tuple(Edge(named("c", each), is_below, named("c", int(class_above(each)))) for each in below)
    )
