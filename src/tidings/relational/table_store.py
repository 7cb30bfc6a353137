"""Subscriptions as tables in a folder: adding, removing, learning tag paths, compaction.

    store = TableStore.create("tables", Layout(Plan.UNROLL))
    store.add(session, subscriptions)      # a table with id and text
    store.remove(["s1"])
    compact(session, store)

A change writes files with its own rows and touches no others: adding writes the new rows of a subscription, removing
writes a tombstone. Compaction rewrites all tables without dead and repeated rows, and without predicates, paths and
branch informations that are no longer used; then it deletes the old files. No matching may run at the same time. All
executors must see the folder. One process changes it at a time.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tidings.errors import IdConflict, InputError, SetupError, SubscriptionError
from tidings.model import Reject
from tidings.relational.branches import PredicateSet, Templates
from tidings.relational.known_paths import KnownPaths
from tidings.relational.lookup import broadcast_small
from tidings.relational.plans import CheckpointedTables, checkpointed_tables
from tidings.relational.shred import COLUMNS, Bounds, ShredResult, Task, bounds_of
from tidings.relational.tables import (
    CLUSTERED_BY,
    LIST,
    Files,
    Layout,
    Plan,
    StorePosition,
    Version,
    write_tables,
)
from tidings.spark.checkpoint import acquire_lock
from tidings.spark.sources.files import Location

LOCK = "tables.lock"

SMALL_FILE, MAX_SMALL_FILES = 10_000, 32
"""A file with fewer rows is small. So many small files of a table are read as fast as one, nearly."""

MIN_REMOVED = 10_000
"""The least number of removed subscriptions for which a stream compacts its tables."""

FEW = 1_000
"""Up to this number subscriptions are shredded in the driver: a Spark job takes longer."""

SHARED = Layout()

EACH_TASK = 25_000
SAMPLE = 5_000
"""Number of subscriptions from which the ends of buckets are estimated."""


@dataclass(frozen=True, slots=True)
class AddResult:
    """Number of accepted subscriptions, and the rejected ones."""

    taken: int
    rejects: tuple[Reject, ...]


class TableStore:
    """The tables of a folder, at their newest version."""

    def __init__(self, version: Version) -> None:
        self.version = version
        self._known: KnownPaths | None = None

    @classmethod
    def create(cls, folder: str | Path, layout: Layout = SHARED) -> TableStore:
        place = Path(folder).absolute()
        if (place / LIST).exists():
            raise InputError("the folder has tables of subscriptions already", where=str(folder))
        place.mkdir(parents=True, exist_ok=True)
        version = Version(str(place), layout)
        version.commit()
        return cls(version)

    @classmethod
    def open(cls, folder: str | Path) -> TableStore:
        return cls(Version.read(Path(folder).absolute()))

    @property
    def folder(self) -> Path:
        return Path(self.version.folder)

    @property
    def nbytes(self) -> int:
        """The size of all files on disk."""
        listed = (name for names in self.version.files.values() for name in names)
        return sum((self.folder / name).stat().st_size for name in listed)

    @property
    def layout(self) -> Layout:
        return self.version.layout

    @property
    def known(self) -> KnownPaths:
        if self._known is None:
            self._known = KnownPaths.read(self.version)
        return self._known

    def table(self, session: SparkSession, name: str) -> DataFrame:
        """Open a table for Spark."""
        paths = self.version.paths(name)
        if not paths:
            return session.createDataFrame(self.layout.schemas[name].empty_table())
        return session.read.parquet(*paths)

    def add(self, session: SparkSession | None, subscriptions: Any) -> AddResult:
        """Add subscriptions, a table with `id`, `text` and perhaps `subscriber`; invalid ones are rejected.

        Without a session the driver does all the work.
        """
        self._refuse_following()
        existing = self.live_ids(subscriptions["id"].to_pylist()) if self.version.files else ()
        if existing:
            raise IdConflict("there is a subscription with this id already", received=repr(existing[0]))
        return self._change(session, [], [subscriptions], None)

    def remove(self, ids: Iterable[str]) -> list[str]:
        """Remove subscriptions; return those that existed."""
        self._refuse_following()
        existing = self.live_ids(list(ids))
        if existing:
            self._change(None, existing, [], None)
        return existing

    def follow(
        self, session: SparkSession, removed: Sequence[str], added: Iterable[Any], position: StorePosition
    ) -> AddResult:
        """Apply the changes of a store up to a position, in one step. The first changes make the tables follow it."""
        existing = self.live_ids(removed) if removed else []
        return self._change(session, existing, added, position)

    def _refuse_following(self) -> None:
        if self.version.follows is not None:
            raise InputError(
                "these tables follow the subscriptions of a store",
                where=self.version.folder,
                received=self.version.follows.store,
                hint="change the subscriptions in the store",
            )

    def _change(
        self,
        session: SparkSession | None,
        removed: Sequence[str],
        added: Iterable[Any],
        position: StorePosition | None,
    ) -> AddResult:
        """Write tombstones, and the rows of new subscriptions; then make both count at once."""
        results: list[ShredResult] = []
        bounds, new = self._read_bounds(), dict[tuple[int, str], Sequence[float]]()
        for subscriptions in added:
            new |= self._estimate_bounds(subscriptions, bounds | new)
            task = Task(self.version.folder, self.layout, self.version.generation + 1, bounds | new)
            results += _shred(session, task, subscriptions)
        taken = sum(result.taken for result in results)
        linear = [path for result in results for path in result.linear]
        infos = [info for result in results for info in result.infos]
        tables = _bucket_rows(new) | _tombstones(removed, self.version.generation)
        with self._changing():
            files = [files for result in results for files in result.files]
            following = self.version.next(
                *files, self._write(self.known.learn_linear(linear, infos) | tables)
            )
            count = following.subscriptions + taken - len(removed)
            self._commit(dataclasses.replace(following, subscriptions=count, follows=position))
        return AddResult(taken, tuple(reject for result in results for reject in result.rejects))

    def learn(self, tag_paths: Iterable[str]) -> None:
        """Match new tag paths with all linear paths (section 3.4)."""
        with self._changing():
            if learned := self.known.learn_tags(tag_paths):
                self._commit(self.version.next(self._write(learned)))

    def live_ids(self, ids: Sequence[str] | None = None) -> list[str]:
        """Return which of these subscriptions exist; without ids, all existing ones."""
        tables = ("query_branchpoint", "query_everywhere")
        return list(dict.fromkeys(id for table in tables for (id,) in self.version.alive(table, ids=ids)))

    def merge_small_files(self) -> None:
        """Merge the small files of each table that has many, as those of many small changes."""
        files = dict(self.version.files)
        merged = [name for name in files if len(_small_files(files[name])) > MAX_SMALL_FILES]
        if not merged:
            return
        old = {name: _small_files(files[name]) for name in merged}
        tables = {name: self._read_files(name, old[name]) for name in merged}
        new = write_tables(self.version.folder, tables)
        for name in merged:
            files[name] = {file: rows for file, rows in files[name].items() if file not in old[name]} | new[
                name
            ]
        self._commit(dataclasses.replace(self.version.next(), files=files))
        for file in (file for name in merged for file in old[name]):
            (self.folder / file).unlink()

    def _read_files(self, name: str, files: Iterable[str]) -> Any:
        """Read some files of a table, without rows that several of them have."""
        paths, schema = [str(self.folder / file) for file in files], self.layout.schemas[name]
        rows = ds.dataset(paths, schema, format="parquet").to_table()
        return rows.group_by(schema.names).aggregate([]) if name == "query_predicate" else rows

    def replace(self, files: Files) -> None:
        """Replace the files of all tables."""
        with self._changing():
            following = dataclasses.replace(self.version.next(), files=files)
            following.commit()
            self.version, self._known = following, None

    @contextmanager
    def _changing(self) -> Iterator[None]:
        """Discard the cached paths if a change fails: they may include those of the change."""
        try:
            yield
        except BaseException:
            self._known = None
            raise

    def _read_bounds(self) -> dict[tuple[int, str], Sequence[float]]:
        """Return the ends of the buckets that are settled."""
        rows = self.version.rows("predicate_bucket").to_pylist()
        return {(row["linearpath_id"], row["op"]): row["bounds"] for row in rows}

    def _estimate_bounds(self, subscriptions: Any, settled: Bounds) -> dict[tuple[int, str], Sequence[float]]:
        """Estimate the ends of buckets of new paths from subscriptions."""
        if self.layout.plan is not Plan.SHARE_BUCKET:
            return {}
        sample = subscriptions["text"].take(_spread(subscriptions.num_rows, SAMPLE)).to_pylist()
        found = bounds_of(_readable(sample), self.layout.buckets)
        return {row[:2]: row[2] for row in found if row[:2] not in settled}

    def _write(self, tables: dict[str, Any]) -> Files:
        schemas = self.layout.schemas
        rows = {name: pa.table(dict(columns), schemas[name]) for name, columns in tables.items()}
        return write_tables(self.version.folder, rows)

    def _commit(self, following: Version) -> None:
        following.commit()
        self.version = following


def _small_files(files: Mapping[str, int]) -> list[str]:
    return [file for file, rows in files.items() if rows < SMALL_FILE]


@contextmanager
def hold_tables(folder: str | Path) -> Iterator[TableStore]:
    """Open the tables of a folder for changes; raise `SetupError` if another process does that.

    Matching changes tables, too: it learns tag paths.
    """
    store = TableStore.open(folder)
    held = acquire_lock(store.folder / LOCK)
    if held is None:
        raise SetupError(
            "another process matches with these tables or changes them",
            where=str(folder),
            hint="wait until it has ended, or stop it",
        )
    try:
        yield TableStore.open(folder)
    finally:
        os.close(held)


def _bucket_rows(bounds: Bounds) -> dict[str, dict[str, Any]]:
    if not bounds:
        return {}
    paths, operators = zip(*bounds, strict=True)
    return {"predicate_bucket": {"linearpath_id": paths, "op": operators, "bounds": list(bounds.values())}}


def _tombstones(removed: Sequence[str], generation: int) -> dict[str, dict[str, Any]]:
    if not removed:
        return {}
    return {"tombstone": {"subscription": removed, "generation": [generation] * len(removed)}}


def _shred(session: SparkSession | None, task: Task, subscriptions: Any) -> list[ShredResult]:
    if "subscriber" not in subscriptions.column_names:
        nobody = pa.nulls(subscriptions.num_rows, pa.string())
        subscriptions = subscriptions.append_column("subscriber", nobody)
    given = subscriptions.select(COLUMNS)
    if given.num_rows <= FEW or session is None:
        return list(task.shred(_rows(given)))
    parts = max(2, given.num_rows // EACH_TASK)
    frame = session.createDataFrame(given).repartition(parts)
    reports = frame.mapInArrow(task.stage(), "report string").collect()
    return [ShredResult.from_json(row.report) for row in reports]


def _rows(table: Any) -> Iterable[tuple[Any, ...]]:
    return zip(*(column.to_pylist() for column in table.columns), strict=True)


def _spread(count: int, most: int) -> list[int]:
    return list(range(0, count, max(1, count // most)))


def _readable(texts: Iterable[str]) -> Iterator[PredicateSet]:
    """Yield the predicates of texts, without invalid ones, which are reported elsewhere."""
    templates = Templates()
    for text in texts:
        with suppress(SubscriptionError):
            yield from templates.predicate_sets_of(text)


def drop_removed(session: SparkSession, store: TableStore, rows: DataFrame) -> DataFrame:
    """Drop the rows of removed subscriptions."""
    if not store.version.files.get("tombstone"):
        return rows
    dead = store.table(session, "tombstone").groupBy("subscription").agg(F.max("generation").alias("ended"))
    dead = broadcast_small(dead, store.version.count("tombstone"))
    both = rows.join(dead, "subscription", "left")
    return both.filter("ended is null or generation > ended").drop("ended")


FEW_ROWS = (
    "query_linear_path",
    "linearpath_brinfo",
    "predicate_bucket",
    "tagpath_map",
    "path_match",
    "tagpath_brinfo",
)
"""Tables that fit into one file."""


CLUSTERED_ROWS = 1_000_000
"""Rows per file of a compacted table."""

PAGES = {"parquet.page.row.count.limit": "1000"}
"""The rows of a page, the least that a look-up reads of a file that Spark has written."""


def compact(session: SparkSession, store: TableStore) -> None:
    """Rewrite the tables with live rows only."""
    with checkpointed_tables() as kept:
        files = {
            name: _write_table(store, name, frame)
            for name, frame in _live_tables(session, store, kept).items()
        }
    store.replace(files)
    _sweep(Path(store.version.folder), store.version.files)


def tidy_tables(session: SparkSession, store: TableStore) -> None:
    """Keep tables in order that change all the time.

    They are compacted when more subscriptions have been removed than are left, so each removal pays for a row or two.
    """
    if store.version.count("tombstone") > max(MIN_REMOVED, store.version.subscriptions):
        compact(session, store)
    else:
        store.merge_small_files()


def _live_tables(session: SparkSession, store: TableStore, kept: CheckpointedTables) -> dict[str, DataFrame]:
    def table(name: str) -> DataFrame:
        return store.table(session, name)

    meetings = kept(drop_removed(session, store, table("query_branchpoint")))
    unrolled = kept(table("predicate_unroll").join(meetings, "sub_id", "left_semi"))
    chained = kept(_used_chains(table("query_predicate"), meetings, kept))
    used = kept(_used_paths(chained, unrolled, store.layout.unroll))
    listed = F.split("branchpoint_info", "&").cast("array<bigint>")
    infos = meetings.select(F.explode(listed).alias("brinfo_id")).distinct()
    matched = kept(table("path_match").join(used, "linearpath_id", "left_semi"))
    return {
        "query_branchpoint": meetings,
        "query_everywhere": drop_removed(session, store, table("query_everywhere")),
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
    """Return the last predicates of live subscriptions and all that lead to them, back to the root."""
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


def _write_table(store: TableStore, name: str, frame: DataFrame) -> dict[str, int]:
    folder = f"{name}/{uuid4().hex}"
    rows = frame.select(*store.layout.schemas[name].names)
    place = Path(store.version.folder) / folder
    if name in FEW_ROWS:
        rows = rows.coalesce(1)
    elif keys := CLUSTERED_BY.get(name):
        parts = store.version.count(name) // CLUSTERED_ROWS + 1
        rows = rows.repartitionByRange(parts, *keys).sortWithinPartitions(*keys)
    rows.write.options(**PAGES).parquet(Location.of(place).for_spark)
    written = sorted(place.glob("part-*.parquet"))
    return {f"{folder}/{part.name}": pq.read_metadata(part).num_rows for part in written}


def _sweep(folder: Path, files: Files) -> None:
    """Delete unlisted files, and the folders that are empty then."""
    listed = {folder / name for names in files.values() for name in names}
    for path in sorted(folder.glob("*/**/*"), reverse=True):
        if path.is_file() and path not in listed:
            path.unlink()
        elif path.is_dir() and not any(path.iterdir()):
            path.rmdir()
