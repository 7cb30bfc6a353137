"""Collecting garbage: rows of removed subscriptions; predicates, paths and branch informations nobody uses any more.

Removing a subscription leaves a tombstone only. Here all tables are written anew without what is dead, and without rows
that files repeat; then the old files go. Nobody else may be matching meanwhile.
"""

from __future__ import annotations

from functools import reduce
from pathlib import Path
from uuid import uuid4

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tidings.relational.checkpointed import CheckpointedTables, checkpointed_tables
from tidings.relational.table_store import TableStore, live_rows
from tidings.relational.versions import Files
from tidings.spark.sources.files import Location

FEW_ROWS = (
    "query_linear_path",
    "linearpath_brinfo",
    "predicate_bucket",
    "tagpath_map",
    "path_match",
    "tagpath_brinfo",
)
"""Tables that fit into one file."""


def compact(session: SparkSession, store: TableStore) -> None:
    """Write the tables anew with what is alive."""
    with checkpointed_tables() as kept:
        files = {name: _written(store, name, frame) for name, frame in _alive(session, store, kept).items()}
    store.replace(files)
    _sweep(Path(store.version.folder), store.version.files)


def _alive(session: SparkSession, store: TableStore, kept: CheckpointedTables) -> dict[str, DataFrame]:
    def table(name: str) -> DataFrame:
        return store.table(session, name)

    meetings = kept(live_rows(session, store, "query_branchpoint"))
    unrolled = kept(table("predicate_unroll").join(meetings, "sub_id", "left_semi"))
    chained = kept(_used_chains(table("query_predicate"), meetings, kept))
    used = kept(_used_paths(chained, unrolled, store.layout.unroll))
    listed = F.split("branchpoint_info", "&").cast("array<bigint>")
    infos = meetings.select(F.explode(listed).alias("brinfo_id")).distinct()
    matched = kept(table("path_match").join(used, "linearpath_id", "left_semi"))
    return {
        "query_branchpoint": meetings,
        "query_everywhere": live_rows(session, store, "query_everywhere"),
        "predicate_unroll": unrolled,
        "query_predicate": chained,
        "query_linear_path": table("query_linear_path").join(
            used.withColumnRenamed("linearpath_id", "id"), "id", "left_semi"
        ),
        "predicate_bucket": table("predicate_bucket").join(used, "linearpath_id", "left_semi"),
        "linearpath_brinfo": table("linearpath_brinfo").join(infos, "brinfo_id", "left_semi"),
        "path_match": matched,
        "tagpath_map": table("tagpath_map").join(matched, "tagpath_id", "left_semi"),
        "tagpath_brinfo": table("tagpath_brinfo").join(infos, "brinfo_id", "left_semi"),
    }


def _used_chains(predicates: DataFrame, meetings: DataFrame, kept: CheckpointedTables) -> DataFrame:
    """The last predicates of living subscriptions, those that lead to them, and so on back to the root."""
    ends = meetings.select(F.col("sub_id").alias("chain_id"))
    level = predicates.filter("final").join(ends, "chain_id", "left_semi")
    levels = []
    while not level.isEmpty():
        levels.append(level)
        before = level.select(F.col("pre_id").alias("chain_id")).distinct()
        inner = predicates.filter("not final").join(before, "chain_id", "left_semi")
        level = kept(inner.dropDuplicates(["chain_id"]))
    return reduce(DataFrame.unionByName, levels, level)


def _used_paths(chained: DataFrame, unrolled: DataFrame, k: int) -> DataFrame:
    paths = F.array(*(f"path{n}" for n in range(1, k + 1)))
    first = unrolled.select(F.explode(paths).alias("linearpath_id")).filter("linearpath_id is not null")
    return chained.select("linearpath_id").unionByName(first).distinct()


def _written(store: TableStore, name: str, frame: DataFrame) -> tuple[str, ...]:
    folder = f"{name}/{uuid4().hex}"
    rows = frame.select(*store.layout.schemas[name].names)
    place = Path(store.version.folder) / folder
    (rows.coalesce(1) if name in FEW_ROWS else rows).write.parquet(Location.of(place).for_spark)
    return tuple(f"{folder}/{part.name}" for part in sorted(place.glob("part-*.parquet")))


def _sweep(folder: Path, files: Files) -> None:
    """Delete files that are in no list, and folders that are empty then."""
    listed = {folder / name for names in files.values() for name in names}
    for path in sorted(folder.glob("*/**/*"), reverse=True):
        if path.is_file() and path not in listed:
            path.unlink()
        elif path.is_dir() and not any(path.iterdir()):
            path.rmdir()
