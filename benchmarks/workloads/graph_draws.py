"""Random graphs as in paper 002: a path through all nodes, then edges between random pairs.

The edges from one node to another are numbered from zero. Each pair has a random label for its first edge, and the
following labels for the others. So edges between the same nodes have different labels without redrawing.
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
        """Return the number of ordered pairs of nodes."""
        return self.nodes * (self.nodes - 1)

    @property
    def parallel(self) -> int:
        """Return the maximum number of edges between two nodes: the mean over all pairs, rounded up, plus one."""
        return 1 + -(-self.edges // self.pairs)

    def ends(self) -> tuple[Ints, Ints]:
        """Return the two nodes of each pair: (0, 1), (0, 2), ... (1, 0), (1, 2), ..."""
        source, target = np.nonzero(~np.eye(self.nodes, dtype=np.bool_))
        return source, target


class Places(NamedTuple):
    """Positions of the edges of graphs of one size, a row per graph: the pair, and the number within the pair."""

    pair: Ints
    nth: Ints

    def labels(self, first: Ints, labels: int) -> Ints:
        """Return labels from those of the first edge of each pair, a row per graph."""
        return (np.take_along_axis(first, self.pair, axis=1) + self.nth) % labels


def random_places(rng: np.random.Generator, size: Size, rows: int) -> Places:
    """Draw positions of edges. The path is first: from node 0 to node 1, from 1 to 2, and so on."""
    path = np.arange(size.nodes - 1) * size.nodes * size.parallel
    others = np.setdiff1d(np.arange(size.pairs * size.parallel), path)
    count = size.edges - len(path)
    drawn = np.nonzero(picked(rng, np.full(rows, count), len(others)))[1].reshape(rows, count)
    slots = np.hstack([np.tile(path, (rows, 1)), others[drawn]])
    return Places(*np.divmod(slots, size.parallel))


def random_subgraph(rng: np.random.Generator, edges: EdgeCodes, size: Size) -> tuple[list[int], EdgeCodes]:
    """Draw a connected subgraph: some nodes, and the edges between them up to the size.

    The edges that led to new nodes are always included, so that the subgraph is connected.
    """
    start = edges[int(rng.integers(len(edges)))]
    nodes, kept = [start[0]], list[tuple[int, int, int]]()
    while len(nodes) < size.nodes:
        leaving = [edge for edge in edges if (edge[0] in nodes) != (edge[2] in nodes)]
        chosen = leaving[int(rng.integers(len(leaving)))]
        nodes.append(chosen[2] if chosen[0] in nodes else chosen[0])
        kept.append(chosen)
    inside = [edge for edge in edges if edge[0] in nodes and edge[2] in nodes and edge not in kept]
    more = [inside[at] for at in rng.permutation(len(inside))]
    return nodes, [*kept, *more][: size.edges]
