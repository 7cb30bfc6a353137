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


def read_log(session: SparkSession, place: str | Path) -> ChangeLog:
    """Read the log in a file or folder, without the duplicates that change data capture may deliver."""
    chunks = plan_chunks(place, _cores(session))
    rows = pa.table({"chunk": [chunk.to_json() for chunk in chunks]})
    spread = session.createDataFrame(rows).repartition(len(chunks))
    found = spread.mapInArrow(build_decode_stage(Location.of(place).uri), LOG_COLUMNS).localCheckpoint()
    where = F.concat_ws(":", "file", F.when(F.col("line") > 0, F.col("line")))
    rejects = found.where(F.col("reason").isNotNull())
    changes = _once(found.where(F.col("reason").isNull()).drop("reason"))
    return ChangeLog(
        changes.withColumn("id", F.coalesce("sequence", where)),
        rejects.select(where.alias("id"), "table", "op", "reason"),
    )


def read_table(session: SparkSession, place: str | Path) -> DataFrame:
    """Read a table in Parquet, or in CSV with a header."""
    path = resolve_location(place)
    return session.read.csv(path, header=True) if path.endswith(CSV_SUFFIXES) else session.read.parquet(path)


def resolve_location(place: str | Path) -> str:
    """Make a path absolute: Spark's JVM may have another working directory."""
    return str(place) if "://" in str(place) else str(Path(place).absolute())


def _cores(session: SparkSession) -> int:
    """Count the cores, for each of which Spark makes a partition by default."""
    return int(session.range(1_000).select(F.spark_partition_id()).distinct().count())


def _once(changes: DataFrame) -> DataFrame:
    positioned = changes.where(F.col("sequence").isNotNull())
    said = positioned.withColumn("was", F.to_json("before")).withColumn("is", F.to_json("after"))
    once = said.dropDuplicates(["sequence", "table", "op", "was", "is"]).drop("was", "is")
    return changes.where(F.col("sequence").isNull()).union(once)


def build_decode_stage(place: str) -> Callable[[Iterable[Any]], Iterator[Any]]:
    """Build the function for `mapInArrow` that decodes chunks of files into row changes."""

    def run(batches: Iterable[Any]) -> Iterator[Any]:
        freeze_memory()
        files = Location(place).files
        for batch in batches:
            for text in batch.column(0).to_pylist():
                for block in read_blocks(files, Chunk.from_json(text)):
                    yield _rows(block)

    return run


_MAP = pa.map_(pa.string(), pa.string())
_SCHEMA = pa.schema(
    [
        *(("table", pa.string()), ("op", pa.string()), ("before", _MAP), ("after", _MAP)),
        *((name, pa.string()) for name in ("sequence", "transaction", "at", "file")),
        *(("line", pa.int64()), ("reason", pa.string())),
    ]
)


def _rows(block: Block | UnreadableFile) -> pa.RecordBatch:
    if isinstance(block, UnreadableFile):
        return pa.RecordBatch.from_pylist([{"file": block.file, "line": 0, "reason": block.reason}], _SCHEMA)
    found = (_row(block, place) for place in range(len(block.starts)))
    return pa.RecordBatch.from_pylist([row for row in found if row is not None], _SCHEMA)


def _row(block: Block, place: int) -> dict[str, Any] | None:
    where = {"line": 0} | block.place(place)
    try:
        change = parse_envelope(block.body(place))
    except PublicationError as problem:
        return {**where, "reason": problem.headline()}
    if change is None:
        return None
    named = change._asdict()
    for which in ("before", "after"):
        named[which] = None if named[which] is None else list(named[which].items())
    return {**where, **named}
