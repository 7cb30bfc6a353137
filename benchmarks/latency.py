"""Latency of a library call that matches a single event with a million subscriptions.

The event is decoded before, and the answer consists of rows: no id is read. The garbage collector runs as usual.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from benchmarks.harness import Bench, Counts, timed
from benchmarks.rows import Row, duration
from benchmarks.scale import Scale
from benchmarks.workloads import Workload, stock
from tidings.atoms import Atoms
from tidings.matching.index.index import Index

SHOWN = {"p50": 50, "p90": 90, "p99": 99, "p99.9": 99.9, "max": 100}


def run(bench: Bench, scale: Scale) -> None:
    workload = stock(scale.stock, scale.stock_events, name="latency, one quote a call")
    bench.check(workload)
    index = Index.create()
    built, _ = timed(lambda: index.add(workload.subscriptions.compiled()))
    bench.keep(one_by_one(bench, workload, index, built))


def one_by_one(bench: Bench, workload: Workload, index: Index, built: float) -> Row:
    """Match every event of the workload in a separate call."""
    size, events = len(workload.subscriptions), len(workload.events)
    atoms = workload.events.atoms
    singles = [atoms.part(place, place + 1) for place in range(events)]
    calls(index, singles[:100])  # maps files, loads kernels
    cpu, (seconds_each, counts) = timed(lambda: calls(index, singles))
    bench.agree(workload.name, size, "index", counts)
    points = {name: float(np.percentile(seconds_each, share)) for name, share in SHOWN.items()}
    bench.say("  " + ", ".join(f"{name} {duration(seconds)}" for name, seconds in points.items()))
    return Row(
        workload.name,
        size,
        "index",
        events_per_cpu_second=events / cpu,
        build_seconds=built,
        bytes_per_subscription=index.nbytes / size,
        matches_per_event=float(counts.mean()),
        seconds_per_event=cpu / events,
        p50_seconds=points["p50"],
        p99_seconds=points["p99"],
    )


def calls(index: Index, singles: Sequence[Atoms]) -> tuple[npt.NDArray[np.float64], Counts]:
    """Return the wall-clock seconds of each call, and its number of matches."""
    seconds, counts = np.empty(len(singles)), np.empty(len(singles), np.int64)
    clock = time.perf_counter
    for place, atoms in enumerate(singles):
        began = clock()
        matches = index.match(atoms)
        seconds[place] = clock() - began
        counts[place] = len(matches)
    return seconds, counts
