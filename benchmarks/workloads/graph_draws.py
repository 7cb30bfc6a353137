"""Random graphs as paper 002 draws them: a path through all nodes, then edges between random pairs.

The edges from one node to another are numbered from zero; each pair has a random label for its first edge, and the
labels after it for the others. So no two edges between the same nodes are alike, and nothing has to be drawn again.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from benchmarks.workloads.draws import picked
from benchmarks.workloads.graph_patterns import EdgeCodes, Ints


class Size(NamedTuple):
    nodes: int
    edges: int

    @property
    def pairs(self) -> int:
        """Of one node and another, in either direction."""
        return self.nodes * (self.nodes - 1)

    @property
    def parallel(self) -> int:
        """How many edges there may be from one node to another: one more than are needed if all pairs had as many."""
        return 1 + -(-self.edges // self.pairs)

    def ends(self) -> tuple[Ints, Ints]:
        """The two nodes of each pair: (0, 1), (0, 2), ... (1, 0), (1, 2), ..."""
        source, target = np.nonzero(~np.eye(self.nodes, dtype=np.bool_))
        return source, target


class Places(NamedTuple):
    """Where the edges of some graphs of one size are, a row for each graph: between which pair, and which one there."""

    pair: Ints
    nth: Ints

    def labels(self, first: Ints, labels: int) -> Ints:
        """By the labels of the first edge of each pair, a row for each graph."""
        return (np.take_along_axis(first, self.pair, axis=1) + self.nth) % labels


def random_places(rng: np.random.Generator, size: Size, rows: int) -> Places:
    """The path comes first: from node 0 to node 1, from 1 to 2, and so on."""
    path = np.arange(size.nodes - 1) * size.nodes * size.parallel
    others = np.setdiff1d(np.arange(size.pairs * size.parallel), path)
    count = size.edges - len(path)
    drawn = np.nonzero(picked(rng, np.full(rows, count), len(others)))[1].reshape(rows, count)
    slots = np.hstack([np.tile(path, (rows, 1)), others[drawn]])
    return Places(*np.divmod(slots, size.parallel))


def random_subgraph(rng: np.random.Generator, edges: EdgeCodes, size: Size) -> tuple[list[int], EdgeCodes]:
    """Some nodes of a connected graph, themselves connected, and the edges between them, as many as may be.

    An edge that led to a new node is always among them, so that the subgraph holds together.
    """
    start = edges[int(rng.integers(len(edges)))]
    nodes, kept = [start[0]], list[tuple[int, int, int]]()
    while len(nodes) < size.nodes:
        leaving = [edge for edge in edges if (edge[0] in nodes) != (edge[2] in nodes)]
        taken = leaving[int(rng.integers(len(leaving)))]
        nodes.append(taken[2] if taken[0] in nodes else taken[0])
        kept.append(taken)
    inside = [edge for edge in edges if edge[0] in nodes and edge[2] in nodes and edge not in kept]
    more = [inside[at] for at in rng.permutation(len(inside))]
    return nodes, [*kept, *more][: size.edges]
