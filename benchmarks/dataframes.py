"""`match(df, subscriptions)` beside the batch job that reads and writes files by itself, on two cores.

    job                               `tidings match`: files in, two columns of Parquet out, Spark only hands out work
    JSON -> grouped -> no-op          spark.read.text, match, a row per publication, no writer
    JSON -> rows -> no-op             the same with a row per match
    JSON -> grouped -> Parquet        Spark's own writer
    JSON -> rows -> Parquet
    columns -> grouped -> no-op       a Parquet table of typed columns
    JSON -> grouped -> no-op, 2 groups

    where per subscription, 100       a filter by Spark for each of 100 subscriptions, over the same events

All of them match the same events and take turns: a slow moment of the machine hits all. Rates are by the wall clock;
the first turn starts workers and does not count.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from statistics import median
from time import perf_counter

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from benchmarks.harness import Bench, Disagreement
from benchmarks.pipeline import CORES, Files, _row
from benchmarks.scale import Scale
from benchmarks.workloads import Workload, stock
from tidings.spark import Subscriptions, match
from tidings.spark.batch.job import BatchRequest, run_batch_job
from tidings.spark.session import open_session

NAME = "stock, DataFrames"
FEW = 100


def run(bench: Bench, scale: Scale) -> None:
    workload = stock(scale.stock, scale.job_events, name=NAME)
    with tempfile.TemporaryDirectory(prefix="tidings-bench-") as folder:
        files = Files.write(workload, Path(folder))
        session = open_session(master=f"local[{CORES}]")
        try:
            _measure(bench, workload, files, session)
        finally:
            session.stop()


def _measure(bench: Bench, workload: Workload, files: Files, session: SparkSession) -> None:
    programs = _programs(files, session)
    seconds: dict[str, list[float]] = {name: [] for name in programs}
    matches: dict[str, int] = {}
    for _ in range(bench.runs + 1):
        for name, program in programs.items():
            began = perf_counter()
            matches[name] = program()
            seconds[name].append(perf_counter() - began)
    if len(set(matches.values()) - {-1}) > 1:
        raise Disagreement(f"different numbers of matches: {matches}")
    job = median(seconds["job"][1:])
    for name, taken in seconds.items():
        row = _row(workload, f"{name}, local[{CORES}]", median(taken[1:]), matches["job"])
        share = f"{job / median(taken[1:]):.2f} of the job"
        rate = len(workload.events) / median(taken[1:])
        bench.keep(replace(row, events_per_cpu_second=None, events_per_second=rate, note=share))
    _measure_where(bench, workload, files, session)


def _programs(files: Files, session: SparkSession) -> dict[str, Callable[[], int]]:
    """Each program matches everything once, and returns the number of matches; -1 if it does not know."""
    subscriptions = Subscriptions.from_index(files.index)
    lines = session.read.text(str(files.publications))
    table = files.out / "events.parquet"
    session.read.json(str(files.publications)).write.parquet(str(table))
    columns = session.read.parquet(str(table))
    counter = iter(range(1_000))

    def job() -> int:
        out = files.out / f"job-{next(counter)}.parquet"
        return run_batch_job(session, BatchRequest(files.subscriptions, files.publications, out)).matches

    def skip(frame: DataFrame) -> Callable[[], int]:
        return lambda: frame.write.format("noop").mode("overwrite").save() or -1

    def write(frame: DataFrame) -> Callable[[], int]:
        return lambda: frame.write.parquet(str(files.out / f"frame-{next(counter)}.parquet")) or -1

    grouped, rows = match(lines, subscriptions, shape="grouped"), match(lines, subscriptions)
    return {
        "job": job,
        "JSON -> grouped -> no-op": skip(grouped),
        "JSON -> rows -> no-op": skip(rows),
        "JSON -> grouped -> Parquet": write(grouped),
        "JSON -> rows -> Parquet": write(rows),
        "JSON -> grouped -> count": lambda: grouped.select(F.sum(F.size("matches"))).collect()[0][0],
        "columns -> grouped -> no-op": skip(match(columns, subscriptions, shape="grouped")),
    }


def _measure_where(bench: Bench, workload: Workload, files: Files, session: SparkSession) -> None:
    """Filter the typed table once per subscription: what Spark users do by hand."""
    texts = [text for text, _ in zip(workload.subscriptions.texts(), range(FEW), strict=False)]
    columns = session.read.parquet(str(files.out / "events.parquet")).cache()
    columns.count()
    began = perf_counter()
    for text in texts:
        columns.where(text).count()
    taken = perf_counter() - began
    row = _row(workload, f"where per subscription, {FEW}, local[{CORES}]", taken, 0)
    rate = len(workload.events) / taken
    note = f"{FEW} of {len(workload.subscriptions):,} subscriptions"
    bench.keep(
        replace(row, events_per_cpu_second=None, events_per_second=rate, note=note, matches_per_event=None)
    )
