"""Output of a task of the stream: its matches and dead letters, for the sink of the batch.

The rows of a batch need not fit into the driver's memory, and do not pass through the JVM. A task writes them where its
`OutputTarget` says, and reports only where they are:

    ResultFiles      two Arrow files in the folder of the batch, for a store on this machine
    StagingTables    tables of the store in PostgreSQL, from any machine

`sink` has the driver's side of both.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from operator import attrgetter
from pathlib import Path
from secrets import randbits
from typing import Any, Protocol, Self
from uuid import uuid4

import pyarrow as pa

from tidings.errors import PublicationError
from tidings.spark.sources.position_reader import open_shared_store
from tidings.spark.stream.budget import BudgetWatch
from tidings.store.dead_letters import DeadLetter
from tidings.store.encoding import MatchRow
from tidings.store.notifications.staged_rows import StagedRows

MATCHES, DEAD_LETTERS = "found.arrow", "dead.arrow"
MATCH_SCHEMA = pa.schema(
    [(name, pa.string()) for name in ("publication", "subscription", "subscriber", "because", "bindings")]
    + [("position", pa.int64())]
)
DEAD_LETTER_SCHEMA = pa.schema(
    [
        ("publication", pa.string()),
        ("reason", pa.string()),
        ("facts", pa.string()),
        ("position", pa.int64()),
        ("body", pa.binary()),
        ("subscription", pa.string()),
    ]
)
ROWS = 5_000
"""How many matches or dead letters are in memory at once."""


@dataclass(slots=True)
class MatchReport:
    """Result of a task; reports are sorted by `first`, the first position.

    `output` is where the rows are, as the target of the task names it; "" if there are none.
    """

    first: int = 0
    last: int = 0
    events: int = 0
    found: int = 0
    dead: int = 0
    output: str = ""


class RowWriter(Protocol):
    """Writer of the rows of one task. They count only if the task succeeds and its report is committed."""

    @property
    def output(self) -> str:
        """Where the rows are, as the sink finds them."""

    def write(self, matches: Sequence[MatchRow], letters: Sequence[DeadLetter]) -> None: ...

    def close(self) -> None: ...


class OutputTarget(Protocol):
    """Place where tasks write their rows, in the job of a task."""

    def open(self, folder: Path) -> RowWriter:
        """Open a writer under a new name; `folder` is the one for results of this attempt."""


class ResultFiles:
    """Files in the folder of the attempt."""

    def open(self, folder: Path) -> RowWriter:
        return _FileWriter(folder)


@dataclass(frozen=True, slots=True)
class StagingTables:
    """The staging tables of a store, for a stream whose dead letters have this source."""

    store: str
    stream: str
    source: str

    def open(self, folder: Path) -> RowWriter:
        return _StagingWriter(open_shared_store(self.store).staged_rows, self.stream, self.source)


class _FileWriter:
    def __init__(self, folder: Path) -> None:
        self.output = str(folder / uuid4().hex)
        self._files, self._writers = ExitStack(), dict[str, Any]()

    def write(self, matches: Sequence[MatchRow], letters: Sequence[DeadLetter]) -> None:
        self._write(MATCHES, MATCH_SCHEMA, list(map(_MATCH_VALUES, matches)))
        self._write(DEAD_LETTERS, DEAD_LETTER_SCHEMA, list(map(_letter_values, letters)))

    def _write(self, kind: str, schema: Any, rows: Sequence[tuple[Any, ...]]) -> None:
        if not rows:
            return
        if kind not in self._writers:
            path = f"{self.output}-{kind}"
            self._writers[kind] = self._files.enter_context(pa.ipc.new_stream(path, schema))
        columns = zip(*rows, strict=True)
        arrays = [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
        self._writers[kind].write_batch(pa.RecordBatch.from_arrays(arrays, schema=schema))

    def close(self) -> None:
        self._files.close()


_MATCH_VALUES = attrgetter(*MATCH_SCHEMA.names)


def _letter_values(letter: DeadLetter) -> tuple[Any, ...]:
    facts = json.dumps(letter.facts)
    return letter.publication, letter.reason, facts, letter.position, letter.body, letter.subscription


@dataclass(slots=True)
class _StagingWriter:
    staged_rows: StagedRows
    stream: str
    source: str
    attempt: int = field(default_factory=lambda: randbits(63))
    _letters: int = 0

    @property
    def output(self) -> str:
        return str(self.attempt)

    def write(self, matches: Sequence[MatchRow], letters: Sequence[DeadLetter]) -> None:
        placed = list(enumerate(letters, start=self._letters))
        self.staged_rows.write(self.stream, self.source, self.attempt, matches, placed)
        self._letters += len(letters)

    def close(self) -> None:
        """Do nothing: rows are durable when they are written."""


class MatchOutput:
    """Output of a task, which keeps a limited number of rows until it writes them."""

    def __init__(self, writer: RowWriter, watch: BudgetWatch) -> None:
        self.report = MatchReport()
        self._writer, self._watch = writer, watch
        self._matches: list[MatchRow] = []
        self._letters: list[DeadLetter] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: object) -> None:
        if failure[0] is None:
            self._flush()
        self._writer.close()

    def count(self, positions: list[int]) -> None:
        """Count publications, and record their positions."""
        self.report.first = self.report.first or positions[0]
        self.report.last = positions[-1]
        self.report.events += len(positions)

    def add_match(self, match: MatchRow) -> None:
        self._matches.append(match)
        self.report.found += 1
        if len(self._matches) >= ROWS:
            self._flush()

    def add_dead_letter(
        self,
        publication: str,
        problem: PublicationError,
        position: int | None,
        body: bytes | None,
        subscription: str | None = None,
    ) -> None:
        reason, facts = problem.headline(), problem.facts()
        self._letters.append(
            DeadLetter(publication, reason, facts, position, body, subscription=subscription)
        )
        self.report.dead += 1
        if len(self._letters) >= ROWS:
            self._flush()

    def _flush(self) -> None:
        """Write the rows in memory. A slow disk or store must not count towards the budget of a publication."""
        if self._matches or self._letters:
            self.report.output = self._writer.output
            with self._watch.pause():
                self._writer.write(self._matches, self._letters)
            self._matches, self._letters = [], []
