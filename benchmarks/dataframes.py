"""`match(df, subscriptions)` in Spark plans, beside the batch job and a plain loop, on two cores.

    decode + match, 2 processes       a plain loop on text in memory, without Spark: the reference
    job                               `tidings match` on a file of JSON Lines
    JSON -> numbers -> no-op          spark.read.text, match with shape="numbers", no writer
    JSON -> numbers -> Parquet        Spark's Parquet writer
    JSON -> grouped -> Parquet        a row per publication, with ids and subscribers
    JSON -> rows -> Parquet           a row per match
    rows -> Parquet, no match         Spark's writer alone, with as many rows per match: the limit of the line above
    columns -> numbers -> no-op       a Parquet table of typed columns

A second table divides an index of eight segments among groups of tasks, over fewer events (`match(groups=n)`). A last
line filters the typed columns by Spark for each of 100 subscriptions.

Programs run in turns, so that a slow moment of the machine affects all. Rates are wall-clock; the first turn starts
workers and does not count. The session has default settings, not those of the embedded Spark.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import NamedTuple

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from benchmarks.harness import Bench, Disagreement
from benchmarks.pipeline import CORES, DECODE_MATCH, Files, build_row
from benchmarks.plain_loop import LoopProcesses, start_loops
from benchmarks.rows import Row
from benchmarks.scale import Scale
from benchmarks.workloads import Workload, stock
from tidings.matching.index.index import Index
from tidings.spark import Subscriptions, match
from tidings.spark.batch.job import BatchRequest, run_batch_job
from tidings.spark.session import open_session

NAME = "stock, DataFrames"
JOB = "job"
FILTERS = 100
GROUPS = (1, 2, 4, 8)
GROUPS_SHARE = 10
"""Divisor: the groups match this fraction of the events."""
SEGMENTS = 8
"""Segments of the index for the groups; the index of the other lines has one."""
USER_SETTINGS = {
    "spark.driver.extraJavaOptions": "",
    "spark.sql.codegen.wholeStage": "true",
    "spark.driver.memory": "4g",
}


class Result(NamedTuple):
    """Number of matches, if the program counts them, and its seconds, if not all of its time counts."""

    matches: int | None = None
    seconds: float | None = None


Program = Callable[[], Result]


def run(bench: Bench, scale: Scale) -> None:
    workload = stock(scale.stock, scale.job_events, name=NAME)
    with tempfile.TemporaryDirectory(prefix="tidings-bench-") as folder:
        files = Files.write(workload, Path(folder))
        session = open_session(f"local[{CORES}]", **USER_SETTINGS)
        try:
            with start_loops(CORES, files.index, files.publications.read_bytes()) as loops:
                programs = Programs(session, files, loops)
                _measure(bench, workload, programs.list(), (DECODE_MATCH, JOB))
            few = replace(workload, name=f"{NAME}, groups", events=workload.events.first(programs.few))
            _measure(bench, few, programs.groups(workload), (f"{GROUPED} 1",))
            _measure_filters(bench, workload, files, session)
        finally:
            session.stop()


def _measure(
    bench: Bench, workload: Workload, programs: dict[str, Program], references: Sequence[str]
) -> None:
    """Run all programs in turns, compare their numbers of matches, and keep a row for each."""
    seconds: dict[str, list[float]] = {name: [] for name in programs}
    matches: dict[str, int] = {}
    for turn in range(bench.runs + 1):
        for name, program in programs.items():
            began = perf_counter()
            result = program()
            seconds[name].append(result.seconds or perf_counter() - began)
            if result.matches is not None:
                matches[name] = result.matches
            bench.say(f"turn {turn}: {name} took {seconds[name][-1]:.1f} s")
    counts = set(matches.values())
    if len(counts) != 1:
        raise Disagreement(f"different numbers of matches: {matches}")
    medians = {name: median(times[1:]) for name, times in seconds.items()}
    for name, own in medians.items():
        note = ", ".join(f"{medians[reference] / own:.2f} of {reference}" for reference in references)
        bench.keep(_build_row(workload, name, own, next(iter(counts)), note))


def _build_row(workload: Workload, engine: str, seconds: float, matches: int, note: str) -> Row:
    row = build_row(workload, engine, seconds, matches)
    rate = len(workload.events) / seconds
    return replace(row, events_per_cpu_second=None, seconds_per_event=None, events_per_second=rate, note=note)


GROUPED = "JSON -> rows -> count, groups:"


class Programs:
    """Programs that match all events once, and return the number of matches."""

    def __init__(self, session: SparkSession, files: Files, loops: LoopProcesses) -> None:
        self._session, self._files, self._loops = session, files, loops
        self._outputs = 0
        self._lines = session.read.text(str(files.publications))
        self._columns = self._write_columns()
        self._subscriptions = Subscriptions.from_index(files.index)
        self.few = max(1, self._lines.count() // GROUPS_SHARE)

    def groups(self, workload: Workload) -> dict[str, Program]:
        """Match the first events with the segments in one group and in several."""
        path = self._files.out / "few.jsonl"
        with self._files.publications.open("rb") as lines, path.open("wb") as few:
            few.writelines(islice(lines, self.few))
        events = self._session.read.text(str(path)).repartition(CORES)
        divided = _divide_index(workload, self._files.out / "segments")
        frames = {f"{GROUPED} {n}": match(events, divided, groups=n) for n in GROUPS}
        return {name: partial(_count, frame) for name, frame in frames.items()}

    def list(self) -> dict[str, Program]:
        numbers = match(self._lines, self._subscriptions, shape="numbers")
        grouped = match(self._lines, self._subscriptions, shape="grouped")
        rows = match(self._lines, self._subscriptions)
        columns = match(self._columns, self._subscriptions, shape="numbers")
        table = str(self._files.out / "rows")
        rows.write.mode("overwrite").parquet(table)
        return {
            DECODE_MATCH: self._run_loops,
            JOB: self._run_job,
            "JSON -> numbers -> no-op": partial(_discard, numbers),
            "JSON -> numbers -> Parquet": self._write(numbers),
            "JSON -> numbers -> count": lambda: Result(numbers.select(F.sum(F.size("matches"))).head()[0]),
            "JSON -> grouped -> Parquet": self._write(grouped),
            "JSON -> rows -> Parquet": self._write(rows),
            "rows -> Parquet, no match": self._write(self._session.read.parquet(table)),
            "columns -> numbers -> no-op": partial(_discard, columns),
        }

    def _run_loops(self) -> Result:
        seconds, result = self._loops.run()
        return Result(result.matches, seconds)

    def _run_job(self) -> Result:
        """Run the batch job; the seconds in which it compiles subscriptions do not count."""
        request = BatchRequest(self._files.subscriptions, self._files.publications, self._next_output())
        summary = run_batch_job(self._session, request)
        return Result(summary.matches, summary.match_seconds)

    def _write(self, frame: DataFrame) -> Program:
        def write() -> Result:
            frame.write.parquet(str(self._next_output()))
            return Result()

        return write

    def _next_output(self) -> Path:
        self._outputs += 1
        return self._files.out / f"output-{self._outputs}"

    def _write_columns(self) -> DataFrame:
        path = str(self._files.out / "events")
        self._session.read.json(str(self._files.publications)).write.parquet(path)
        return self._session.read.parquet(path)


def _discard(frame: DataFrame) -> Result:
    frame.write.format("noop").mode("overwrite").save()
    return Result()


def _count(frame: DataFrame) -> Result:
    return Result(frame.count())


def _divide_index(workload: Workload, folder: Path) -> Subscriptions:
    """Build an index of several segments."""
    index, subscriptions = Index.create(folder), workload.subscriptions
    size = -(-len(subscriptions) // SEGMENTS)
    for first in range(0, len(subscriptions), size):
        index.add(subscriptions.part(slice(first, first + size)).compiled(first))
    return Subscriptions.from_index(index)


def _measure_filters(bench: Bench, workload: Workload, files: Files, session: SparkSession) -> None:
    """Filter the typed table once per subscription, as users of Spark do by hand."""
    texts = [text for text, _ in zip(workload.subscriptions.texts(), range(FILTERS), strict=False)]
    columns = session.read.parquet(str(files.out / "events")).cache()
    columns.count()
    began = perf_counter()
    for text in texts:
        columns.where(text).count()
    note = f"{FILTERS} of {len(workload.subscriptions):,} subscriptions"
    engine = f"where per subscription, {FILTERS}"
    bench.keep(_build_row(workload, engine, perf_counter() - began, 0, note))
