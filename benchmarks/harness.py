"""The harness: give every engine the same workload, check that all find the same, take medians, keep rows."""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from benchmarks.workloads import Subscriptions, Workload

RESULTS = Path(__file__).parent / "results" / "latest.json"
Counts = npt.NDArray[np.int64]


class Engine(Protocol):
    """Something that matches. `peer` says whether ours are compared with it."""

    name: str
    peer: bool

    def prepare(self, workload: Workload, count: int) -> None:
        """Bring the subscriptions and the first events into the form the engine likes; not timed."""

    def build(self) -> None:
        """Take all prepared subscriptions: timed once."""

    def match(self) -> Any:
        """Match the prepared events: the timed call. Whatever the engine naturally answers with."""

    def counts(self, answer: Any) -> Counts:
        """How many subscriptions each event matched, from an answer."""

    def nbytes(self) -> int:
        """What the subscriptions take in memory."""

    def add(self, more: Subscriptions, first: int) -> int | None:
        """Add some more to those it has; how many it took, or None where that means nothing."""


@dataclass(frozen=True)
class Row:
    """One line of the table. Times are CPU seconds, medians where there were several runs.

    `events_per_second` is wall-clock, given only where the work is done by several processes.
    """

    workload: str
    subscriptions: int
    engine: str
    events_per_cpu_second: float
    build_seconds: float | None
    bytes_per_subscription: float | None
    matches_per_event: float
    ratio_to_best_peer: float | None = None
    fraction_of_limit: float | None = None
    seconds_per_event: float = 0.0
    seconds_per_added_subscription: float | None = None
    events_per_second: float | None = None
    peer: bool = True


class Case(NamedTuple):
    """An engine, the workload it is given, how many of its events, and subscriptions to add in the end."""

    engine: Engine
    workload: Workload
    count: int
    more: Subscriptions | None = None


class Built(NamedTuple):
    seconds: float
    matches_per_event: float


class Disagreement(Exception):
    """Two engines found different numbers of matches: no time is worth reporting then."""


class Bench:
    """Rows of one run of the benchmarks. Reports each as it comes, checks each against the others."""

    def __init__(self, runs: int = 3, say: Callable[[str], None] = print) -> None:
        self.rows: list[Row] = []
        self.runs = runs
        self._say = say
        self._expected: dict[tuple[str, int], tuple[str, Counts]] = {}

    def measure(
        self, engine: Engine, workload: Workload, count: int, more: Subscriptions | None = None
    ) -> Row:
        """Build an engine, match the first `count` events several times, and keep the row."""
        return self.side_by_side([Case(engine, workload, count, more)])[0]

    def side_by_side(self, cases: Sequence[Case]) -> list[Row]:
        """Build several, then time them in turns: if the machine slows down, it does so for all of them."""
        built = [self._build(case) for case in cases]
        times: list[list[float]] = [[] for _ in cases]
        for _ in range(self.runs):
            for case, taken in zip(cases, times, strict=True):
                taken.append(timed(case.engine.match)[0])
        return [self.keep(_row(*each)) for each in zip(cases, built, times, strict=True)]

    def _build(self, case: Case) -> Built:
        case.engine.prepare(case.workload, case.count)
        seconds, _ = timed(case.engine.build)
        counts = case.engine.counts(case.engine.match())  # the first call maps files and fills caches
        self.agree(case.workload.name, len(case.workload.subscriptions), case.engine.name, counts)
        return Built(seconds, float(counts.mean()))

    def keep(self, row: Row) -> Row:
        self.rows.append(row)
        self._say(
            f"  {row.workload}: {row.engine} at {row.subscriptions:,}: {row.events_per_cpu_second:,.0f} events/s"
        )
        return row

    def agree(self, workload: str, size: int, engine: str, counts: Counts) -> None:
        """Compare matches event by event with what another engine found, as far as both went."""
        other, expected = self._expected.get((workload, size), (engine, counts))
        common = min(len(counts), len(expected))
        if not np.array_equal(counts[:common], expected[:common]):
            at = int(np.flatnonzero(counts[:common] != expected[:common])[0])
            raise Disagreement(
                f"{workload}, {size:,} subscriptions, event {at}: {engine} found {counts[at]} matches, "
                f"{other} found {expected[at]}"
            )
        if len(counts) >= len(expected):
            self._expected[workload, size] = engine, counts

    def finished(self) -> list[Row]:
        """The rows, with each one's ratio to the best peer of its workload and size."""
        best: dict[tuple[str, int], float] = {}
        for row in self.rows:
            if row.peer:
                key = row.workload, row.subscriptions
                best[key] = max(best.get(key, 0.0), row.events_per_cpu_second)
        return [
            replace(row, ratio_to_best_peer=row.events_per_cpu_second / found) if found else row
            for row in self.rows
            for found in [best.get((row.workload, row.subscriptions))]
        ]


