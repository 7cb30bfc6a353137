"""`match(df, subscriptions)` in Spark plans, beside the batch job and a plain loop, on two cores.

    decode + match, 2 processes       a plain loop on text in memory, without Spark: the reference
    job                               `tidings match` on a file of JSON Lines
    JSON -> Parquet, write_matches    spark.read.text, and the tasks that match write Parquet
    JSON -> numbers -> no-op          spark.read.text, match with shape="numbers", no writer
    JSON -> numbers -> Parquet        Spark's Parquet writer
    JSON -> grouped -> Parquet        a row per publication, with ids and subscribers
    JSON -> rows -> Parquet           a row per match
    rows -> Parquet, no match         Spark's writer alone, with as many rows per match: the limit of the line above
    columns -> numbers -> no-op       a Parquet table of typed columns
    columns -> broadcast join         plain Spark SQL: a table of the subscriptions' bounds, joined on the symbol

A second table divides an index of eight segments among groups of tasks, over fewer events (`write_matches(groups=n)`),
with the memory of the largest Python worker and the bytes that Spark has shuffled. A third one compares clusters of one
and of two executors. A last line filters the typed columns by Spark for each of 100
subscriptions.

Programs run in turns, so that a slow moment of the machine affects all. Rates are wall-clock; the first turn starts
workers and does not count. The session has default settings, not those of the embedded Spark.
"""

from __future__ import annotations

import operator
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from benchmarks.harness import Bench, Disagreement
from benchmarks.pipeline import CORES, DECODE_MATCH, Files, build_row
from benchmarks.plain_loop import LoopProcesses, start_loops
from benchmarks.processes import measure_largest_worker
from benchmarks.rows import Row
from benchmarks.scale import Scale
from benchmarks.workloads import Workload, stock
from benchmarks.workloads.stock import FIELDS, TESTS
from tidings.matching.compiler.plan import Relation
from tidings.matching.index.index import Index
from tidings.spark import Subscriptions, match, write_matches
from tidings.spark.batch.job import BatchRequest, run_batch_job
from tidings.spark.session import open_session

NAME = "stock, DataFrames"
JOB = "job"
WRITE = "JSON -> Parquet, write_matches"
FILTERS = 100
GROUPS = (1, 2, 4, 8)
GROUPS_SHARE = 10
"""Divisor: the groups match this fraction of the events."""
EXECUTORS = (1, 2)
SEGMENTS = 8
"""Segments of the index for the groups; the index of the other lines has one."""
USER_SETTINGS = {
    "spark.driver.extraJavaOptions": "",
    "spark.sql.codegen.wholeStage": "true",
    "spark.driver.memory": "4g",
}


SMALL_SPLITS = {"spark.sql.files.maxPartitionBytes": "8m"}
"""Several tasks for each executor, so that none waits long for the other."""


class Result(NamedTuple):
    """Number of matches, if the program counts them, its seconds, if not all of its time counts, and a note."""

    matches: int | None = None
    seconds: float | None = None
    note: str = ""


Program = Callable[[], Result]


def run(bench: Bench, scale: Scale) -> None:
    workload = stock(scale.stock, scale.job_events, name=NAME)
    with tempfile.TemporaryDirectory(prefix="tidings-bench-") as folder:
        files = Files.write(workload, Path(folder))
        session = open_session(f"local[{CORES}]", **USER_SETTINGS)
        try:
            with start_loops(CORES, files.index, files.publications.read_bytes()) as loops:
                programs = Programs(session, files, loops)
                _measure(bench, workload, programs.list(workload), (DECODE_MATCH, JOB))
            few = replace(workload, name=f"{NAME}, groups", events=workload.events.first(programs.few))
            _measure(bench, few, programs.groups(workload), (f"{GROUPED} 1",))
            _measure_filters(bench, workload, files, session)
        finally:
            session.stop()
        _measure_clusters(bench, workload, files)


def _measure(
    bench: Bench, workload: Workload, programs: dict[str, Program], references: Sequence[str]
) -> None:
    """Run all programs in turns, compare their numbers of matches, and keep a row for each."""
    seconds: dict[str, list[float]] = {name: [] for name in programs}
    matches: dict[str, int] = {}
    notes: dict[str, str] = {}
    for turn in range(bench.runs + 1):
        for name, program in programs.items():
            began = perf_counter()
            result = program()
            seconds[name].append(result.seconds or perf_counter() - began)
            notes[name] = result.note
            if result.matches is not None:
                matches[name] = result.matches
            bench.say(f"turn {turn}: {name} took {seconds[name][-1]:.1f} s")
    counts = set(matches.values())
    if len(counts) != 1:
        raise Disagreement(f"different numbers of matches: {matches}")
    medians = {name: median(times[1:]) for name, times in seconds.items()}
    for name, own in medians.items():
        shares = (f"{medians[reference] / own:.2f} of {reference}" for reference in references)
        note = ", ".join(filter(None, (*shares, notes[name])))
        bench.keep(_build_row(workload, name, own, next(iter(counts)), note))


