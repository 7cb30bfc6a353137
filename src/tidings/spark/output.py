"""The files of one task of the batch job: its matches, and what it refused; and the report that names them."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from tidings.errors import PublicationError
from tidings.matching.parquet import Dictionary, GrowingColumn, KnownColumn, ParquetFile
from tidings.spark.blocks import Block
from tidings.spark.locations import Location

MATCHES = ("publication", "subscription")
"""The columns of the result."""

ROW_GROUP = 1 << 24
"""Rows after which a row group ends. Encoded they take about three bytes each until then; and each group has ids."""

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


class Output:
    """The files of one task: they begin to exist with the first row group or reject, and end with the context."""

    def __init__(self, results: Location, report: Report, subscriptions: Dictionary) -> None:
        self.report = report
        self.key = uuid.uuid4().hex[:12]
        self._results = results
        self._known = subscriptions
        self._files = ExitStack()
        self._matches: ParquetFile | None = None
        self._rejects: Any = None
        self._begin_group()

    def __enter__(self) -> Output:
        return self

    def __exit__(self, *failure: object) -> None:
        if failure[0] is None:
            self._end_group()
            if self._matches is not None:
                self._matches.close()
        self._files.close()

    def write(self, ids: Any, publications: Numbers, subscriptions: Numbers) -> None:
        """Add pairs: publications, as places among the ids of their block, and subscriptions."""
        if len(publications):
            self._publications.add(ids, publications)
            self._subscriptions.add(subscriptions)
        if self._publications.rows >= ROW_GROUP:
            self._end_group()
            self._begin_group()

    def refuse(self, block: Block, ids: Any, rejects: Iterable[tuple[int, PublicationError]]) -> None:
        """Add the publications that could not be used, a line each."""
        for i, problem in rejects:
            self._reject(ids[i].as_py(), block.place(i), problem)

    def refuse_pair(
        self, block: Block, ids: Any, place: int, subscription: str, problem: PublicationError
    ) -> None:
        """Add a pair of a publication and a subscription of which it is unknown whether it matches."""
        located = problem.located(f"subscription {subscription}")
        self._reject(ids[place].as_py(), {**block.place(place), "subscription": subscription}, located)

    def refuse_file(self, file: str, problem: PublicationError) -> None:
        """Add a file that could not be read, not to its end, or not be taken apart."""
        self._reject(file, {"file": file}, problem)

    def _reject(self, id: str, place: dict[str, object], problem: PublicationError) -> None:
        line = {"what": "publication", "id": id, **place, "reason": problem.headline()}
        self._reject_file().write(json.dumps({**line, "facts": problem.facts()}).encode() + b"\n")
        self.report.rejects += 1

    def _begin_group(self) -> None:
        self._publications, self._subscriptions = GrowingColumn(), KnownColumn(self._known)

    def _end_group(self) -> None:
        if self._publications.rows:
            self._matches_file().write([self._publications.encoded(), self._subscriptions.encoded()])
            self.report.matches += self._publications.rows

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
