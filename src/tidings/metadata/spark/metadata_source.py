"""The metadata log as a source of Structured Streaming.

An offset of the source is a position in the log. Entries that were applied before are skipped when a batch is planned:
a stream that starts after a year does not read the year. When entries are applied, it is checked again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader

from tidings.metadata.sql.log_rows import LogTrimmed
from tidings.spark.sources.admission_control import Offset
from tidings.spark.sources.position_reader import (
    PositionRange,
    PositionReader,
    build_record_batches,
    hold_lock,
    open_shared_store,
)

ENTRIES_PER_TASK = 250
"""Documents per task: parsing one takes tens of times as long as an event, so few are worth a task."""

LOG_COLUMNS = "position long, what string, uri string, media_type string, body binary"
LOG_ARROW_SCHEMA = pa.schema(
    [
        ("position", pa.int64()),
        ("what", pa.string()),
        ("uri", pa.string()),
        ("media_type", pa.string()),
        ("body", pa.binary()),
    ]
)
LogRow = tuple[int, str, str, str, bytes]


class MetadataLogReader(PositionReader):
    """Reader of a store's metadata log."""

    def __init__(self, options: Any) -> None:
        super().__init__(options)
        self._url = options["store_url"]

    def head(self) -> int:
        return open_shared_store(self._url).metadata.log.head()

    def next_offset(self, start: Offset) -> Offset:
        applied = self._applied_position(start["position"])
        if self._target is not None:  # entries that others apply meanwhile must not keep `--once` from ending
            applied = max(start["position"], min(applied, self._target))
        return super().next_offset({"position": applied})

    def ranges(self, start: Offset, end: Offset) -> Sequence[PositionRange]:
        hold_lock(self._lock)
        upto = end["position"]
        after = min(upto, self._applied_position(start["position"]))
        return [PositionRange(*cut) for cut in pairwise([*range(after, upto, ENTRIES_PER_TASK), upto])]

    def rows(self, part: Any) -> Iterator[LogRow]:
        """Read the entries of a range. Some may have been applied and trimmed since the batch was planned."""
        log, after = open_shared_store(self._url).metadata.log, part.after
        while after < part.upto:
            try:
                entries = log.read(after, part.upto - after)
            except LogTrimmed:
                after = log.first() - 1
                continue
            for entry in entries:
                yield entry.position, entry.what.value, entry.uri, entry.media_type, entry.body
            return

    def read(self, partition: Any) -> Iterator[Any]:
        return build_record_batches(self.rows(partition), LOG_ARROW_SCHEMA)

    def _applied_position(self, position: int) -> int:
        """Return the position before the first entry that may have to be applied."""
        return max(position, open_shared_store(self._url).metadata.position())


class MetadataLogSource(DataSource):  # type: ignore[misc]
    """The format `tidings_metadata_log`."""

    @classmethod
    def name(cls) -> str:
        return "tidings_metadata_log"

    def schema(self) -> str:
        return LOG_COLUMNS

    def streamReader(self, schema: Any) -> DataSourceStreamReader:
        return MetadataLogReader(self.options)
