"""Sinks of matches: files that become visible when their micro-batch is complete, and tables that are appended to.

    <sink>/_tidings/<stream>/<batch>-<attempt>/part-...       files of a micro-batch that is not complete yet
    <sink>/part-<stream>-<batch>-...                          its files, once it is

Readers ignore names that begin with an underscore. Each attempt has a folder of its own, because the JVM of a killed
stream may still be writing to one.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Protocol

from pyarrow import fs
from pyspark.sql import DataFrame

from tidings.spark.batch.spark_table import FILE_FORMATS, Table
from tidings.spark.sources.files import Location

UNPUBLISHED = "_tidings"


class MatchSink(Protocol):
    """A sink of matches. A micro-batch may be written several times; the attempt that succeeded is then published."""

    def write(self, matches: DataFrame, batch: int, attempt: str) -> None:
        """Write the matches of a micro-batch."""

    def publish(self, batch: int, attempt: str, matches: int) -> None:
        """Make an attempt visible, which had so many matches; do nothing if it is visible already."""


def open_sink(table: Table, stream: str) -> MatchSink:
    """Return the sink for a table; `stream` is the name of the stream."""
    if table.name is None and table.known_format in FILE_FORMATS:
        return FileSink(table, stream)
    return TableSink(table, stream)


class FileSink:
    """A folder of files. Each micro-batch is in it exactly once."""

    def __init__(self, table: Table, stream: str) -> None:
        self._table = replace(table, format=table.known_format)
        self._stream = stream.removeprefix("stream-")
        self._folder = Location.of(table.address)
        self._unpublished = f"{self._folder.uri.rstrip('/')}/{UNPUBLISHED}/{self._stream}"

    def write(self, matches: DataFrame, batch: int, attempt: str) -> None:
        """Write the files of an attempt, where readers do not look."""
        replace(self._table, address=self._attempt(batch, attempt).uri).write(matches, overwrite=True)

    def publish(self, batch: int, attempt: str, matches: int) -> None:
        """Move the files of an attempt into the folder; files that an earlier call has moved stay there."""
        for file in self._attempt(batch, attempt).inside() if matches else ():
            if file.base_name.startswith("part-"):
                name = f"part-{self._stream}-{batch:08d}-{file.base_name.removeprefix('part-')}"
                self._folder.files.move(file.path, f"{self._folder.path.rstrip('/')}/{name}")
        place = Location(self._unpublished)
        if place.info().type != fs.FileType.NotFound:
            place.files.delete_dir(place.path)

    def _attempt(self, batch: int, attempt: str) -> Location:
        return Location(f"{self._unpublished}/{batch}-{attempt}")


class TableSink:
    """A table, a topic, or another sink that Spark appends to: at least once, and exactly once in Delta tables."""

    def __init__(self, table: Table, stream: str) -> None:
        self._table, self._stream = table, stream

    def write(self, matches: DataFrame, batch: int, attempt: str) -> None:
        """Append the matches. A Delta table ignores a micro-batch that it has already."""
        delta = {"txnAppId": self._stream, "txnVersion": str(batch)}
        self._table.append(matches, **(delta if self._table.known_format == "delta" else {}))

    def publish(self, batch: int, attempt: str, matches: int) -> None:
        """Do nothing: what is appended is visible."""
