"""Sink of a batch: commits the rows of its tasks, in the order of the publications, in one transaction."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

import pyarrow as pa

from tidings.spark.stream.match_output import (
    DEAD_LETTERS,
    MATCHES,
    MatchReport,
    OutputTarget,
    ResultFiles,
    StagingTables,
)
from tidings.store.dead_letters import DeadLetter
from tidings.store.encoding import MatchRow
from tidings.store.notifications.batch_commit import CommitResult
from tidings.store.notifications.staged_rows import RowCounts
from tidings.store.store import Store

T = TypeVar("T")


class Sink(Protocol):
    """The driver's side of a target: what tasks have written there becomes a batch of the stream."""

    @property
    def target(self) -> OutputTarget:
        """The place where tasks write."""

    def commit(self, batch: int, reports: Sequence[MatchReport], position: int | None = None) -> CommitResult:
        """Commit a batch; one that is already committed changes nothing.

        `position` is its last position in the journal.
        """


def open_sink(store: Store, stream: str, source: str) -> Sink:
    """Open the sink for the store of a stream; `source` is the source in its dead letters."""
    return (FileSink if store.database.is_sqlite else StagingSink)(store, stream, source)


@dataclass(frozen=True, slots=True)
class FileSink:
    """Sink that reads the files of the tasks, and commits row by row. It serves any store on this machine."""

    store: Store
    stream: str
    source: str

    @property
    def target(self) -> OutputTarget:
        return ResultFiles()

    def commit(self, batch: int, reports: Sequence[MatchReport], position: int | None = None) -> CommitResult:
        ordered = sorted(reports, key=lambda report: report.first)
        matches = BatchRows([f"{one.output}-{MATCHES}" for one in ordered if one.found], _build_match)
        dead = BatchRows([f"{one.output}-{DEAD_LETTERS}" for one in ordered if one.dead], _build_dead_letter)
        return self.store.notifications.commit_batch(
            self.stream, batch, matches, dead, source=self.source, position=position
        )


@dataclass(frozen=True, slots=True)
class StagingSink:
    """Sink that commits the rows which tasks have staged in PostgreSQL."""

    store: Store
    stream: str
    source: str

    @property
    def target(self) -> OutputTarget:
        url = self.store.database.engine.url.render_as_string(hide_password=False)
        return StagingTables(url, self.stream, self.source)

    def commit(self, batch: int, reports: Sequence[MatchReport], position: int | None = None) -> CommitResult:
        ordered = sorted(reports, key=lambda report: report.first)
        attempts = {int(one.output): RowCounts(one.found, one.dead) for one in ordered if one.output}
        return self.store.staged_rows.commit(
            self.stream, batch, attempts, source=self.source, position=position
        )


def _build_match(
    publication: str, subscription: str, subscriber: str, because: str, bindings: str | None, position: int
) -> MatchRow:
    return MatchRow(publication, subscription, subscriber, because, bindings, position=position)


def _build_dead_letter(
    publication: str,
    reason: str,
    facts: str,
    position: int | None,
    body: bytes | None,
    subscription: str | None,
) -> DeadLetter:
    return DeadLetter(publication, reason, json.loads(facts), position, body, subscription=subscription)


@dataclass(frozen=True, slots=True)
class BatchRows(Iterable[T]):
    """Rows of files, converted by `make`; each iteration reads the files again."""

    paths: Sequence[str]
    make: Callable[..., T]

    def __iter__(self) -> Iterator[T]:
        for path in filter(None, self.paths):
            with pa.OSFile(path) as file, pa.ipc.open_stream(file) as stream:
                for batch in stream:
                    columns = (column.to_pylist() for column in batch.columns)
                    yield from map(self.make, *columns)
