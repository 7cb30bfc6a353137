"""Subscriptions into files of rows: what a task does with its share of them.

A task writes its own Parquet files and reports their names; the driver lists them. A task that is repeated leaves files
that nobody lists.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

import pyarrow as pa

from tidings.errors import SubscriptionError
from tidings.model import Reject
from tidings.relational.rows import Bounds, Rows
from tidings.relational.tables import Layout
from tidings.relational.templates import Templates
from tidings.relational.versions import write_tables

FLUSHED = 50_000
"""Subscriptions after which files are written: some hundred megabytes of rows are not kept in memory."""

Files = dict[str, tuple[str, ...]]


@dataclass(slots=True)
class ShredResult:
    """What became of subscriptions: how many were taken, files by table, paths that occur, and what was refused."""

    taken: int = 0
    files: list[Files] = field(default_factory=list)
    linear: list[str] = field(default_factory=list)
    infos: list[tuple[str, str]] = field(default_factory=list)
    rejects: list[Reject] = field(default_factory=list)

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> ShredResult:
        held = json.loads(text)
        held["infos"] = [(linear, info) for linear, info in held["infos"]]
        return cls(**held | {"rejects": [Reject(**reject) for reject in held["rejects"]]})


@dataclass(frozen=True, slots=True)
class Task:
    """Where rows go to, and how they are laid out."""

    folder: str
    layout: Layout
    generation: int
    bounds: Bounds

    def take_apart(self, subscriptions: Iterable[tuple[str, str]]) -> Iterator[ShredResult]:
        """Write the rows of subscriptions (id and text)."""
        templates, (rows, apart) = Templates(), self._begin()
        for id, text in subscriptions:
            try:
                rows.add(id, text, templates.asked_by(text))
            except SubscriptionError as problem:
                apart.rejects.append(Reject("subscription", id, problem.message(), problem.facts()))
                continue
            apart.taken += 1
            if apart.taken == FLUSHED:
                yield self._end(rows, apart)
                rows, apart = self._begin()
        yield self._end(rows, apart)

    def _begin(self) -> tuple[Rows, ShredResult]:
        return Rows(self.layout, self.generation, self.bounds), ShredResult()

    def _end(self, rows: Rows, apart: ShredResult) -> ShredResult:
        apart.files.append(write_tables(self.folder, rows.tables()))
        apart.linear, apart.infos = list(rows.linear), list(rows.infos)
        return apart

    def stage(self) -> Callable[[Iterable[Any]], Iterator[Any]]:
        """The function for `mapInArrow`: subscriptions in, reports in JSON out."""

        def run(batches: Iterable[Any]) -> Iterator[Any]:
            pairs = (
                pair
                for batch in batches
                for pair in zip(batch.column("id").to_pylist(), batch.column("text").to_pylist(), strict=True)
            )
            for apart in self.take_apart(pairs):
                yield pa.RecordBatch.from_pydict({"report": [apart.to_json()]})

        return run
