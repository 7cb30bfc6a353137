"""Streaming source for the journal: `session.readStream.format("tidings_journal")`.

An offset is a position, so a batch is a range of positions and has the same publications when it is repeated after a
crash. Tasks read their part of the range directly from the store (`stream.journal_task`); nothing passes through the
driver.

    option             meaning
    store_url          the address of the store (Spark redacts options with `url` in their names)
    publications       the maximum number of publications in a batch
    lock               a file that the source locks while its JVM is alive (see `checkpoint`)
    run                a name of this run; with it the run begins with a batch even if there is nothing new
"""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow

from tidings.errors import SetupError
from tidings.spark.checkpoint import SURVIVAL_SECONDS, acquire_lock, write_lock_owner
from tidings.store.store import Store, open_store

PUBLICATIONS_A_TASK = 2_000
ROWS = 500

JOURNAL_COLUMNS = (
    "position long, publication string, name string, media_type string, body binary, problem string"
)
"""The columns of every source: the position, the id (null if it is in the body), the name used without an id, the media
type, the bytes; or the problem if there are no bytes.
"""

JOURNAL_SCHEMA = pa.schema(
    [
        ("position", pa.int64()),
        ("publication", pa.string()),
        ("name", pa.string()),
        ("media_type", pa.string()),
        ("body", pa.binary()),
        ("problem", pa.string()),
    ]
)
JournalRow = tuple[int, str | None, str, str, bytes | None, str | None]


@dataclass
class PositionRange(InputPartition):  # type: ignore[misc]
    """The positions after `after`, up to and including `upto`."""

    after: int
    upto: int


class PositionReader(DataSourceStreamReader, SupportsTriggerAvailableNow):  # type: ignore[misc]
    """Base of sources with one position: bounds batches, and can stop at the initial head.

    Spark's own limits never exceed ours, so no trigger can make a batch too large. Spark plans a batch when the offset
    changes: the name of the run, as part of the offset, changes it when a run begins.
    """

    def __init__(self, options: Any) -> None:
        self._max_publications = int(options["publications"])
        self._lock = options["lock"]
        self._run = options.get("run")
        self._target: int | None = None

    @abstractmethod
    def head(self) -> int:
        """Return the last position of the source."""

    @abstractmethod
    def rows(self, part: Any) -> Iterator[tuple[Any, ...]]:
        """Yield the rows of one range from `partitions`, in the columns of the source."""

    def initialOffset(self) -> dict[str, int]:
        hold_lock(self._lock)
        return {"position": self.beginning()}

    def beginning(self) -> int:
        """Return the position where a stream without a checkpoint begins."""
        return 0

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadMaxRows(self._max_publications)

    def prepareForTriggerAvailableNow(self) -> None:
        hold_lock(self._lock)
        self._target = self.head()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        hold_lock(self._lock)
        head = self.head() if self._target is None else self._target
        if head < start["position"] and self._target is None:
            raise SetupError(  # a retry does not help: the operator has to decide
                f"the stream has read up to position {start['position']}, but the last position is now {head}",
                hint="if an older copy replaced the store, remove the checkpoint: the stream continues from the copy",
            )
        position = max(start["position"], min(head, start["position"] + self._max_publications))
        return {**start, "position": position} | ({"run": self._run} if self._run else {})

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[PositionRange]:
        hold_lock(self._lock)
        return cut_ranges(start["position"], end["position"])

    def read(self, partition: InputPartition) -> Iterator[Any]:
        return build_record_batches(self.rows(partition))


class JournalReader(PositionReader):
    """Reader for the journal of a store."""

    def __init__(self, options: Any) -> None:
        super().__init__(options)
        self._url = options["store_url"]

    def head(self) -> int:
        return open_shared_store(self._url).journal.head()

    def beginning(self) -> int:
        return find_start_position(open_shared_store(self._url))

    def rows(self, part: PositionRange) -> Iterator[JournalRow]:
        return _read_rows(self._url, part)


class JournalSource(DataSource):  # type: ignore[misc]
    """The format `tidings_journal`."""

    @classmethod
    def name(cls) -> str:
        return "tidings_journal"

    def schema(self) -> str:
        return JOURNAL_COLUMNS

    def streamReader(self, schema: Any) -> DataSourceStreamReader:
        return JournalReader(self.options)


def find_start_position(store: Store) -> int:
    """Return where a stream without its checkpoint begins: after what the store has as matched.

    From position 0 on it would notify subscribers of publications that are older than their subscriptions.
    """
    return store.notifications.matched()


def cut_ranges(after: int, upto: int) -> list[PositionRange]:
    """Divide the positions after `after`, up to and including `upto`, into ranges for tasks."""
    return [PositionRange(*bounds) for bounds in pairwise([*range(after, upto, PUBLICATIONS_A_TASK), upto])]


def read_range(url: str, part: PositionRange) -> Iterator[Any]:
    """Read a range of the journal of a store as Arrow batches."""
    return build_record_batches(_read_rows(url, part))


def _read_rows(url: str, part: PositionRange) -> Iterator[JournalRow]:
    for entry in open_shared_store(url).journal.read(part.after, part.upto):
        assert entry.position is not None
        yield entry.position, entry.id, entry.id, entry.media_type, entry.body, None


def build_record_batches(rows: Iterable[tuple[Any, ...]], schema: Any = JOURNAL_SCHEMA) -> Iterator[Any]:
    """Build Arrow batches of bounded length from rows."""
    remaining = iter(rows)
    while group := list(islice(remaining, ROWS)):
        columns = zip(*group, strict=True)
        arrays = [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
        yield pa.RecordBatch.from_arrays(arrays, schema=schema)


@lru_cache(maxsize=4)
def open_shared_store(url: str) -> Store:
    """Open a store once per process: workers live across batches."""
    return open_store(url)


_locks: dict[str, int] = {}


def hold_lock(path: str) -> None:
    """Lock a file until this process exits. The process of the source lives as long as its JVM."""
    if path in _locks:
        return
    file = acquire_lock(Path(path), SURVIVAL_SECONDS)
    if file is None:
        raise SetupError("another stream is using this home folder", where=path, hint="stop it first")
    os.set_inheritable(file, False)
    write_lock_owner(file)
    _locks[path] = file
