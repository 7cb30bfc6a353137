"""Churn: subscriptions are added and removed while events are matched, as in a running stream.

A stream alternates: it applies the changes since the last batch, then matches a batch. This loop does the same in one
thread, in wall-clock time. A subscription *arrives* at its time for the given rate, waits for the current batch, is
compiled from its text, and is *visible* at the end of the first batch that was matched with it. For each new
subscription a random one is removed. A second thread does large merges at the same time.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from itertools import count

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.harness import Bench, Counts
from benchmarks.rows import Row
from benchmarks.scale import Scale
from benchmarks.workloads import Subscriptions, Workload, stock
from tidings.atoms import Atoms
from tidings.matching.compiler.compilation import compile_columns
from tidings.matching.index.compaction import CompactionWorker
from tidings.matching.index.index import Index

RATES = (0, 1_000, 100_000)
"""Additions per second, with the same number of removals."""

BATCH = 10_000
POOL = 100_000
"""Texts of new subscriptions. After the last one, the first is used again under another id."""


def run(bench: Bench, scale: Scale) -> None:
    generated = stock(scale.stock + min(POOL, scale.stock), scale.stock_events)
    workload = replace(generated, subscriptions=generated.subscriptions.part(slice(scale.stock)))
    more = generated.subscriptions.part(slice(scale.stock, None))
    for rate in RATES:
        churn = Churn(workload, more, rate)
        churn.go(scale.churn_seconds)
        churn.check(bench)
        bench.keep(churn.row())


class Churn:
    """One run: an index of a million subscriptions, changes at a rate, and the measurements."""

    def __init__(self, workload: Workload, more: Subscriptions, rate: int) -> None:
        self.name = f"churn, {rate:,} added and removed a second"
        self.workload, self.more, self.rate = workload, more, rate
        self.texts = list(more.texts())
        self.index = Index.create()
        self.index.add(workload.subscriptions.compiled())
        self.merger = CompactionWorker(self.index)
        self.alive = np.arange(len(workload.subscriptions))
        self.rng = np.random.default_rng(17)
        self.arrived = self.events = self.matches = 0
        self.delays: list[npt.NDArray[np.float64]] = []
        self.matching = self.elapsed = 0.0

    def go(self, seconds: float) -> None:
        """Alternate changes and batches until the time is over."""
        batches = self._batches()
        self._match(next(batches))  # the first one maps files
        self.events = self.matches = 0
        self.matching, began = 0.0, time.perf_counter()
        while (now := time.perf_counter() - began) < seconds:
            due = self._due(now)
            if len(due):
                self._change(len(due))
            self._match(next(batches))
            self.elapsed = time.perf_counter() - began
            self.delays.append(self.elapsed - due)
            self.index.collect(keep_versions=1)
        self.merger.finish()

    def _due(self, now: float) -> npt.NDArray[np.float64]:
        """Return the arrival times of subscriptions to add now, at most as many as can be replaced at once."""
        first = self.arrived
        self.arrived = last = min(int(now * self.rate), first + len(self.alive) // 2)
        return np.arange(first, last) / max(1, self.rate)

    def _change(self, size: int) -> None:
        first = self.arrived - size + len(self.workload.subscriptions)
        new = np.arange(first, first + size)
        places = self.rng.choice(len(self.alive), size, replace=False, shuffle=False)
        removed, self.alive[places] = names(self.alive[places]), new
        texts = [self.texts[number % len(self.texts)] for number in new.tolist()]
        same = [pa.repeat(value, size) for value in ("somebody", "predicates")]
        self.merger.change(removed.to_pylist(), compile_columns(names(new), *same, texts))

    def _batches(self) -> Iterator[tuple[int, int]]:
        size = min(BATCH, len(self.workload.events))
        rounds = len(self.workload.events) // size
        return ((turn % rounds * size, (turn % rounds + 1) * size) for turn in count())

    def _match(self, batch: tuple[int, int]) -> None:
        atoms = self.workload.events.atoms.part(*batch)
        before = time.thread_time()  # of this thread only: the other one merges
        matches = self.index.match(atoms)
        self.matching += time.thread_time() - before
        self.events += atoms.count
        self.matches += len(matches)

    def check(self, bench: Bench) -> None:
        """Compare the final matches with those of indexes that never changed."""
        size, events = len(self.alive), self.workload.events.first(BATCH).atoms
        old, new = self.alive[self.alive < size], self.alive[self.alive >= size] - size
        expected = counts(self.workload.subscriptions, old, events)
        expected += counts(self.more, new % len(self.texts), events)
        counted = np.bincount(self.index.match(events).publication, minlength=events.count)
        bench.agree(self.name, size, "an index that never changed", expected)
        bench.agree(self.name, size, "index", counted)

    def row(self) -> Row:
        delays = np.concatenate(self.delays)
        p50, p99 = np.percentile(delays, [50, 99]).tolist() if len(delays) else (None, None)
        return Row(
            self.name,
            len(self.workload.subscriptions),
            "index",
            events_per_cpu_second=self.events / self.matching,
            build_seconds=None,
            bytes_per_subscription=self.index.nbytes / self.index.size,
            matches_per_event=self.matches / self.events,
            seconds_per_event=self.matching / self.events,
            events_per_second=self.events / self.elapsed,
            p50_seconds=p50,
            p99_seconds=p99,
            changes_per_second=2 * self.arrived / self.elapsed,
        )


def names(numbers: npt.NDArray[np.int64]) -> pa.Array:
    return pc.binary_join_element_wise("s", pc.cast(pa.array(numbers), pa.string()), "")


def counts(subscriptions: Subscriptions, numbers: npt.NDArray[np.int64], events: Atoms) -> Counts:
    """Count the matches of each event with these subscriptions, some of which occur more than once."""
    index = Index.create()
    index.add(subscriptions.compiled())
    matches = index.match(events)
    times = np.bincount(numbers, minlength=len(subscriptions))[matches.subscription]
    return np.bincount(matches.publication, times, events.count).astype(np.int64)
