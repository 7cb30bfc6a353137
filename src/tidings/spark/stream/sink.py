"""Sink of a batch: writes its rows, in the order of the publications, in one transaction."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

import pyarrow as pa

from tidings.spark.stream.match_task import MatchReport
from tidings.store.dead_letters import DeadLetter
from tidings.store.encoding import MatchRow
from tidings.store.notifications.batch_commit import CommitResult
from tidings.store.store import Store

T = TypeVar("T")


def commit_batch(
    store: Store,
    stream: str,
    source: str,
    batch: int,
    reports: Sequence[MatchReport],
    position: int | None = None,
) -> CommitResult:
    """Commit a batch; one that is already committed changes nothing.

    `source` is the source in its dead letters, `position` its last position in the journal.
    """
    ordered = sorted(reports, key=lambda report: report.first)
    matches = BatchRows([report.found_file for report in ordered], MatchRow)
    dead = BatchRows([report.dead_file for report in ordered], _build_dead_letter)
    return store.notifications.commit_batch(stream, batch, matches, dead, source=source, position=position)


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
