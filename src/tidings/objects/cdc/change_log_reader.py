"""Change logs in files of Debezium envelopes: one per line in `.jsonl` and `.ndjson` files, one in any other file.

Tasks decode them with our own decoder: Spark's `from_json` silently turns invalid values into nulls.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tidings.errors import PublicationError
from tidings.objects.cdc.debezium_decoder import parse_envelope
from tidings.spark.sources.blocks import Block, UnreadableFile, read_blocks
from tidings.spark.sources.chunks import Chunk, plan_chunks
from tidings.spark.sources.files import Location
from tidings.spark.worker_gc import freeze_memory

LOG_ORDER = ("sequence", "file", "line")
"""Order of a log: by the source's positions, or else by files and lines. Files may have one table each."""

CSV_SUFFIXES = (".csv", ".csv.gz")
_VALUES = "map<string,string>"
LOG_COLUMNS = (
    f"table string, op string, before {_VALUES}, after {_VALUES}, sequence string, transaction string, at string,"
    " file string, line long, reason string"
)


@dataclass(frozen=True)
class ChangeLog:
    """Changes for `derive_object_changes`, and rejected envelopes."""

    changes: DataFrame
    rejects: DataFrame


def read_log(session: SparkSession, location: str | Path) -> ChangeLog:
    """Read the log in a file or folder, without the duplicates that change data capture may deliver."""
    chunks = plan_chunks(location, _count_cores(session))
    rows = pa.table({"chunk": [chunk.to_json() for chunk in chunks]})
    distributed = session.createDataFrame(rows).repartition(len(chunks))
    decoded = distributed.mapInArrow(
        build_decode_stage(Location.of(location).uri), LOG_COLUMNS
    ).localCheckpoint()
    position = F.concat_ws(":", "file", F.when(F.col("line") > 0, F.col("line")))
    rejects = decoded.where(F.col("reason").isNotNull())
    changes = _drop_duplicates(decoded.where(F.col("reason").isNull()).drop("reason"))
    return ChangeLog(
        changes.withColumn("id", F.coalesce("sequence", position)),
        rejects.select(position.alias("id"), "table", "op", "reason"),
    )


def read_table(session: SparkSession, location: str | Path) -> DataFrame:
    """Read a table in Parquet, or in CSV with a header."""
    path = resolve_location(location)
    return session.read.csv(path, header=True) if path.endswith(CSV_SUFFIXES) else session.read.parquet(path)


def resolve_location(location: str | Path) -> str:
    """Make a path absolute: Spark's JVM may have another working directory."""
    return str(location) if "://" in str(location) else str(Path(location).absolute())


def _count_cores(session: SparkSession) -> int:
    """Count the cores: by default Spark makes one partition for each."""
    return int(session.range(1_000).select(F.spark_partition_id()).distinct().count())


def _drop_duplicates(changes: DataFrame) -> DataFrame:
    positioned = changes.where(F.col("sequence").isNotNull())
    encoded = positioned.withColumn("was", F.to_json("before")).withColumn("is", F.to_json("after"))
    distinct = encoded.dropDuplicates(["sequence", "table", "op", "was", "is"]).drop("was", "is")
    return changes.where(F.col("sequence").isNull()).union(distinct)


def build_decode_stage(location: str) -> Callable[[Iterable[Any]], Iterator[Any]]:
    """Build the function for `mapInArrow` that decodes chunks of files into row changes."""

    def run(batches: Iterable[Any]) -> Iterator[Any]:
        freeze_memory()
        files = Location(location).files
        for batch in batches:
            for text in batch.column(0).to_pylist():
                for block in read_blocks(files, Chunk.from_json(text)):
                    yield _build_batch(block)

    return run


_MAP = pa.map_(pa.string(), pa.string())
_SCHEMA = pa.schema(
    [
        *(("table", pa.string()), ("op", pa.string()), ("before", _MAP), ("after", _MAP)),
        *((name, pa.string()) for name in ("sequence", "transaction", "at", "file")),
        *(("line", pa.int64()), ("reason", pa.string())),
    ]
)


def _build_batch(block: Block | UnreadableFile) -> pa.RecordBatch:
    if isinstance(block, UnreadableFile):
        return pa.RecordBatch.from_pylist([{"file": block.file, "line": 0, "reason": block.reason}], _SCHEMA)
    rows = (_build_row(block, index) for index in range(len(block.starts)))
    return pa.RecordBatch.from_pylist([row for row in rows if row is not None], _SCHEMA)


def _build_row(block: Block, index: int) -> dict[str, Any] | None:
    position = {"line": 0} | block.place(index)
    try:
        change = parse_envelope(block.body(index))
    except PublicationError as problem:
        return {**position, "reason": problem.headline()}
    if change is None:
        return None
    values = change._asdict()
    for name in ("before", "after"):
        values[name] = None if values[name] is None else list(values[name].items())
    return {**position, **values}
