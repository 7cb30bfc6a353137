"""A driver that matches DataFrames on some master: `dataframe_program.py MASTER FOLDER small|large`.

Prints how many pairs the definition expects, and how many a batch and a stream found.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from tests.spark import workload
from tidings import Subscription
from tidings.spark import Subscriptions, match

SIZES = {"small": 0, "large": 60_000}
"""Further subscriptions, which match nothing and take the index over what travels in a plan."""


def open_session(master: str) -> SparkSession:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder: Any = SparkSession.builder
    if master == "connect":
        return builder.remote("local[2]").getOrCreate()
    settings = {
        "spark.driver.host": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.executor.memory": "600m",
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
    if master == "connect" and size == "large":
        # A stream through Connect sees no artifacts: subscriptions are published where executors can read them.
        subscriptions = subscriptions.publish(folder / "published")
    result = {
        "expected": len(workload.expected(named, wanted)),
        "batch": batch,
        "stream": count_stream(session, subscriptions, folder),
        "hidden": find_hidden(session, str(folder)),
    }
    sys.stdout.write(json.dumps(result) + "\n")
    session.stop()


def find_hidden(session: SparkSession, folder: str) -> list[bool]:
    """Return whether the folder of the driver is empty or missing, as two tasks see it."""

    def look(batches: Any) -> Any:
        for _ in batches:
            pass
        place = Path(folder)
        yield pa.RecordBatch.from_pydict({"hidden": [not place.exists() or not any(place.iterdir())]})

    rows = session.range(0, 2, 1, 2).mapInArrow(look, "hidden boolean").collect()
    return [row.hidden for row in rows]


def count_stream(session: SparkSession, subscriptions: Subscriptions, folder: Path) -> int:
    """Match a stream of rates, each tick of which stands for one of the events."""
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


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), sys.argv[3])
