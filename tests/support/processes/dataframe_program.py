"""A driver that matches DataFrames on some master: `dataframe_program.py MASTER FOLDER small|large`.

Prints the number of pairs by the specification, and those of a batch, of a stream and of written files. The files are
in a folder that driver and executors share: beside FOLDER on a cluster, in it through Spark Connect.

`dataframe_program.py MASTER FOLDER published CACHE...` publishes subscriptions to the folder, adds some, and replaces
them by others. Prints for each step whether the pairs are as expected, and the contents of the workers' segment caches.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from tests.spark import workload
from tidings import Index, Subscription, compile_many
from tidings.spark import Subscriptions, match, write_matches
from tidings.spark.dataframe.segments import CACHE_BYTES_VARIABLE, archive_name, describe_index

SIZES = {"small": 0, "large": 60_000}
"""Further subscriptions without matches, with which the index is too large for a plan."""


SLOTS = 4
"""Cores of the cluster: a barrier stage of so many tasks runs on all executors at once."""


def open_session(master: str, **more: str) -> SparkSession:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder: Any = SparkSession.builder
    if master == "connect":
        return builder.remote("local[2]").getOrCreate()
    settings = {
        "spark.driver.host": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.executor.memory": "600m",
        "spark.scheduler.minRegisteredResourcesRatio": "1",
        "spark.scheduler.barrier.maxConcurrentTasksCheck.interval": "1s",
        **more,
    }
    return builder.master(master).config(map=settings).getOrCreate()


def main(master: str, folder: Path, size: str) -> None:
    session = open_session(master)
    wanted, bodies = workload.subscriptions(30), workload.events(100)
    named = {f"e{number}": body for number, body in enumerate(bodies)}
    texts = (f"nothing = 'value {number}' and other > {number}" for number in range(SIZES[size]))
    more = [Subscription(f"more-{number}", "zoe", "predicates", text) for number, text in enumerate(texts)]
    subscriptions = Subscriptions.compile([*wanted, *more])
    frame = session.createDataFrame(
        [(name, body.decode()) for name, body in named.items()], "id string, value string"
    )
    batch = match(frame.repartition(4), subscriptions).count()
    is_connect = master == "connect"
    shared = (folder if is_connect else folder.parent) / "written"
    written = write_matches(frame.repartition(4), subscriptions, shared)
    if is_connect and size == "large":
        # A stream through Connect sees no artifacts: subscriptions are published where executors can read them.
        subscriptions = subscriptions.publish(folder / "published")
    result = {
        "expected": len(workload.expected(named, wanted)),
        "batch": batch,
        "written": [written.matches, session.read.parquet(str(shared)).distinct().count()],
        "stream": count_stream(session, subscriptions, folder),
        "hidden": None if is_connect else find_hidden(session, str(folder)),
    }
    sys.stdout.write(json.dumps(result) + "\n")
    session.stop()


def find_hidden(session: SparkSession, folder: str) -> list[bool]:
    """Return for each executor whether it sees the folder of the driver as empty or missing."""

    def look(batches: Any) -> Any:
        for _ in batches:
            pass
        place = Path(folder)
        yield pa.RecordBatch.from_pydict({"hidden": [not place.exists() or not any(place.iterdir())]})

    rows = session.range(0, SLOTS, 1, SLOTS).mapInArrow(look, "hidden boolean", barrier=True).collect()
    return [row.hidden for row in rows]


def count_stream(session: SparkSession, subscriptions: Subscriptions, folder: Path) -> int:
    """Match a stream of rates, each tick of which is one of the events."""
    bodies = [body.decode() for body in workload.events(100)]
    ticks = session.readStream.format("rate-micro-batch").option("rowsPerBatch", len(bodies)).load()
    events = ticks.select(F.element_at(F.lit(bodies), (F.col("value") + 1).cast("int")).alias("body"))
    matches = match(events.where("body is not null"), subscriptions, value="body", format="json")
    query = (
        matches.writeStream.format("memory")
        .queryName("matched")
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(once=True)  # the source of ticks never ends
        .start()
    )
    query.awaitTermination()
    return session.table("matched").count()


def main_published(master: str, folder: Path, caches: list[Path]) -> None:
    wanted, others = workload.subscriptions(60)[:30], workload.subscriptions(60)[30:]
    growing, replaced = Index.create(), Index.create()
    growing.add(compile_many(wanted[:15]))
    first = describe_index(growing)
    growing.add(compile_many(wanted[15:]))
    replaced.add(compile_many(others))
    limit = describe_index(growing).manifest.nbytes
    session = open_session(master, **{f"spark.executorEnv.{CACHE_BYTES_VARIABLE}": str(limit)})

    def publish_and_match(index: Index, known: list[Subscription], *unneeded: str) -> dict[str, object]:
        """Match with a new version; archives that executors should not fetch again are deleted before."""
        published = Subscriptions.from_index(index).publish(folder)
        for digest in unneeded:
            (folder / "segments" / archive_name(digest)).unlink()
        named = {f"e{number}": body for number, body in enumerate(workload.events(100))}
        rows = [(name, body.decode()) for name, body in named.items()]
        frame = session.createDataFrame(rows, "id string, value string").repartition(SLOTS)
        everywhere = frame.mapInArrow(lambda batches: batches, frame.schema, barrier=True)
        pairs = {(row.publication, row.subscription) for row in match(everywhere, published).collect()}
        return {
            "segments": sorted(describe_index(index).folders),
            "is_expected": pairs == workload.expected(named, known) and len(pairs) > 0,
            "caches": [list_cached(cache) for cache in caches],
            "mapped": [find_mapped(cache) for cache in caches],
        }

    initial = Index.create()
    initial.add(compile_many(wanted[:15]))
    assert describe_index(initial).manifest == first.manifest
    steps = {
        "first": publish_and_match(initial, wanted[:15]),
        "added": publish_and_match(growing, wanted, *first.folders),
        "replaced": publish_and_match(replaced, others),
    }
    sys.stdout.write(json.dumps({"limit": limit, **steps}) + "\n")
    session.stop()


def list_cached(cache: Path) -> dict[str, list[int]]:
    """Return inode and size of each segment in a cache. A segment that is fetched again has another inode."""
    folders = (cache / "segments").iterdir()
    return {
        folder.name: [folder.stat().st_ino, sum(file.stat().st_size for file in folder.iterdir())]
        for folder in folders
    }


def find_mapped(cache: Path) -> dict[str, int]:
    """Return the number of processes of this machine that map the arrays of each segment of a cache."""
    counts: Counter[str] = Counter()
    for maps in Path("/proc").glob("[0-9]*/maps"):
        with suppress(OSError):  # the process has ended
            counts.update(
                set(
                    re.findall(rf"{re.escape(str(cache))}/segments/(\w+)/arrays.bin$", maps.read_text(), re.M)
                )
            )
    return dict(counts)


if __name__ == "__main__":
    if sys.argv[3] == "published":
        main_published(sys.argv[1], Path(sys.argv[2]), [Path(name) for name in sys.argv[4:]])
    else:
        main(sys.argv[1], Path(sys.argv[2]), sys.argv[3])
