"""The journal as a source of Structured Streaming: `session.readStream.format("tidings_journal")`.

An offset is a position, so a batch is a range of positions: asked for again after a crash, it is the same
publications. Tasks read their part of the range from the store themselves (`journal_tasks`); nothing passes through the
driver.

    option             meaning
    store_url          the store's address (Spark hides the values of options with `url` in their names)
    publications       how many a batch may have at most
    lock               a file the source locks while its JVM lives (see `checkpoint`)
    run                a name of this run, if it is to begin with a batch even if there is nothing new
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
"""Of every source: where it stands, its id (null: it is in the body), what to call it without an id, what it is, its
bytes; or why there are none.
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
    """Positions after `after`, up to and with `upto`."""

    after: int
    upto: int


class PositionReader(DataSourceStreamReader, SupportsTriggerAvailableNow):  # type: ignore[misc]
    """What sources with one running position share: bounded batches, and a stop at the head of the start.

    The engine's own limits are never above ours, so that no trigger can make a batch larger than it may be. A batch is
    made when the offset is another one: with the name of the run in it, that is so when a run begins.
    """

    def __init__(self, options: Any) -> None:
        self._most = int(options["publications"])
        self._lock = options["lock"]
        self._run = options.get("run")
        self._target: int | None = None

    @abstractmethod
    def head(self) -> int:
        """The last position there is."""

    @abstractmethod
    def rows(self, part: Any) -> Iterator[tuple[Any, ...]]:
        """What stands in one of the ranges that `partitions` gives, as the source's columns."""

    def initialOffset(self) -> dict[str, int]:
        hold_lock(self._lock)
        return {"position": self.beginning()}

    def beginning(self) -> int:
        """Where a stream without a checkpoint begins."""
        return 0

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadMaxRows(self._most)

    def prepareForTriggerAvailableNow(self) -> None:
        hold_lock(self._lock)
        self._target = self.head()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        hold_lock(self._lock)
        head = self.head() if self._target is None else self._target
        if head < start["position"] and self._target is None:
            raise SetupError(  # no store that comes back: somebody has to decide
                f"the stream has read up to position {start['position']}, but the last one now is {head}",
                hint="was the store replaced by an older copy? remove the checkpoint: it goes on where the copy is",
            )
        position = max(start["position"], min(head, start["position"] + self._most))
        return {**start, "position": position} | ({"run": self._run} if self._run else {})

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[PositionRange]:
        hold_lock(self._lock)
        return cut_ranges(start["position"], end["position"])

    def read(self, partition: InputPartition) -> Iterator[Any]:
        return build_record_batches(self.rows(partition))


class JournalReader(PositionReader):
    """Reads a store's journal."""

    def __init__(self, options: Any) -> None:
        super().__init__(options)
        self._url = options["store_url"]

    def head(self) -> int:
        return open_shared_store(self._url).journal.head()

    def beginning(self) -> int:
        return find_start_position(open_shared_store(self._url))

    def rows(self, part: PositionRange) -> Iterator[JournalRow]:
        return _rows(self._url, part)


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
    """Where a stream begins whose checkpoint is gone or stayed elsewhere: after what the store says was matched. From
    the first publication on, somebody would be told of what was published before they subscribed.
    """
    return store.notifications.matched()


def cut_ranges(after: int, upto: int) -> list[PositionRange]:
    """The positions after one, up to and with another, as ranges for tasks."""
    return [PositionRange(*each) for each in pairwise([*range(after, upto, PUBLICATIONS_A_TASK), upto])]


def read_range(url: str, part: PositionRange) -> Iterator[Any]:
    """What stands in a range of a store's journal, as Arrow batches."""
    return build_record_batches(_rows(url, part))


def _rows(url: str, part: PositionRange) -> Iterator[JournalRow]:
    for one in open_shared_store(url).journal.read(part.after, part.upto):
        assert one.position is not None
        yield one.position, one.id, one.id, one.media_type, one.body, None


def build_record_batches(rows: Iterable[tuple[Any, ...]], schema: Any = JOURNAL_SCHEMA) -> Iterator[Any]:
    """Rows as Arrow batches of bounded length."""
    rest = iter(rows)
    while some := list(islice(rest, ROWS)):
        columns = zip(*some, strict=True)
        arrays = [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
        yield pa.RecordBatch.from_arrays(arrays, schema=schema)


@lru_cache(maxsize=4)
def open_shared_store(url: str) -> Store:
    """The store, opened once in a process: workers live on from batch to batch."""
    return open_store(url)


_held: dict[str, int] = {}


def hold_lock(path: str) -> None:
    """Lock a file for as long as this process lives. The source's process lives as long as its JVM does."""
    if path in _held:
        return
    file = acquire_lock(Path(path), SURVIVAL_SECONDS)
    if file is None:
        raise SetupError("another stream works on this home folder", where=path, hint="stop it first")
    os.set_inheritable(file, False)
    write_lock_owner(file)
    _held[path] = file
