"""The algorithms for graphs by name: those that paper 002 compares in figure 10."""

from __future__ import annotations

from collections.abc import Callable

from research.graphs.algorithm import GraphAlgorithm, NaiveGraphs
from research.graphs.g_topss import GTopss
from research.graphs.ops import Ops
from tidings.graphs.taxonomy import Taxonomy

GRAPH_ALGORITHMS: dict[str, Callable[[Taxonomy], GraphAlgorithm]] = {
    "naive": NaiveGraphs,
    "g-topss": GTopss,
    "ops": Ops,
    "ops, bare structures": lambda taxonomy: Ops(taxonomy, bare=True),
}
