"""The harness: give every engine the same workload, check that all find the same, take medians, keep rows."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from benchmarks.budget import Budget, TooLong, at_most
from benchmarks.definition import matches
from benchmarks.engine import Counts, Engine
from benchmarks.rows import Row, compared
from benchmarks.workloads import Subscriptions, Workload
from tests.support.packages import Unavailable

FEW = 20
"""Events an engine is tried with, before it is given as many as it gets through in a run."""


class Case(NamedTuple):
    """An engine, the workload it is given, how many of its events at most, subscriptions to add in the end."""

    engine: Engine
    workload: Workload
    events: int
    more: Subscriptions | None = None


@dataclass
class Running:
    """An engine that is built, and its times so far."""

    case: Case
    build_seconds: float | None
    count: int
    matches_per_event: float | None
    times: list[float] = field(default_factory=list)


class Disagreement(Exception):
    """Two engines found different numbers of matches: no time is worth reporting then."""


class Bench:
    """Rows of one run of the benchmarks. Reports each as it comes, checks each against the others."""

    def __init__(
        self, runs: int = 3, say: Callable[[str], None] = print, budget: Budget | None = None
    ) -> None:
        self.rows: list[Row] = []
        self.runs, self.budget = runs, budget or Budget()
        self._tell, self._began = say, time.monotonic()
        self._expected: dict[tuple[str, int], tuple[str, Counts]] = {}
        self._given_up: dict[tuple[str, str], str] = {}

    def say(self, text: str) -> None:
        """Progress, with the time since the beginning."""
        self._tell(f"{time.monotonic() - self._began:6.0f} s  {text}")

    def measure(
        self, engine: Engine, workload: Workload, count: int, more: Subscriptions | None = None
    ) -> Row:
        """Build an engine, match the first `count` events several times, and keep the row."""
        return self.side_by_side([Case(engine, workload, count, more)])[0]

    def side_by_side(self, cases: Sequence[Case]) -> list[Row]:
        """Build several, then time them in turns: if the machine slows down, it does so for all of them."""
        with ExitStack() as opened:
            started = [self._start(case, opened) for case in cases]
            running = [each for each in started if isinstance(each, Running)]
            for _ in range(self.runs):
                for each in running:
                    if not (each.times and each.case.engine.once):
                        each.times.append(timed_match(each.case.engine)[0])
            return [self.keep(each if isinstance(each, Row) else _row(each)) for each in started]

    def _start(self, case: Case, opened: ExitStack) -> Running | Row:
        """Build it and see how many events it gets through; or the row that says why not."""
        known = case.workload.name, case.engine.name
        if known in self._given_up:
            return _not_measured(case, self._given_up[known])
        if case.engine.overhead > self.budget.overhead:
            return _not_measured(
                case, "takes part in a full run only: each call costs seconds besides matching"
            )
        opened.callback(case.engine.close)
        try:
            return self._build(case)
        except Unavailable as missing:
            return _not_measured(case, f"not here: {missing}")
        except TooLong as late:
            self._given_up[known] = f"{late} at {len(case.workload.subscriptions):,} subscriptions"
            return _not_measured(case, self._given_up[known])

    def _build(self, case: Case) -> Running:
        engine, workload = case.engine, case.workload
        self.say(f"{workload.name}: {engine.name} takes {len(workload.subscriptions):,} subscriptions")
        engine.prepare(workload.subscriptions)
        with at_most(_patience(engine, self.budget.build), "building"):
            seconds, _ = _timed(engine, engine.build)
        count, last, answer = self._once(case) if engine.once else self._as_many(case)
        times = [last] if engine.once else []
        if not engine.matches:
            return Running(case, None, count, None, times)
        counts = engine.counts(answer)
        self.agree(workload.name, len(workload.subscriptions), engine.name, counts)
        return Running(case, seconds, count, float(counts.mean()), times)

    def _once(self, case: Case) -> tuple[int, float, Any]:
        """The first event, how long it takes, and the answer."""
        with at_most(_patience(case.engine, 10 * self.budget.run), "matching an event"):
            case.engine.give(case.workload.events.first(1))
            return 1, *timed_match(case.engine)

    def _as_many(self, case: Case) -> tuple[int, float, Any]:
        """As many events as the engine gets through in a run, left with it; their number, its time and its answer.

        The first call maps files and fills caches, so it says little; from then on the engine is given more
        and more until a run is half full.
        """
        engine, count = case.engine, min(FEW, case.events)
        with at_most(_patience(engine, 10 * self.budget.run), f"matching {count} events"):
            engine.give(case.workload.events.first(count))
            engine.match()
            seconds, answer = timed_match(engine)
        while count < case.events and seconds < self.budget.run / 2:
            growth = min(50.0, max(2.0, self.budget.run / max(seconds, 1e-9)))
            count = min(case.events, int(count * growth))
            engine.give(case.workload.events.first(count))
            seconds, answer = timed_match(engine)
        return count, seconds, answer

    def keep(self, row: Row) -> Row:
        self.rows.append(row)
        rate = row.note if row.events_per_cpu_second is None else f"{row.events_per_cpu_second:,.0f} events/s"
        self.say(f"  {row.workload}: {row.engine} at {row.subscriptions:,}: {rate}")
        return row

    def given_up(self, workload: str, engine: str) -> str | None:
        """Why an engine is not tried again with a workload, if it is not."""
        return self._given_up.get((workload, engine))

    def give_up(self, workload: str, engine: str, why: str) -> str:
        self._given_up[workload, engine] = why
        return why

    def stamp(self, taken: str) -> None:
        """Say of the rows that do not say it yet how they were taken."""
        self.rows = [row if row.taken else replace(row, taken=taken) for row in self.rows]

    def has(self, workload: str, size: int, engine: str) -> bool:
        """Whether there is such a row."""
        return any(
            (row.workload, row.subscriptions, row.engine) == (workload, size, engine) for row in self.rows
        )

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

    def check(self, workload: Workload, few: int = 5) -> None:
        """Let the definition speak first: no engine may find anything else for the first events."""
        counts = matches(workload.subscriptions, workload.events.first(few))
        self.agree(workload.name, len(workload.subscriptions), "the definition", counts)

    def finished(self) -> list[Row]:
        """The rows, with each one's ratio to the best peer and to the limit."""
        return compared(self.rows)


