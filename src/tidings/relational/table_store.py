"""Subscriptions as tables in a folder: adding, removing, learning of tag paths, collecting garbage.

    store = TableStore.create("tables", Layout(Plan.UNROLL))
    store.add(session, subscriptions)      # a table with id and text
    store.remove(["s1"])

A change writes files with its own rows and touches no other: adding writes what is new of a subscription, removing
writes a tombstone. The folder must be one that all executors see. One process changes it at a time.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tidings.errors import IdTaken, InputError, SubscriptionError
from tidings.model import Reject
from tidings.relational.branches import PredicateSet
from tidings.relational.known_paths import KnownPaths
from tidings.relational.rows import Bounds, bounds_of
from tidings.relational.shred import ShredResult, Task
from tidings.relational.tables import Layout, Plan
from tidings.relational.templates import Templates
from tidings.relational.versions import LIST, Files, Version, write_tables

FEW = 1_000
"""So many subscriptions are taken apart here: asking Spark takes longer."""

SHARED = Layout()

EACH_TASK = 25_000
SAMPLE = 5_000
"""From so many subscriptions it is judged where buckets should end."""


@dataclass(frozen=True, slots=True)
class AddResult:
    """How many subscriptions were taken, and which were not."""

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
            raise InputError("there are tables of subscriptions here already", where=str(folder))
        place.mkdir(parents=True, exist_ok=True)
        version = Version(str(place), layout)
        version.commit()
        return cls(version)

    @classmethod
    def open(cls, folder: str | Path) -> TableStore:
        return cls(Version.read(Path(folder).absolute()))

    @property
    def layout(self) -> Layout:
        return self.version.layout

    @property
    def known(self) -> KnownPaths:
        if self._known is None:
            self._known = KnownPaths.read(self.version)
        return self._known

    def table(self, session: SparkSession, name: str) -> DataFrame:
        """A table for Spark."""
        paths = self.version.paths(name)
        if not paths:
            return session.createDataFrame(self.layout.schemas[name].empty_table())
        return session.read.parquet(*paths)

    def add(self, session: SparkSession, subscriptions: Any) -> AddResult:
        """Take in subscriptions: a table with `id` and `text`. What cannot be read is refused, the rest is taken."""
        self._refuse_taken(subscriptions["id"])
        bounds, new = self._bounds(subscriptions)
        task = Task(self.version.folder, self.layout, self.version.generation + 1, bounds)
        done = _take_apart(session, task, subscriptions)
        linear = [path for apart in done for path in apart.linear]
        infos = [info for apart in done for info in apart.infos]
        with self._changing():
            files = [files for apart in done for files in apart.files]
            self._commit(*files, self._written(self.known.learn_linear(linear, infos) | new))
        return AddResult(
            sum(apart.taken for apart in done), tuple(r for apart in done for r in apart.rejects)
        )

    def remove(self, ids: Iterable[str]) -> int:
        """Forget subscriptions; how many of them were there."""
        there = self.alive(list(ids))
        if there:
            ended = [self.version.generation + 1] * len(there)
            self._commit(self._written({"tombstone": {"subscription": there, "generation": ended}}))
        return len(there)

    def learn(self, tag_paths: Iterable[str]) -> None:
        """Match tag paths that were never seen with all linear paths (section 3.4)."""
        with self._changing():
            if learned := self.known.learn_tags(tag_paths):
                self._commit(self._written(learned))

    def alive(self, ids: Sequence[str] | None = None) -> list[str]:
        """Those of these subscriptions that are there; without ids, all that are."""
        held = [("query_branchpoint", "sub_id"), ("query_everywhere", "text")]
        return list(
            dict.fromkeys(id for table, column in held for id, _ in self.version.alive(table, column, ids))
        )

    def replace(self, files: Files) -> None:
        """From now on the tables consist of these files."""
        with self._changing():
            following = dataclasses.replace(self.version.next(), files=files)
            following.commit()
            self.version, self._known = following, None

    @contextmanager
    def _changing(self) -> Iterator[None]:
        """If a change cannot be written, what was learned for it is read again from what is there."""
        try:
            yield
        except BaseException:
            self._known = None
            raise

    def _refuse_taken(self, ids: Any) -> None:
        if not self.version.files:
            return
        there = self.alive(ids.to_pylist())
        if there:
            raise IdTaken("a subscription of this id is there already", received=repr(there[0]))

    def _bounds(self, subscriptions: Any) -> tuple[Bounds, dict[str, Any]]:
        """Where buckets end: as settled before, and for new paths by what these subscriptions ask."""
        if self.layout.plan is not Plan.SHARE_BUCKET:
            return {}, {}
        rows = self.version.rows("predicate_bucket").to_pylist()
        settled = {(row["linearpath_id"], row["op"]): row["bounds"] for row in rows}
        sample = subscriptions["text"].take(_spread(subscriptions.num_rows, SAMPLE)).to_pylist()
        found = bounds_of(_readable(sample), self.layout.buckets)
        new = [row for row in found if row[:2] not in settled]
        columns = (
            dict(zip(("linearpath_id", "op", "bounds"), zip(*new, strict=True), strict=True)) if new else {}
        )
        return settled | {row[:2]: row[2] for row in new}, {"predicate_bucket": columns} if new else {}

    def _written(self, tables: dict[str, Any]) -> Files:
        schemas = self.layout.schemas
        made = {name: pa.table(dict(columns), schemas[name]) for name, columns in tables.items()}
        return write_tables(self.version.folder, made)

    def _commit(self, *files: Files) -> None:
        following = self.version.next(*files)
        following.commit()
        self.version = following


def _take_apart(session: SparkSession, task: Task, subscriptions: Any) -> list[ShredResult]:
    given = subscriptions.select(["id", "text"])
    if given.num_rows <= FEW:
        return list(task.take_apart(_pairs(given)))
    parts = max(2, given.num_rows // EACH_TASK)
    frame = session.createDataFrame(given).repartition(parts)
    reports = frame.mapInArrow(task.stage(), "report string").collect()
    return [ShredResult.from_json(row.report) for row in reports]


def _pairs(table: Any) -> Iterable[tuple[Any, Any]]:
    first, second = table.columns
    return zip(first.to_pylist(), second.to_pylist(), strict=True)


def _spread(count: int, most: int) -> list[int]:
    return list(range(0, count, max(1, count // most)))


def _readable(texts: Iterable[str]) -> Iterator[PredicateSet]:
    """What texts ask for. Those that will be refused are left out: that is said elsewhere."""
    templates = Templates()
    for text in texts:
        with suppress(SubscriptionError):
            yield from templates.asked_by(text)


# Rows of subscriptions that were not removed.


def live_rows(session: SparkSession, store: TableStore, name: str) -> DataFrame:
    """The rows of a table without those that a tombstone of a later generation names."""
    rows = store.table(session, name)
    if not store.version.files.get("tombstone"):
        return rows
    dead = store.table(session, "tombstone").groupBy("subscription").agg(F.max("generation").alias("ended"))
    both = rows.join(dead, "subscription", "left")
    return both.filter("ended is null or generation > ended").drop("ended")
