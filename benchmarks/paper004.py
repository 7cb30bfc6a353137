"""Paper 004's own experiments: time against the number of subscriptions and the share of equalities.

Figure 9: six attributes, half of the comparisons are equalities, growing numbers of subscriptions.
Figure 10: a fixed number of subscriptions, the share of equalities p from 0 to 1.
Figure 11: equalities only, growing numbers of subscriptions.
"""

from __future__ import annotations

from collections.abc import Iterable

from benchmarks.engines import IndexEngine, PlainEngine
from benchmarks.harness import Bench
from benchmarks.scale import Scale
from benchmarks.workloads import Workload, paper004
from research.events.catalogue import ALGORITHMS

ITS_OWN = ("fair predicate", "equality-preferred", "quarantining")
"""The algorithms the paper measured."""

GROWING = (*ITS_OWN, "hanson", "neon")
SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)


def run(bench: Bench, scale: Scale) -> None:
    more_subscriptions(bench, scale)
    other_shares(bench, scale)
    only_equalities(bench, scale)


def more_subscriptions(bench: Bench, scale: Scale) -> None:
    """Measure figure 9, and the cost of adding a subscription (section 4, last paragraph)."""
    few, small = (
        [(scale.gough, tuple(ALGORITHMS))],
        [(scale.small, tuple(n for n in ALGORITHMS if n != "gough"))],
    )
    growing = [(size, GROWING) for size in scale.plain]
    for size, names in [*few, *small, *growing, *((size, ()) for size in scale.index)]:
        compare(bench, scale, paper004(size, scale.index_events), names)


def other_shares(bench: Bench, scale: Scale) -> None:
    """Measure figure 10."""
    for share in SHARES:
        compare(bench, scale, paper004(scale.mixed_plain, scale.index_events, share), ITS_OWN)
        if share not in (0.5, 1.0):  # measured at this size by the other two functions
            compare(bench, scale, paper004(scale.mixed_index, scale.index_events, share), ())


def only_equalities(bench: Bench, scale: Scale) -> None:
    """Measure figure 11. Equality-preferred and quarantining are the same algorithm here."""
    for size in (scale.small, *scale.plain):
        compare(bench, scale, paper004(size, scale.index_events, 1.0), ("quarantining",))
    for size in scale.index:
        compare(bench, scale, paper004(size, scale.index_events, 1.0), ())


def compare(bench: Bench, scale: Scale, workload: Workload, names: Iterable[str]) -> None:
    """Measure the index and the named algorithms on one workload, unless another figure has done so already."""
    more, size = paper004(1000, 0, seed=5).subscriptions, len(workload.subscriptions)
    if not bench.has(workload.name, size, IndexEngine.name):
        bench.measure(IndexEngine(), workload, scale.index_events, more)
    for name in names:
        if not bench.has(workload.name, size, name):
            engine = PlainEngine(name, ALGORITHMS[name], additions=1 if name == "gough" else 100)
            bench.measure(engine, workload, scale.plain_events, more)
