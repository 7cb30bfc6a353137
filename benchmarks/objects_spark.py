"""Objects on Spark: subscribers of many changes at once, on two cores. Tables and changes are Parquet files."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
from pyspark.sql import SparkSession

from benchmarks.engine import Counts
from benchmarks.harness import Bench
from benchmarks.objects_settings import NAME
from benchmarks.processes import Cost, measure_all_processes
from benchmarks.relational import CORES, session
from benchmarks.rows import Row
from benchmarks.scale import Scale
from benchmarks.workloads.campus import Campus
from tidings.objects.cdc.object_changes import ChangeResults, derive_object_changes

SPARK = f"Spark, local[{CORES}]"
CLOSURE = f"{SPARK}, closure"
WARM = Campus(400, 40)
"""Warm-up: starts the workers and loads modules."""


def workload_of(campus: Campus) -> str:
    return f"{NAME}, Spark, {campus.objects:,} objects, {campus.references:,} references, {campus.changes:,} changes"


def run(bench: Bench, scale: Scale) -> None:
    with session() as spark:
        for campus in scale.objects_spark:
            compare(bench, spark, Campus(*campus))


def compare(bench: Bench, spark: SparkSession, campus: Campus) -> None:
    with tempfile.TemporaryDirectory(prefix="tidings-bench-") as folder:
        warm, files = Path(folder) / "warm", Path(folder) / "campus"
        write(spark, WARM, warm)
        count_subscribers(follow(spark, WARM, warm), WARM)
        bench.say(f"{workload_of(campus)}: writing tables")
        write(spark, campus, files)
        bench.say(f"{workload_of(campus)}: propagating changes")
        closing, (followed, reached) = measure_all_processes(lambda: closure(spark, campus, files))
        telling, counts = measure_all_processes(lambda: count_subscribers(followed, campus))
    assert reached == sum(len(campus.reached(one)) for one in campus.changed())
    expected = np.array([len(campus.expected_subscribers(one)) for one in campus.changed()], np.int64)
    bench.agree(workload_of(campus), campus.watches, "the definition", expected)
    bench.agree(workload_of(campus), campus.watches, SPARK, counts)
    whole = Cost(closing.cpu + telling.cpu, closing.wall + telling.wall)
    bench.keep(_row(campus, CLOSURE, closing, reached / campus.changes))
    bench.keep(_row(campus, SPARK, whole, float(counts.mean())))


def write(spark: SparkSession, campus: Campus, folder: Path) -> None:
    for name, frame in {**campus.tables(spark), "log": campus.log(spark)}.items():
        frame.write.parquet(str(folder / name))


def follow(spark: SparkSession, campus: Campus, folder: Path) -> ChangeResults:
    tables = {path.name: spark.read.parquet(str(path)) for path in folder.iterdir()}
    return derive_object_changes(spark, campus.placed, tables.pop("log"), ["pos"], base=tables)


def closure(spark: SparkSession, campus: Campus, folder: Path) -> tuple[ChangeResults, int]:
    """Propagate changes; return the results, and the number of pairs of a change and a changed object."""
    followed = follow(spark, campus, folder)
    return followed, followed.reached.count()


def count_subscribers(followed: ChangeResults, campus: Campus) -> Counts:
    """Count the subscribers of each change, in the order of the log."""
    pairs = followed.hits.select("change", "subscriber_family", "subscriber_key").distinct()
    counted = pairs.groupBy("change").count()
    counts = np.zeros(campus.changes, np.int64)
    for row in followed.changes.select("change", "id").join(counted, "change").toLocalIterator():
        counts[int(row["id"].split()[0])] = row["count"]
    return counts


def _row(campus: Campus, engine: str, spent: Cost, matches: float) -> Row:
    return Row(
        workload_of(campus),
        campus.watches,
        engine,
        events_per_cpu_second=campus.changes / spent.cpu,
        build_seconds=None,
        bytes_per_subscription=None,
        matches_per_event=matches,
        seconds_per_event=spent.cpu / campus.changes,
        events_per_second=campus.changes / spent.wall,
    )
