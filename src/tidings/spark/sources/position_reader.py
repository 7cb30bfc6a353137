"""Streaming sources with positions, and ranges of the journal.

An offset is a position, so a batch is a range of positions and has the same publications when it is repeated after a
crash. The source of the journal is the format `tidings` (`data_source.reader`). In the service's stream, tasks read
their part of the range directly from the store (`stream.journal_task`); nothing passes through the driver.

    option             meaning
    publications       the maximum number of publications in a batch
    lock               a file that the source locks while its JVM is alive (see `checkpoint`)
    run                a name of this run; with it the run begins with a batch even if there is nothing new
    once               `True` for a query that ends at the initial head
"""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.datasource import InputPartition

from tidings.errors import SetupError
from tidings.spark.checkpoint import SURVIVAL_SECONDS, acquire_lock, write_lock_owner
from tidings.spark.sources.admission_control import Offset, StreamReader

if TYPE_CHECKING:
    from tidings.store.store import Store

PUBLICATIONS_A_TASK = 2_000
MOST_TASKS = 500
"""Tasks of a batch: each has more publications if these are too many."""
ROWS = 500

JOURNAL_COLUMNS = (
    "position long, publication string, name string, media_type string, body binary, problem string"
)
"""The columns of a source of publications: the position, the id (null if it is in the body), the name used without an
id, the media type, the bytes; or the problem if there are no bytes.
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


class PositionReader(StreamReader):
    """Base of sources with one position: bounds batches, and can stop at the initial head.

    No trigger can make a batch larger than the option `publications`. Spark plans a batch when the offset changes: the
    name of the run, as part of the offset, changes it when a run begins.
    """

    def __init__(self, options: Any) -> None:
        super().__init__(options)
        self._max_publications = int(options["publications"])
        self._lock = options["lock"]
        self._run = options.get("run")
        self._target: int | None = None

    @abstractmethod
    def head(self) -> int:
        """Return the last position of the source."""

    def first_offset(self) -> Offset:
        hold_lock(self._lock)
        return {"position": self.beginning()}

    def beginning(self) -> int:
        """Return the position where a stream without a checkpoint begins."""
        return 0

    def stop_at_head(self) -> None:
        hold_lock(self._lock)
        self._target = self.head()

    def next_offset(self, start: Offset) -> Offset:
        hold_lock(self._lock)
        head = self.head() if self._target is None else self._target
        if head < start["position"] and self._target is None:
            raise SetupError(  # a retry does not help: the operator has to decide
                f"the stream has read up to position {start['position']}, but the last position is now {head}",
                hint="if an older copy replaced the store, remove the checkpoint: the stream continues from the copy",
            )
        position = max(start["position"], min(head, start["position"] + self._max_publications))
        return {**start, "position": position} | ({"run": self._run} if self._run else {})

    def ranges(self, start: Offset, end: Offset) -> Sequence[PositionRange]:
        hold_lock(self._lock)
        return cut_ranges(start["position"], end["position"])


def find_start_position(store: Store) -> int:
    """Return where a stream without its checkpoint begins: after what the store has as matched.

    From position 0 on it would notify subscribers of publications that are older than their subscriptions.
    """
    return store.notifications.matched()


def cut_ranges(after: int, upto: int) -> list[PositionRange]:
    """Divide the positions after `after`, up to and including `upto`, into ranges for tasks."""
    size = max(PUBLICATIONS_A_TASK, -(-(upto - after) // MOST_TASKS))
    return [PositionRange(*bounds) for bounds in pairwise([*range(after, upto, size), upto])]


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
    """Open a store once per process: workers live across batches.

    The import takes most of the start of a Python process. Spark starts four, one after another, only to plan a query.
    """
    from tidings.store.store import open_store

    return open_store(url)


_locks: dict[str, int] = {}


def hold_lock(path: str) -> None:
    """Lock a file, if one is named, until this process exits. The process of the source lives as long as its JVM."""
    if not path or path in _locks:
        return
    file = acquire_lock(Path(path), SURVIVAL_SECONDS)
    if file is None:
        raise SetupError("another stream is using this home folder", where=path, hint="stop it first")
    os.set_inheritable(file, False)
    write_lock_owner(file)
    _locks[path] = file
