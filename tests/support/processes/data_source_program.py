"""A driver that uses the format `tidings`: `data_source_program.py MASTER URL FOLDER write|retry|both`.

`write` publishes numbers, slowly, `retry` publishes them with tasks that fail at their first attempt, and `both` writes
and reads in batches and streams, and prints what it has read.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from time import sleep

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession

from tests.support.processes.dataframe_program import open_session

ROWS = 40_000


def numbers(session: SparkSession) -> DataFrame:
    return session.range(0, ROWS, 1, 4).selectExpr("concat('n', id) AS id", "id AS n")


def fail_first_attempts(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Pass rows through; the first attempt of a task fails when most of them are published."""
    for number, batch in enumerate(batches):
        if number == 3 and TaskContext.get().attemptNumber() == 0:
            raise OSError("this attempt fails")
        yield batch


def slow_down(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        sleep(0.3)
        yield batch


def save(frame: DataFrame, url: str) -> None:
    frame.write.format("tidings").mode("append").save(url)


def follow(session: SparkSession, url: str, folder: Path) -> list[str]:
    """Publish the lines of a folder with a stream, then read the journal with one."""
    lines = session.readStream.text(str(folder / "in"))
    written = lines.writeStream.format("tidings").option("checkpointLocation", str(folder / "written"))
    written.trigger(availableNow=True).start(url).awaitTermination()
    journal = session.readStream.format("tidings").option("maxRowsPerBatch", "2").load(url)
    read = journal.writeStream.format("parquet").option("checkpointLocation", str(folder / "read"))
    read.trigger(availableNow=True).start(str(folder / "out")).awaitTermination()
    return sorted(row.id for row in session.read.parquet(str(folder / "out")).collect())


def main(master: str, url: str, folder: Path, mode: str) -> None:
    session = open_session(master, **{"spark.sql.execution.arrow.maxRecordsPerBatch": "2000"})
    if mode == "both":
        rows = session.createDataFrame([("a", 1), ("b", 2)], "id string, n int")
        save(rows, url)
        read = session.read.format("tidings").load(url)
        batch = sorted(row.id for row in read.collect())
        print(json.dumps({"batch": batch, "stream": follow(session, url, folder)}))  # noqa: T201
    else:
        frame = numbers(session)
        save(frame.mapInArrow(fail_first_attempts if mode == "retry" else slow_down, frame.schema), url)
    session.stop()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]), sys.argv[4])
