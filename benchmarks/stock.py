"""The stock workload: one equality of 5,000 symbols and four ranges, a million subscriptions."""

from __future__ import annotations

from benchmarks.engines import DuckDB, IndexEngine, PlainEngine, TextEngine
from benchmarks.harness import Bench
from benchmarks.scale import Scale
from benchmarks.workloads import stock
from tidings.matching.algorithms.catalogue import ALGORITHMS

TEN = 10
EASE = 3.0
"""At a tenth of the subscriptions, bounds this easy give an event as many matches as all have at ease 0."""

FEWER_SYMBOLS = "stock, a tenth of the symbols"
WIDER_RANGES = "stock, wider ranges"


def run(bench: Bench, scale: Scale) -> None:
    against_peers(bench, scale)
    from_text(bench, scale)
    a_tenth(bench, scale)


def against_peers(bench: Bench, scale: Scale) -> None:
    workload = stock(scale.stock, scale.stock_events)
    bench.measure(IndexEngine(), workload, scale.stock_events, stock(1000, 0, seed=5).subscriptions)
    bench.measure(DuckDB(), workload, scale.stock_events)
    small = stock(scale.small, scale.stock_events)
    bench.measure(IndexEngine(), small, scale.stock_events)
    bench.measure(DuckDB(), small, scale.stock_events)
    for name in ("naive", "quarantining", "hanson"):
        bench.measure(PlainEngine(name, ALGORITHMS[name]), small, scale.plain_events)


def from_text(bench: Bench, scale: Scale) -> None:
    """The same subscriptions as texts: parsed, compiled and indexed."""
    bench.measure(TextEngine(), stock(scale.stock, scale.stock_events), scale.stock_events)


def a_tenth(bench: Bench, scale: Scale) -> None:
    """A tenth of the subscriptions with as many matches an event: what do ten times as many cost?

    Once with a tenth of the symbols (as many subscriptions a symbol), once with wider ranges (a tenth of them).
    """
    size, events = scale.stock // TEN, scale.stock_events
    fewer = stock(size, events, symbols=5000 // TEN, name=FEWER_SYMBOLS)
    bench.measure(IndexEngine(), fewer, events)
    bench.measure(IndexEngine(), stock(size, events, ease=EASE, name=WIDER_RANGES), events)
