"""Graphs and patterns as in paper 002, section 5 and table 1.

    SELECT * WHERE (e:n1, e:p17, ?x1) (?x1, e:p4, e:n9) (e:n9, e:p52, ?x3) ...

A graph of k nodes and m edges is a path through all k nodes, and m - k + 1 edges between pairs of them drawn at random.
Publications are such graphs, and so are subscriptions without overlap. Overlapping subscriptions are subgraphs of one
big graph, and matching ones are subgraphs of a publication. Then some nodes become variables.

**Size.** Table 1 gives subscriptions 5 nodes and 35 edges. Five nodes make 20 ordered pairs, so there must be several
edges from one node to another, with different labels: here up to three. A publication of 35 nodes and 90 edges has no
five nodes with 35 edges between them, so the few subscriptions that are made to match take all existing edges, about
five. Figure 9(e) has 4 to 8 edges; `FIGURE_9E` is its upper end, where matching subscriptions are not so much smaller
than the others. Table 1 gives the default: in the paper all parameters but the varied one are from the table.

**Labels.** The paper does not give their number. There must be at least as many as edges from one node to another, or
two edges would be equal. The number decides how often an edge between two variables matches by chance, and so how many
subscriptions the first stage of G-ToPSS reaches, and how early a search for structures ends. The default, 100, is our
choice: as many as a few vocabularies for metadata have together.

**Many publications.** The paper matches one. Here publications have *cores* in common: the first half of their nodes,
and the edges between those. Subscriptions are subgraphs of a core, so that each publication matches the given
share of them, for any number of publications. The other half is new in each.
"""

from __future__ import annotations

import numpy as np

from benchmarks.workloads.graph_draws import Size
from benchmarks.workloads.graph_patterns import GraphWorkload
from benchmarks.workloads.graph_publications import Core, tree_of_classes
from benchmarks.workloads.graph_subscriptions import subscriptions
from benchmarks.workloads.graph_table import COMMON_NODES, Table1
from tidings.graphs.model import Graph

__all__ = ["FIGURE_9E", "GraphWorkload", "Size", "Table1", "graphs"]

FIGURE_9E = Size(5, 8)


def graphs(table: Table1, publications: int, seed: int = 2) -> GraphWorkload:
    """Generate subscriptions and publications, reproducibly from a seed."""
    rng = np.random.default_rng(seed)
    cores = [Core.drawn(rng, table, number) for number in range(table.cores(publications))]
    published_graphs = tuple(cores[at % len(cores)].publication(rng, at) for at in range(publications))
    unused = COMMON_NODES + max(publications, len(cores)) * table.publication.nodes
    patterns = subscriptions(rng, table, cores, unused)
    name = f"graphs, subscriptions of {table.subscription.nodes} nodes and {table.subscription.edges} edges"
    return GraphWorkload(
        name, patterns, published_graphs, len(cores), tree_of_classes() if table.classes else Graph(())
    )
