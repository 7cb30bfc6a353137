"""The end of a batch: its rows, in the order of the publications, into the store in one transaction."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

import pyarrow as pa

from tidings.spark.stream.match_task import MatchReport
from tidings.store.dead_letters import DeadLetter
from tidings.store.encoding import MatchRow
from tidings.store.notifications import CommitResult
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
    """Make a batch durable. One that was committed before changes nothing; `source` names its dead letters.

    `position` is how far in the journal it comes.
    """
    ordered = sorted(reports, key=lambda report: report.first)
    found = BatchRows([report.found_file for report in ordered], MatchRow)
    dead = BatchRows([report.dead_file for report in ordered], _letter)
    return store.notifications.commit_batch(stream, batch, found, dead, source=source, position=position)


def _letter(
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
    """The rows of files, made into something; read anew each time somebody goes through them."""

    paths: Sequence[str]
    make: Callable[..., T]

    def __iter__(self) -> Iterator[T]:
        for path in filter(None, self.paths):
            with pa.OSFile(path) as file, pa.ipc.open_stream(file) as stream:
                for batch in stream:
                    columns = (column.to_pylist() for column in batch.columns)
                    yield from map(self.make, *columns)
