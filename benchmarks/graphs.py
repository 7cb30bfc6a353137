"""Graphs: paper 002's experiments (table 1, figures 9 and 10), the same at a million subscriptions, and decoding."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from benchmarks import graph_decoding
from benchmarks.engine import Engine
from benchmarks.graph_engines import EachQuery, GraphIndex, Graphs, PlainGraphs, by_definition
from benchmarks.harness import Bench, Case
from benchmarks.scale import Scale
from benchmarks.workloads.graphs import Size, Table1, graphs
from research.graphs.catalogue import GRAPH_ALGORITHMS

NAME = "graphs"
FEW = 2
"""Publications whose matches are checked with the reference evaluation."""

EDGES = (4, 8, 16, 35)
MATCHED = (0.0001, 0.001, 0.01, 0.05)
OVERLAP = (0.1, 0.5, 0.9)
SMALL = Size(5, 4)
CONSTANT_MATCHES = 10
"""Matches per publication, for any number of subscriptions."""


def run(bench: Bench, scale: Scale) -> None:
    """Measure figure 9's numbers of subscriptions with figure 10's algorithms, then figure 9's other parameters."""
    for size in scale.graphs:
        compare(bench, scale, replace(Table1(), subscriptions=size), NAME, _engines(size, scale))
    grow(bench, scale)
    vary(bench, scale)
    graph_decoding.run(bench, scale)


def grow(bench: Bench, scale: Scale) -> None:
    """Measure growing numbers of small subscriptions, with growing and with constant numbers of matches."""
    for size in scale.small_graphs:
        table = replace(Table1(), subscriptions=size, subscription=SMALL)
        compare(bench, scale, table, FEW_EDGES, ())
        compare(
            bench,
            scale,
            replace(table, matched=CONSTANT_MATCHES / size),
            f"{FEW_EDGES}, {CONSTANT_MATCHES} matched",
            (),
        )


def vary(bench: Bench, scale: Scale) -> None:
    base = replace(Table1(), subscriptions=scale.graphs_varied)
    for edges in EDGES:
        varied = replace(base, subscription=Size(5, edges))
        compare(bench, scale, varied, f"{NAME}{EDGES_VARIED.format(edges)}", PAPER)
    for matched in MATCHED:
        compare(
            bench, scale, replace(base, matched=matched), f"{NAME}{MATCHED_VARIED.format(matched)}", PAPER
        )
    for overlap in OVERLAP:
        compare(
            bench, scale, replace(base, overlap=overlap), f"{NAME}{OVERLAP_VARIED.format(overlap)}", PAPER
        )
    constrained = replace(base, values=0.5, classes=0.5)
    compare(bench, scale, constrained, f"{NAME}, with values and classes", PAPER)


FEW_EDGES = f"{NAME}, few edges"
EDGES_VARIED, MATCHED_VARIED, OVERLAP_VARIED = ", {} edges", ", {:.2%} matched", ", {:.0%} overlap"

Make = Callable[[Graphs], Engine]

SLOW = "naive"
"""It takes seconds per publication."""


def _plain(name: str) -> Make:
    return lambda workload: PlainGraphs(name, GRAPH_ALGORITHMS[name], workload.taxonomy, slow=name == SLOW)


PLAIN: tuple[Make, ...] = tuple(map(_plain, GRAPH_ALGORITHMS))
PAPER: tuple[Make, ...] = (_plain("g-topss"),)
QUERIES: tuple[Make, ...] = (lambda _: EachQuery(),)


def _engines(size: int, scale: Scale) -> tuple[Make, ...]:
    return (PLAIN if size <= scale.graphs_plain else ()) + (QUERIES if size <= scale.graphs_queries else ())


def compare(bench: Bench, scale: Scale, table: Table1, name: str, engines: tuple[Make, ...]) -> None:
    """Measure the index and other engines on one workload."""
    bench.say(f"{name}: making {table.subscriptions:,} subscriptions")
    workload = Graphs.of(graphs(table, scale.graph_publications), name)
    size = len(workload.subscriptions)
    if size <= scale.graphs_plain:
        few = workload.events.first(FEW).graphs
        counts = by_definition(workload.subscriptions.patterns(), few, workload.taxonomy)
        bench.agree(name, size, "the definition", counts)
    events = len(workload.events)
    bench.side_by_side([Case(GraphIndex(workload.taxonomy), workload, events)])  # type: ignore[arg-type]
    for make in engines:
        bench.measure(make(workload), workload, events)  # type: ignore[arg-type]
