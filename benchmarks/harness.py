"""Harness: runs every engine on the same workload, compares their matches, records medians as rows."""

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
"""Events of the first trial, before an engine gets as many as it can match in a run."""


class Case(NamedTuple):
    """An engine, its workload, the maximum number of events, and subscriptions to add at the end."""

    engine: Engine
    workload: Workload
    events: int
    more: Subscriptions | None = None


@dataclass
class Running:
    """An engine that has been built, and its times so far."""

    case: Case
    build_seconds: float | None
    count: int
    matches_per_event: float | None
    times: list[float] = field(default_factory=list)


class Disagreement(Exception):
    """Two engines found different numbers of matches, so their times are meaningless."""


class Bench:
    """Rows of one benchmark run. Reports each row and compares engines with each other."""

    def __init__(
        self, runs: int = 3, say: Callable[[str], None] = print, budget: Budget | None = None
    ) -> None:
        self.rows: list[Row] = []
        self.runs, self.budget = runs, budget or Budget()
        self._report, self._began = say, time.monotonic()
        self._expected: dict[tuple[str, int], tuple[str, Counts]] = {}
        self._given_up: dict[tuple[str, str], str] = {}

    def say(self, text: str) -> None:
        """Report progress, with the time since the start."""
        self._report(f"{time.monotonic() - self._began:6.0f} s  {text}")

    def measure(
        self, engine: Engine, workload: Workload, count: int, more: Subscriptions | None = None
    ) -> Row:
        """Build an engine, match the first `count` events several times, and keep the row."""
        return self.side_by_side([Case(engine, workload, count, more)])[0]

    def side_by_side(self, cases: Sequence[Case]) -> list[Row]:
        """Build several engines, then time them in turns, so that a slow moment of the machine affects all."""
        with ExitStack() as opened:
            started = [self._start(case, opened) for case in cases]
            running = [each for each in started if isinstance(each, Running)]
            for _ in range(self.runs):
                for each in running:
                    if not (each.times and each.case.engine.once):
                        each.times.append(timed_match(each.case.engine)[0])
            return [self.keep(each if isinstance(each, Row) else _row(each)) for each in started]

    def _start(self, case: Case, opened: ExitStack) -> Running | Row:
        """Build an engine and find how many events it can match; or return a row with the reason of failure."""
        key = case.workload.name, case.engine.name
        if key in self._given_up:
            return _not_measured(case, self._given_up[key])
        if case.engine.overhead > self.budget.overhead:
            return _not_measured(case, "only in full runs: each call has an overhead of seconds")
        opened.callback(case.engine.close)
        try:
            return self._build(case)
        except Unavailable as missing:
            return _not_measured(case, f"not available: {missing}")
        except TooLong as error:
            self._given_up[key] = f"{error} at {len(case.workload.subscriptions):,} subscriptions"
            return _not_measured(case, self._given_up[key])

    def _build(self, case: Case) -> Running:
        engine, workload = case.engine, case.workload
        self.say(f"{workload.name}: {engine.name} loads {len(workload.subscriptions):,} subscriptions")
        engine.prepare(workload.subscriptions)
        with at_most(_time_limit(engine, self.budget.build), "building"):
            seconds, _ = _timed(engine, engine.build)
        count, last, answer = self._match_one(case) if engine.once else self._match_many(case)
        times = [last] if engine.once else []
        if not engine.matches:
            return Running(case, None, count, None, times)
        counts = engine.counts(answer)
        self.agree(workload.name, len(workload.subscriptions), engine.name, counts)
        return Running(case, seconds, count, float(counts.mean()), times)

    def _match_one(self, case: Case) -> tuple[int, float, Any]:
        """Match the first event; return 1, the time, and the answer."""
        with at_most(_time_limit(case.engine, 10 * self.budget.run), "matching an event"):
            case.engine.give(case.workload.events.first(1))
            return 1, *timed_match(case.engine)

    def _match_many(self, case: Case) -> tuple[int, float, Any]:
        """Give the engine as many events as it can match in a run; return their number, the time and the answer.

        The first call maps files and fills caches, so its time is ignored. Then the number of events grows until
        matching takes half of a run.
        """
        engine, count = case.engine, min(FEW, case.events)
        with at_most(_time_limit(engine, 10 * self.budget.run), f"matching {count} events"):
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
        """Return why an engine is not tried again with a workload, or None."""
        return self._given_up.get((workload, engine))

    def give_up(self, workload: str, engine: str, why: str) -> str:
        self._given_up[workload, engine] = why
        return why

    def stamp(self, taken: str) -> None:
        """Record how rows were measured, in rows without that record."""
        self.rows = [row if row.taken else replace(row, taken=taken) for row in self.rows]

    def has(self, workload: str, size: int, engine: str) -> bool:
        """Return whether such a row exists."""
        return any(
            (row.workload, row.subscriptions, row.engine) == (workload, size, engine) for row in self.rows
        )

    def agree(self, workload: str, size: int, engine: str, counts: Counts) -> None:
        """Compare matches event by event with those of another engine, for the events that both matched."""
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
        """Record the reference matches of the first events: all engines must find the same."""
        counts = matches(workload.subscriptions, workload.events.first(few))
        self.agree(workload.name, len(workload.subscriptions), "the definition", counts)

    def finished(self) -> list[Row]:
        """Return the rows, each with its ratio to the best peer and to the limit."""
        return compared(self.rows)


def _time_limit(engine: Engine, seconds: float) -> float:
    """Return the time limit: only peers have one."""
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
        seconds_per_added_subscription=_seconds_per_addition(case.engine, case.more, size),
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
    """Return the CPU seconds of this process, all threads, and the answer. Load of other processes does not count."""
    before = time.process_time()
    answer = call()
    return time.process_time() - before, answer


def _timed(engine: Engine, call: Callable[[], Any]) -> tuple[float, Any]:
    """Return the same, or the seconds that the engine reports for another process."""
    seconds, answer = timed(call)
    reported = engine.seconds()
    return seconds if reported is None else reported, answer


def timed_match(engine: Engine) -> tuple[float, Any]:
    return _timed(engine, engine.match)


def _seconds_per_addition(engine: Engine, more: Subscriptions | None, first: int) -> float | None:
    if more is None:
        return None
    seconds, added = timed(lambda: engine.add(more, first))
    return seconds / added if added else None