def _build_row(workload: Workload, engine: str, seconds: float, matches: int, note: str) -> Row:
    row = build_row(workload, engine, seconds, matches)
    rate = len(workload.events) / seconds
    return replace(row, events_per_cpu_second=None, seconds_per_event=None, events_per_second=rate, note=note)


GROUPED = f"{WRITE}, groups:"


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
        events = self._session.read.text(str(path))
        divided = _divide_index(workload, self._files.out / "segments")
        return {f"{GROUPED} {n}": partial(self._write_group, events, divided, n) for n in GROUPS}

    def _write_group(self, events: DataFrame, divided: Subscriptions, groups: int) -> Result:
        before = count_shuffled_bytes(self._session)
        began = perf_counter()
        largest, written = measure_largest_worker(
            lambda: write_matches(events, divided, self._next_output(), groups=groups)
        )
        seconds = perf_counter() - began
        shuffled = count_shuffled_bytes(self._session) - before
        note = f"largest worker {largest / 1e6:,.0f} MB, {shuffled:,} bytes shuffled"
        return Result(written.matches, seconds, note)

    def list(self, workload: Workload) -> dict[str, Program]:
        numbers = match(self._lines, self._subscriptions, shape="numbers")
        grouped = match(self._lines, self._subscriptions, shape="grouped")
        rows = match(self._lines, self._subscriptions)
        columns = match(self._columns, self._subscriptions, shape="numbers")
        table = str(self._files.out / "rows")
        rows.write.mode("overwrite").parquet(table)
        return {
            DECODE_MATCH: self._run_loops,
            JOB: self._run_job,
            WRITE: self._write_matches,
            "JSON -> numbers -> no-op": partial(_discard, numbers),
            "JSON -> numbers -> Parquet": self._write(numbers),
            "JSON -> numbers -> count": lambda: Result(numbers.select(F.sum(F.size("matches"))).head()[0]),
            "JSON -> grouped -> Parquet": self._write(grouped),
            "JSON -> rows -> Parquet": self._write(rows),
            "rows -> Parquet, no match": self._write(self._session.read.parquet(table)),
            "columns -> numbers -> no-op": partial(_discard, columns),
            "columns -> broadcast join -> count": partial(_count, self._join(workload)),
        }

    def _write_matches(self) -> Result:
        return Result(write_matches(self._lines, self._subscriptions, self._next_output()).matches)

    def _join(self, workload: Workload) -> DataFrame:
        """Join events and bounds. All subscriptions have one form; others would need a join for each form."""
        path = self._files.out / "bounds.parquet"
        pq.write_table(_tabulate_bounds(workload), path)
        bounds, events = F.broadcast(self._session.read.parquet(str(path))), self._columns
        conditions = [
            COMPARISONS[relation](events[FIELDS[field]], bounds[f"bound_{FIELDS[field]}"])
            for field, relation in TESTS.items()
        ]
        return events.join(bounds, conditions)

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


COMPARISONS: dict[Relation, Callable[[Any, Any], Any]] = {
    Relation.EQ: operator.eq,
    Relation.GT: operator.gt,
    Relation.LT: operator.lt,
}


def _tabulate_bounds(workload: Workload) -> pa.Table:
    """Return a row for each subscription: its symbol, and its bounds of the other fields."""
    values = workload.subscriptions.low.reshape(-1, len(TESTS)).T
    names = pa.array(workload.subscriptions.attributes[0].names)
    symbols, *others = (pa.array(column) for column in values)
    columns = [names.take(symbols), *others]
    return pa.table(columns, [f"bound_{FIELDS[field]}" for field in TESTS])


def count_shuffled_bytes(session: SparkSession) -> int:
    """Return the bytes that all stages of a session have written for others, by Spark's own metrics."""
    context: Any = session.sparkContext
    gateway = context._gateway
    none = gateway.new_array(gateway.jvm.double, 0)
    store = context._jsc.sc().statusStore()
    stages = store.stageList(None, False, False, none, gateway.jvm.java.util.ArrayList())
    return sum(int(stages.apply(number).shuffleWriteBytes()) for number in range(stages.size()))


def _measure_clusters(bench: Bench, workload: Workload, files: Files) -> None:
    """Write the matches on a cluster of one executor, then of two, with a core each."""
    named, seconds = replace(workload, name=f"{NAME}, executors"), {}
    for executors in EXECUTORS:
        session = open_session(f"local-cluster[{executors},1,1024]", **(USER_SETTINGS | SMALL_SPLITS))
        try:
            events = session.read.text(str(files.publications))
            subscriptions = Subscriptions.from_index(files.index)
            times = []
            for turn in range(bench.runs + 1):
                began = perf_counter()
                out = files.out / f"executors-{executors}-{turn}"
                written = write_matches(events, subscriptions, out)
                times.append(perf_counter() - began)
            seconds[executors] = median(times[1:])
        finally:
            session.stop()
        speedup = seconds[EXECUTORS[0]] / seconds[executors]
        note = f"{speedup:.2f} x {EXECUTORS[0]} executor, driver and executors on {CORES} cores"
        engine = f"{WRITE}, executors: {executors}"
        bench.keep(_build_row(named, engine, seconds[executors], written.matches, note))


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
