"""Definition of a stream from a source to a sink, and its files in the home folder.

<home>/sources/<name>/checkpoint/      how far Spark has read the source
<home>/sources/<name>/index/           the index of subscriptions
<home>/sources/<name>/subscriptions/   its versions, for executors
<home>/sources/<name>/batches/         the version and the counts of the last micro-batches
<home>/sources/<name>/progress.json    the progress of the stream
<home>/sources/<name>/run.lock         locked while the stream runs
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from tidings.errors import InputError
from tidings.spark.batch.output import check_separate
from tidings.spark.batch.spark_table import FILE_FORMATS, Table
from tidings.spark.batch.table_job import has_path
from tidings.spark.dataframe.match import ID
from tidings.spark.sources.files import Location
from tidings.spark.stream.query import BatchHandler
from tidings.spark.stream.stream_events import TableProgress
from tidings.spark.stream.table_stream.index_matcher import IndexMatcher
from tidings.spark.stream.table_stream.ingest import IngestProcessor, select_publications
from tidings.spark.stream.table_stream.processor import BatchMatcher, TableProcessor

NAMING_OPTIONS = ("subscribe", "subscribePattern", "assign", "topic", "dbtable", "query")
"""Options that say what is read or written, as an address does."""


@dataclass(frozen=True, slots=True)
class TableStream:
    """A stream from a source to a sink, complete in every process that runs it.

    Without a `sink` publications are appended to the journal of the store. `segments` is a location for the versions of
    the subscriptions, if executors do not share the home folder. `matcher` is the engine. The other fields are
    `MatchOptions`.
    """

    home: Path
    store: str
    source: Table
    sink: Table | None = None
    id: str = ID
    value: str | None = None
    value_format: str | None = None
    explain: bool = False
    keep: tuple[str, ...] = ()
    segments: str | None = None
    matcher: type[BatchMatcher] = IndexMatcher

    name = "tidings-source"

    def resolve(self) -> TableStream:
        """Return the same stream, independent of the working directory."""
        return replace(
            self,
            home=self.home.absolute(),
            source=_resolve_table(self.source),
            sink=self.sink and _resolve_table(self.sink),
            segments=self.segments and Location.of(self.segments).uri,
        )

    def check(self) -> None:
        """Raise `InputError` for mistakes that can be found before Spark starts."""
        self.matcher.check(self)
        if has_path(self.source) and not re.search(r"[*?\[{]", self.source.address):
            if Location.of(self.source.address).info().type.name == "NotFound":
                raise InputError("there is no such file or folder", received=f"'{self.source.address}'")
            if self.sink is not None and has_path(self.sink):
                check_separate(self.sink.address, [self.source.address])
        if self.sink is not None and _is_folder_of_files(self.sink):
            info = Location.of(self.sink.address).info()
            if info.is_file:
                raise InputError("the sink of a stream is a folder", received=f"the file {self.sink.address}")

    @property
    def folder(self) -> Path:
        """The folder of this stream. Another source or sink is another stream, which starts from the beginning."""
        names = [*_identify(self.source), "to", *(_identify(self.sink) if self.sink else ())]
        digest = hashlib.blake2b("\0".join(names).encode(), digest_size=5).hexdigest()
        base = re.sub(r"[^A-Za-z0-9._-]+", "-", names[0].rstrip("/").rpartition("/")[2])[:40]
        return self.home / "sources" / f"{base.strip('-.') or 'source'}-{digest}"

    @property
    def checkpoint(self) -> Path:
        return self.folder / "checkpoint"

    @property
    def status(self) -> Path:
        return self.folder / "progress.json"

    @property
    def index(self) -> Path:
        return self.folder / "index"

    @property
    def location(self) -> str:
        """Where the versions of the subscriptions are published."""
        if self.segments is None:
            return str(self.folder / "subscriptions")
        return f"{self.segments.rstrip('/')}/{self.folder.name}"

    @property
    def batches(self) -> Path:
        return self.folder / "batches"

    @property
    def title(self) -> str:
        """The source, in messages and dead letters; without credentials that an address may contain."""
        return "source " + re.sub(r"//[^/@]*@", "//", self.source.address)

    def rows(self, session: SparkSession) -> DataFrame:
        """Return the source as a streaming DataFrame; raise `InputError` for columns that it does not have."""
        rows = self.source.read_stream(session)
        if self.sink is None:
            select_publications(rows, self)
        else:
            self.matcher.check_columns(rows, self)
        return rows

    def open(self) -> BatchHandler:
        return IngestProcessor(self) if self.sink is None else TableProcessor(self, self.sink)

    def progress(self, fields: dict[str, Any]) -> TableProgress:
        return TableProgress(**fields)


def _resolve_table(table: Table) -> Table:
    if not has_path(table) or "://" in table.address:
        return table
    return replace(table, address=str(Path(table.address).absolute()))


def _is_folder_of_files(table: Table) -> bool:
    return has_path(table) and table.known_format in FILE_FORMATS


def _identify(table: Table) -> list[str]:
    return [table.address, *(table.options[name] for name in NAMING_OPTIONS if name in table.options)]