def _row(case: Case, built: Built, times: Sequence[float]) -> Row:
    size = len(case.workload.subscriptions)
    seconds = max(statistics.median(times), 1e-9)
    return Row(
        case.workload.name,
        size,
        case.engine.name,
        events_per_cpu_second=case.count / seconds,
        build_seconds=built.seconds,
        bytes_per_subscription=case.engine.nbytes() / size,
        matches_per_event=built.matches_per_event,
        seconds_per_event=seconds / case.count,
        seconds_per_added_subscription=_added(case.engine, case.more, size),
        peer=case.engine.peer,
    )


def timed(call: Callable[[], Any]) -> tuple[float, Any]:
    """CPU seconds of this process, all threads, and the answer. Another process's load does not count."""
    before = time.process_time()
    answer = call()
    return time.process_time() - before, answer


def median_of(runs: int, call: Callable[[], Any]) -> tuple[float, Any]:
    results = [timed(call) for _ in range(runs)]
    return max(statistics.median(seconds for seconds, _ in results), 1e-9), results[-1][1]


def _added(engine: Engine, more: Subscriptions | None, first: int) -> float | None:
    if more is None:
        return None
    seconds, taken = timed(lambda: engine.add(more, first))
    return seconds / taken if taken else None


def save(rows: Sequence[Row], path: Path = RESULTS) -> None:
    """All rows as JSON, for machines and for the next comparison."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps([asdict(row) for row in rows], indent=1) + "\n")


def load(path: Path = RESULTS) -> list[Row]:
    return [Row(**row) for row in json.loads(path.read_text())]


HEADINGS = (
    "workload",
    "subscriptions",
    "engine",
    "events / CPU s",
    "events / s",
    "x best peer",
    "time / event",
    "matches / event",
    "build",
    "bytes / sub.",
    "time / added sub.",
)


def cells(row: Row) -> tuple[str, ...]:
    """A row as people read it."""
    return (
        row.workload,
        f"{row.subscriptions:,}",
        row.engine,
        f"{row.events_per_cpu_second:,.0f}",
        "" if row.events_per_second is None else f"{row.events_per_second:,.0f}",
        "" if row.ratio_to_best_peer is None else f"{row.ratio_to_best_peer:.3g}",
        duration(row.seconds_per_event),
        f"{row.matches_per_event:,.1f}",
        "" if row.build_seconds is None else duration(row.build_seconds),
        "" if row.bytes_per_subscription is None else f"{row.bytes_per_subscription:,.0f}",
        "" if row.seconds_per_added_subscription is None else duration(row.seconds_per_added_subscription),
    )


def duration(seconds: float) -> str:
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"


def table(rows: Iterable[Row]) -> str:
    """A plain table in columns; numbers to the right."""
    lines = [HEADINGS, *map(cells, rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    texts = {0, 2}
    return "\n".join(
        "  ".join(
            cell.ljust(width) if at in texts else cell.rjust(width)
            for at, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )


def markdown(rows: Iterable[Row]) -> str:
    """The same table for the docs."""
    ruler = ["---" if at in (0, 2) else "---:" for at in range(len(HEADINGS))]
    return "\n".join("| " + " | ".join(line) + " |" for line in (HEADINGS, ruler, *map(cells, rows)))
