"""Stock quotes: S, and further experiments: ten times as many subscriptions, subscriptions as texts."""

from __future__ import annotations

from benchmarks import heart
from benchmarks.engines import IndexEngine, PlainEngine, TextEngine
from benchmarks.harness import Bench, Case
from benchmarks.scale import Scale
from benchmarks.workloads import stock
from research.events.catalogue import ALGORITHMS

TEN = 10
EASE = 3.0
"""With a tenth of the subscriptions, this ease gives an event as many matches as all of them at ease 0."""

ALL = "stock, ten times as many"
FEWER_SYMBOLS = "stock, a tenth of the symbols"
WIDER_RANGES = "stock, wider ranges"
TEXTS = "stock, from text"
FEW = "stock, paper 004's algorithms"


def run(bench: Bench, scale: Scale) -> None:
    heart.run(heart.STOCK, bench, scale)
    ten_times(bench, scale)
    from_text(bench, scale)
    few(bench, scale)


def ten_times(bench: Bench, scale: Scale) -> None:
    """Measure the cost of ten times as many subscriptions with the same number of matches per event.

    The smaller workload has a tenth of the symbols (with as many subscriptions per symbol), or wider ranges (with a
    tenth of the subscriptions per symbol).
    """
    size, events = scale.stock, scale.stock_events
    whole = stock(size, events, name=ALL)
    fewer = stock(size // TEN, events, symbols=5000 // TEN, name=FEWER_SYMBOLS)
    wider = stock(size // TEN, events, ease=EASE, name=WIDER_RANGES)
    more = stock(1000, 0, seed=5).subscriptions
    bench.side_by_side(
        [
            Case(IndexEngine(), whole, events, more),
            Case(IndexEngine(), fewer, events),
            Case(IndexEngine(), wider, events),
        ]
    )


def from_text(bench: Bench, scale: Scale) -> None:
    """Measure the same subscriptions as texts: parsed, compiled and indexed."""
    bench.measure(TextEngine(), stock(scale.stock, scale.stock_events, name=TEXTS), scale.stock_events)


def few(bench: Bench, scale: Scale) -> None:
    """Measure so few subscriptions that the naive algorithm is feasible."""
    small = stock(scale.small, scale.stock_events, name=FEW)
    bench.measure(IndexEngine(), small, scale.stock_events)
    for name in ("naive", "quarantining", "hanson"):
        bench.measure(PlainEngine(name, ALGORITHMS[name]), small, scale.plain_events)
