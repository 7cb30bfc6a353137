"""S, E and H: the three workloads with a limit program, at every size, uniform and Zipf-distributed, with peers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple, Protocol

from benchmarks.engine import Engine
from benchmarks.engines import IndexEngine
from benchmarks.harness import Bench, Case
from benchmarks.limit.engine import LimitEngine
from benchmarks.peers.catalogue import peers
from benchmarks.peers.duckdb_join import DuckDB
from benchmarks.peers.polars_join import Polars
from benchmarks.scale import Scale
from benchmarks.workloads import Workload, equalities, intervals, stock


class Make(Protocol):
    def __call__(self, subscriptions: int, events: int, *, skewed: bool = False) -> Workload: ...


class Family(NamedTuple):
    """A workload with a limit: the name of the program, the generator, and the number of events."""

    program: str
    make: Make
    events: Callable[[Scale], int]


STOCK = Family("stock", stock, lambda scale: scale.stock_events)
EQUALITIES = Family("equalities", equalities, lambda scale: scale.equality_events)
INTERVALS = Family("intervals", intervals, lambda scale: scale.interval_events)
FAMILIES = (STOCK, EQUALITIES, INTERVALS)


def run(family: Family, bench: Bench, scale: Scale) -> None:
    """Measure all sizes, uniform values first."""
    for skewed, sizes in ((False, scale.sizes), (True, scale.skewed)):
        for size in sizes:
            bench.say(f"{family.program}: making {size:,} subscriptions")
            workload = family.make(size, family.events(scale), skewed=skewed)
            bench.check(workload)
            against_the_limit(bench, family, workload)
            if size <= max(scale.peers, default=0):
                against(bench, workload, peers() if size in scale.peers and not skewed else joins())


def against_the_limit(bench: Bench, family: Family, workload: Workload) -> None:
    """Measure the index and the limit in turns, so that other load affects both."""
    events = len(workload.events)
    cases = [Case(IndexEngine(), workload, events), Case(LimitEngine(family.program), workload, events)]
    bench.side_by_side(cases)


def joins() -> list[Engine]:
    """Return the joins of databases, the fastest peers."""
    return [DuckDB(), Polars()]


def against(bench: Bench, workload: Workload, engines: Iterable[Engine]) -> None:
    """Measure engines one after another: some use all available memory."""
    for engine in engines:
        bench.measure(engine, workload, len(workload.events))
