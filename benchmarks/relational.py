"""The relational plans of paper 003 on Spark, with two cores: subscriptions as tables, matching as joins.

Each plan matches all documents at once, after a few that start the workers and register the tag paths. CPU seconds
include Spark's processes, and so Spark's work besides matching.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession

from benchmarks.engine import Counts
from benchmarks.harness import Bench
from benchmarks.processes import Cost, measure_all_processes
from benchmarks.rows import Row
from benchmarks.workloads.documents import Documents, DocumentWorkload
from tidings.relational.engine import matching
from tidings.relational.table_store import TableStore
from tidings.relational.tables import Layout, Plan
from tidings.spark.session import open_session

CORES = 2
PLANS = (Plan.UNROLL, Plan.SHARE, Plan.SHARE_BUCKET)
FEW = 20
"""Documents that start the workers."""


@contextmanager
def session() -> Iterator[SparkSession]:
    opened = open_session(master=f"local[{CORES}]")
    try:
        yield opened
    finally:
        opened.stop()


def compare(
    bench: Bench, spark: SparkSession, workload: DocumentWorkload, plans: Sequence[Plan] = PLANS
) -> None:
    """Measure the plans one after another."""
    for plan in plans:
        with tempfile.TemporaryDirectory(prefix="tidings-bench-") as folder:
            bench.keep(measure(bench, spark, workload, plan, Path(folder) / "tables"))


def measure(bench: Bench, spark: SparkSession, workload: DocumentWorkload, plan: Plan, folder: Path) -> Row:
    name, size = f"relational, {plan.value}", len(workload.subscriptions)
    bench.say(f"{workload.name}: {name} loads {size:,} subscriptions")
    store = TableStore.create(folder, Layout(plan))
    built, _ = measure_all_processes(lambda: _fill(store, spark, workload))
    count_matches(spark, store, workload.events.first(FEW))
    spent, counts = measure_all_processes(lambda: count_matches(spark, store, workload.events))
    bench.agree(workload.name, size, name, counts)
    return _row(workload, name, spent, counts, built, folder)


def _fill(store: TableStore, spark: SparkSession, workload: DocumentWorkload) -> None:
    texts = pa.chunked_array(workload.subscriptions.chunks)
    ids = pa.array([f"s{row}" for row in range(len(texts))])
    added = store.add(spark, pa.table({"id": ids, "text": texts}))
    if added.rejects:
        raise ValueError(f"{len(added.rejects)} texts are rejected, the first: {added.rejects[0]}")


def count_matches(spark: SparkSession, store: TableStore, documents: Documents) -> Counts:
    """Count the subscriptions that each document satisfies."""
    names = pa.array([f"{row}" for row in range(len(documents))])
    bodies = pa.array(documents.bodies(), pa.binary())
    frame = spark.createDataFrame(pa.table({"publication": names, "body": bodies}))
    with matching(spark, store, frame) as outcome:
        rows = outcome.pairs.groupBy("publication").count().collect()
    counts = np.zeros(len(documents), np.int64)
    for row in rows:
        counts[int(row["publication"])] = row["count"]
    return counts


def _row(
    workload: DocumentWorkload, name: str, spent: Cost, counts: Counts, built: Cost, folder: Path
) -> Row:
    size, count = len(workload.subscriptions), len(counts)
    nbytes = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
    return Row(
        workload.name,
        size,
        name,
        events_per_cpu_second=count / spent.cpu,
        build_seconds=built.cpu,
        bytes_per_subscription=nbytes / size,
        matches_per_event=float(counts.mean()),
        seconds_per_event=spent.cpu / count,
        events_per_second=count / spent.wall,
        linear_paths=workload.subscriptions.linear_paths,
    )
