"""The end of a batch: its rows, in the order of the publications, into the store in one transaction."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa

from tidings.spark.stages import Report
from tidings.store import Committed, DeadLetter, Found, Store


def commit(store: Store, stream: str, source: str, batch: int, reports: Sequence[Report]) -> Committed:
    """Make a batch durable. One that was committed before changes nothing; `source` names its dead letters."""
    ordered = sorted(reports, key=lambda report: report.first)
    found = (Found(*row) for row in _rows(report.found_file for report in ordered))
    dead = (_letter(*row) for row in _rows(report.dead_file for report in ordered))
    return store.notifications.commit_batch(stream, batch, found, dead, source=source)


def _letter(
    publication: str, reason: str, facts: str, position: int | None, body: bytes | None
) -> DeadLetter:
    return DeadLetter(publication, reason, json.loads(facts), position, body)


def _rows(paths: Iterable[str]) -> Iterator[tuple[Any, ...]]:
    for path in paths:
        if path:
            with pa.OSFile(path) as file, pa.ipc.open_stream(file) as stream:
                for batch in stream:
                    yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)
