"""A match in a process whose driver may use little more memory than it has after a first, small match.

    python -m tests.relational.limited_memory index|relational FOLDER MEGABYTES

It prints the pairs as JSON. FOLDER has `subs/`, files of subscriptions, `all.jsonl`, the same in one file, and `docs/`.
"""

from __future__ import annotations

import json
import resource
import sys
from pathlib import Path

import pyarrow.parquet as parquet

from tidings.relational import job as relational_job
from tidings.relational.subscription_import import import_subscriptions
from tidings.relational.table_store import TableStore
from tidings.relational.tables import Layout, Plan
from tidings.spark.batch.job import BatchRequest, run_batch_job
from tidings.spark.session import open_session

SMALL = {"id": "s", "subscriber": "ana", "language": "xpath", "text": "/q/s = 'A' and /q/p > 1"}


def main(engine: str, folder: Path, megabytes: int) -> None:
    session = open_session("local[2]")
    (folder / "small.jsonl").write_text(json.dumps(SMALL) + "\n")
    match = match_with_index if engine == "index" else match_with_tables
    match(session, [folder / "small.jsonl"], folder / "small.jsonl", folder, "warm")
    limit_memory(megabytes)
    match(session, sorted((folder / "subs").iterdir()), folder / "all.jsonl", folder, "matches")
    rows = parquet.read_table(folder / f"matches-{engine}").to_pylist()
    print(json.dumps([[row["publication"], row["subscription"]] for row in rows]))  # noqa: T201
    session.stop()


def match_with_index(session, parts, whole, folder, out):
    run_batch_job(session, BatchRequest(whole, folder / "docs", folder / f"{out}-index"))


def match_with_tables(session, parts, whole, folder, out):
    """Fill tables file by file, as `tidings tables add` does, and match with them."""
    tables = folder / f"tables-{out}"
    store = TableStore.create(tables, Layout(Plan.UNROLL, unroll=2))
    for part in parts:
        for _ in import_subscriptions(store, None, part):
            pass
    relational_job.run_with_tables(
        session, BatchRequest(tables, folder / "docs", folder / f"{out}-relational")
    )


def limit_memory(megabytes: int) -> None:
    """Limit the data of this process. Spark's JVM and its workers are other processes, which have started."""
    [used] = [
        line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmData")
    ]
    most = int(used.split()[1]) * 1024 + (megabytes << 20)
    resource.setrlimit(resource.RLIMIT_DATA, (most, resource.getrlimit(resource.RLIMIT_DATA)[1]))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]))
