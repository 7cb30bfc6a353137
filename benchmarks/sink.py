"""The sink of the stream into PostgreSQL: matches that tasks have in memory become notifications.

    staging tables       each task copies its matches into tables of the database, and one transaction commits them
    files, row by row    each task writes a file; the driver reads the files and writes the rows

Spark is left out: tasks are processes, and the driver is this one. CPU seconds are those of the driver, which cannot be
spread over machines, and in rows of their own those of all processes, with the tasks and the server. The server is on
the same machine and waits for its disk at each commit.
"""

from __future__ import annotations

import multiprocessing
import statistics
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from benchmarks.harness import Bench, Disagreement
from benchmarks.metadata_places import PostgreSQL, postgresql
from benchmarks.rows import Row
from benchmarks.scale import Scale
from tests.support.packages import Unavailable
from tidings.spark.stream.budget import Budget, BudgetWatch
from tidings.spark.stream.match_output import MatchOutput, MatchReport, OutputTarget
from tidings.spark.stream.sink import FileSink, Sink, StagingSink
from tidings.store.encoding import MatchRow
from tidings.store.store import Store

NAME = "sink"
TASKS = (1, 2, 4)
EACH = 50
"""Matches of a publication."""
KINDS: dict[str, type[FileSink] | type[StagingSink]] = {
    "staging tables": StagingSink,
    "files, row by row": FileSink,
}
BECAUSE = """[["price < 200",180,"/price"],["symbol = 'IBM'","IBM","/symbol"]]"""


class Spent(NamedTuple):
    """CPU seconds of the driver and of all processes, and wall-clock seconds."""

    driver: float
    everything: float
    wall: float


class TaskPart(NamedTuple):
    """The publications of a task by position, and where it writes their matches."""

    target: OutputTarget
    folder: Path
    positions: range
    subscribers: int


def run(bench: Bench, scale: Scale) -> None:
    try:
        processes = ProcessPoolExecutor(max(TASKS), multiprocessing.get_context("spawn"))
        with postgresql() as server, processes as pool:
            for tasks in TASKS:
                _measure(bench, scale, server, pool, tasks)
    except Unavailable as missing:
        bench.say(f"{NAME}: without PostgreSQL: {missing}")


def _measure(bench: Bench, scale: Scale, server: PostgreSQL, pool: ProcessPoolExecutor, tasks: int) -> None:
    """Measure both kinds in turns: other load affects both. The first turn fills caches and does not count."""
    publications, subscribers = scale.sink_notifications // EACH, scale.sink_subscribers
    turns: dict[str, list[Spent]] = {name: [] for name in KINDS}
    with TemporaryDirectory() as folder, _stores(server) as stores:
        for turn in range(bench.runs + 1):
            for name, kind in KINDS.items():
                sink = kind(stores[name], NAME, "journal")
                positions = range(turn * publications + 1, (turn + 1) * publications + 1)
                size = -(-publications // tasks)
                parts = [
                    TaskPart(sink.target, Path(folder), positions[begin : begin + size], subscribers)
                    for begin in range(0, publications, size)
                ]
                turns[name].append(_commit(server, pool, sink, turn, parts))
    for name, spent in turns.items():
        for row in _build_rows(f"{NAME}, {tasks} tasks", subscribers, name, publications * EACH, spent[1:]):
            bench.keep(row)


def _commit(
    server: PostgreSQL, pool: ProcessPoolExecutor, sink: Sink, batch: int, parts: list[TaskPart]
) -> Spent:
    """Let the tasks write their matches, then commit them; return what both spent together."""
    in_tasks = 0.0

    def work() -> int:
        nonlocal in_tasks
        results = list(pool.map(_write, parts))
        in_tasks = sum(seconds for _, seconds in results)
        return sink.commit(batch, [report for report, _ in results], parts[-1].positions[-1]).new

    driver = time.process_time()
    cost, new = server.measure(work)
    driver = time.process_time() - driver
    if new != EACH * sum(len(part.positions) for part in parts):
        raise Disagreement(f"{new} notifications are new")
    return Spent(driver, cost.cpu + in_tasks, cost.wall)


def _write(part: TaskPart) -> tuple[MatchReport, float]:
    """Write the matches of a task; return its report and its CPU seconds."""
    began = time.process_time()
    with (
        BudgetWatch(Budget(seconds=0), part.folder) as watch,
        MatchOutput(part.target.open(part.folder), watch) as output,
    ):
        for position in part.positions:
            output.count([position])
            for number in range(EACH):
                who = (position * 7919 + number * 104_729) % part.subscribers
                output.add_match(
                    MatchRow(f"p-{position}", f"s-{who}-{number}", f"user-{who}", BECAUSE, position=position)
                )
    return output.report, time.process_time() - began


@contextmanager
def _stores(server: PostgreSQL) -> Iterator[dict[str, Store]]:
    """Open a store for each kind."""
    first, second = KINDS
    with server.empty() as one, server.empty() as other:
        yield {first: one, second: other}


def _build_rows(
    workload: str, subscribers: int, name: str, notifications: int, spent: list[Spent]
) -> Iterator[Row]:
    rate = notifications / statistics.median(each.wall for each in spent)
    for engine, seconds, per_second in (
        (f"{name}, driver", statistics.median(each.driver for each in spent), rate),
        (f"{name}, all processes", statistics.median(each.everything for each in spent), rate),
    ):
        yield Row(
            workload,
            subscribers,
            engine,
            events_per_cpu_second=notifications / seconds,
            build_seconds=None,
            bytes_per_subscription=None,
            matches_per_event=1.0,
            seconds_per_event=seconds / notifications,
            events_per_second=per_second,
        )
