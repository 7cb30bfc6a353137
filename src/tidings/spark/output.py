"""The files of one task of the batch job: its matches, and what it refused; and the report that names them."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidings.errors import DecodeProblem, PublicationError
from tidings.matching.parquet import Column, Dictionary, ParquetFile, Part
from tidings.spark.blocks import Block, Unreadable
from tidings.spark.locations import Location

MATCHES = ("publication", "subscription")
"""The columns of the result."""

ROW_GROUP = 1 << 22
PARTS = ("scan", "decode", "match", "write")
"""What a task's time goes into: reading and cutting into lines; events; pairs; files."""

Numbers = npt.NDArray[np.int32]


@dataclass(slots=True)
class Report:
    """What became of a chunk: counts, seconds of CPU by part, and the files with its matches and its rejects."""

    chunk: int
    bytes: int
    events: int = 0
    matches: int = 0
    rejects: int = 0
    matches_file: str = ""
    rejects_file: str = ""
    seconds: dict[str, float] = field(default_factory=lambda: dict.fromkeys(PARTS, 0.0))


class Found(NamedTuple):
    """Pairs that wait to be written: publications, as places among the ids of their block, and subscriptions."""

    ids: Any
    publications: Numbers
    subscriptions: Numbers


def _columns(group: Sequence[Found], subscriptions: Dictionary) -> tuple[Column, Column]:
    """The columns of a row group. Several parts of it may be of one block."""
    blocks: list[Any] = []
    parts, first = [], 0
    for found in group:
        if not blocks or blocks[-1] is not found.ids:
            first += len(blocks[-1]) if blocks else 0
            blocks.append(found.ids)
        parts.append(Part(found.publications, first))
    publications = Dictionary(pa.concat_arrays(blocks), bounded=True)
    return Column(publications, parts), Column(subscriptions, [Part(found.subscriptions) for found in group])


class Output:
    """The files of one task: they begin to exist with the first row, and end with the context.

    Matches wait as numbers until there are enough for two row groups. So none but the last is small: each has a
    dictionary of its own, however few its rows are.
    """

    def __init__(self, results: Location, report: Report, subscriptions: Dictionary) -> None:
        self.report = report
        self.key = uuid.uuid4().hex[:12]
        self._results = results
        self._subscriptions = subscriptions
        self._files = ExitStack()
        self._matches: ParquetFile | None = None
        self._rejects: Any = None
        self._waiting: list[Found] = []
        self._rows = 0

    def __enter__(self) -> Output:
        return self

    def __exit__(self, *failure: object) -> None:
        if failure[0] is None:
            self._write_rows(self._rows)
            if self._matches is not None:
                self._matches.close()
        self._files.close()

    def write(self, ids: Any, publications: Numbers, subscriptions: Numbers) -> None:
        """Add matches of a block whose publications have these ids."""
        if len(publications):
            self._waiting.append(Found(ids, publications, subscriptions))
            self._rows += len(publications)
        if self._rows >= 2 * ROW_GROUP:
            self._write_rows(ROW_GROUP)

    def refuse(self, block: Block, ids: Any, rejects: Iterable[tuple[int, PublicationError]]) -> None:
        """Add the publications that could not be used, a line each."""
        for i, problem in rejects:
            self._reject(ids[i].as_py(), block.place(i), problem)

    def refuse_file(self, which: Unreadable) -> None:
        """Add a file that could not be read, or not to its end."""
        self._reject(which.file, {"file": which.file}, DecodeProblem(which.reason))

    def _reject(self, id: str, place: dict[str, object], problem: PublicationError) -> None:
        line = {"what": "publication", "id": id, **place, "reason": problem.headline()}
        self._reject_file().write(json.dumps({**line, "facts": problem.facts()}).encode() + b"\n")
        self.report.rejects += 1

    def _write_rows(self, least: int) -> None:
        """Write so many of the rows that wait, or a few more."""
        group, rows = [], 0
        while rows < least:
            group.append(self._waiting.pop(0))
            rows += len(group[-1].publications)
        if group:
            self._matches_file().write(_columns(group, self._subscriptions))
        self.report.matches += rows
        self._rows -= rows

    def _matches_file(self) -> ParquetFile:
        if self._matches is None:
            self.report.matches_file = f"part-{self.report.chunk:05d}-{self.key}.parquet"
            self._matches = ParquetFile(self._open(self.report.matches_file), MATCHES)
        return self._matches

    def _reject_file(self) -> Any:
        if self._rejects is None:
            self.report.rejects_file = f"rejects-{self.report.chunk:05d}-{self.key}.jsonl"
            self._rejects = self._open(self.report.rejects_file)
        return self._rejects

    def _open(self, name: str) -> Any:
        stream = self._results.files.open_output_stream(f"{self._results.path}/{name}")
        return self._files.enter_context(stream)
