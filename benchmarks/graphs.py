"""Graphs: paper 002's experiments (table 1, figures 9 and 10), and the same at a million subscriptions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from benchmarks.engine import Engine
from benchmarks.graph_engines import EachQuery, GraphIndex, Graphs, PlainGraphs, by_definition
from benchmarks.harness import Bench, Case
from benchmarks.scale import Scale
from benchmarks.workloads.graphs import Size, Table1, graphs
from tidings.matching.algorithms.graphs.catalogue import GRAPH_ALGORITHMS

NAME = "graphs"
FEW = 2
"""Publications whose matches are also found by the definition, and that slow engines are given."""

EDGES = (4, 8, 16, 35)
MATCHED = (0.0001, 0.001, 0.01, 0.05)
OVERLAP = (0.1, 0.5, 0.9)


def run(bench: Bench, scale: Scale) -> None:
    """Figure 9's numbers of subscriptions with figure 10's comparison, then figure 9's other parameters."""
    for size in scale.graphs:
        engines = PLAIN if size <= scale.graphs_plain else ()
        compare(bench, scale, replace(Table1(), subscriptions=size), NAME, engines)
    base = replace(Table1(), subscriptions=scale.graphs_varied)
    for edges in EDGES:
        varied = replace(base, subscription=Size(5, edges))
        compare(bench, scale, varied, f"{NAME}, {edges} edges", PAPER)
    for matched in MATCHED:
        compare(bench, scale, replace(base, matched=matched), f"{NAME}, {matched:.2%} matched", PAPER)
    for overlap in OVERLAP:
        compare(bench, scale, replace(base, overlap=overlap), f"{NAME}, {overlap:.0%} overlap", PAPER)
    asking = replace(base, values=0.5, classes=0.5)
    compare(bench, scale, asking, f"{NAME}, with values and classes", PAPER)


Make = Callable[[Graphs], Engine]


def _plain(name: str) -> Make:
    return lambda workload: PlainGraphs(name, GRAPH_ALGORITHMS[name], workload.taxonomy)


SLOW = frozenset({"naive", "ops, bare structures", EachQuery.name})
"""These take up to seconds for one publication: they are given a few."""

PLAIN: tuple[Make, ...] = (*map(_plain, GRAPH_ALGORITHMS), lambda _: EachQuery())
PAPER: tuple[Make, ...] = (_plain("g-topss"),)


def compare(bench: Bench, scale: Scale, table: Table1, name: str, engines: tuple[Make, ...]) -> None:
    """The index, and beside it whoever takes part."""
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
        engine = make(workload)
        count = min(FEW, events) if engine.name in SLOW else events
        bench.measure(engine, workload, count)  # type: ignore[arg-type]
