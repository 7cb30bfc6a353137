"""The algorithms for graphs by name: those that paper 002 compares in figure 10."""

from __future__ import annotations

from collections.abc import Callable

from tidings.matching.algorithms.graphs.g_topss import GTopss
from tidings.matching.algorithms.graphs.naive import NaiveGraphs
from tidings.matching.algorithms.graphs.ops import Ops
from tidings.matching.algorithms.graphs.protocol import GraphAlgorithm
from tidings.taxonomies import Taxonomy

GRAPH_ALGORITHMS: dict[str, Callable[[Taxonomy], GraphAlgorithm]] = {
    "naive": NaiveGraphs,
    "g-topss": GTopss,
    "ops": Ops,
    "ops, bare structures": lambda taxonomy: Ops(taxonomy, bare=True),
}