def _patience(engine: Engine, seconds: float) -> float:
    """Only peers are stopped."""
    return seconds + engine.overhead + engine.patience if engine.role == "peer" else math.inf


def _row(running: Running) -> Row:
    case, size = running.case, len(running.case.workload.subscriptions)
    seconds, nbytes = max(statistics.median(running.times), 1e-9), running.case.engine.nbytes()
    edges = running.case.engine.edges()
    return Row(
        case.workload.name,
        size,
        case.engine.name,
        events_per_cpu_second=running.count / seconds,
        build_seconds=running.build_seconds,
        bytes_per_subscription=None if nbytes is None else nbytes / size,
        matches_per_event=running.matches_per_event,
        seconds_per_event=seconds / running.count,
        seconds_per_added_subscription=_added(case.engine, case.more, size),
        linear_paths=case.engine.linear_paths(),
        edges_per_cpu_second=None if edges is None else edges / seconds,
        role=case.engine.role,
    )


def _not_measured(case: Case, note: str) -> Row:
    size = len(case.workload.subscriptions)
    return Row(
        case.workload.name, size, case.engine.name, None, None, None, None, role=case.engine.role, note=note
    )


def timed(call: Callable[[], Any]) -> tuple[float, Any]:
    """CPU seconds of this process, all threads, and the answer. Another process's load does not count."""
    before = time.process_time()
    answer = call()
    return time.process_time() - before, answer


def _timed(engine: Engine, call: Callable[[], Any]) -> tuple[float, Any]:
    """The same, or what the engine says of a process of its own."""
    seconds, answer = timed(call)
    told = engine.seconds()
    return seconds if told is None else told, answer


def timed_match(engine: Engine) -> tuple[float, Any]:
    return _timed(engine, engine.match)


def _added(engine: Engine, more: Subscriptions | None, first: int) -> float | None:
    if more is None:
        return None
    seconds, taken = timed(lambda: engine.add(more, first))
    return seconds / taken if taken else None
