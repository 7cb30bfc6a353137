"""The reference tables of a running stream, or of a batch job: read by the driver, kept as files that tasks look up in.

    <home>/segments/references/<declaration>-<state of the file>.parquet

A stream looks before each batch whether a declaration or a file has changed. A table that cannot be used stops nothing:
the rows that were read last stay in use, if there are some, and a dead letter says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any
from uuid import uuid4

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from tidings.errors import InputError
from tidings.graphs.taxonomy import merged
from tidings.graphs.taxonomy_files import taxonomy_in, write_taxonomy
from tidings.reference_data.declarations import Reference
from tidings.reference_data.enrichment import Snapshot
from tidings.reference_data.files import MOST_ROWS, content_of_arrow
from tidings.reference_data.tables import (
    Row,
    digest,
    last_copy,
    naming,
    read_file,
    rows_of,
    stamp,
    write_rows,
)
from tidings.store.dead_letters import DeadLetter
from tidings.store.encoding import now_text
from tidings.store.store import Store

SOURCE = "references"
"""What the dead letters of tables are said to come from."""


def write_snapshots(
    session: SparkSession, references: Sequence[Reference], folder: Path
) -> tuple[Snapshot, ...]:
    """The rows of all tables, as files in a folder; a table that cannot be used is refused."""
    made = []
    for reference in references:
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{digest(reference)}.parquet"
        write_rows(_read(session, reference), path)
        made.append(Snapshot(reference, str(path.absolute())))
    return tuple(made)


class LiveReferences:
    """The tables that are declared in a store, as they are now."""

    def __init__(self, folder: Path, store: Store) -> None:
        self.snapshots: tuple[Snapshot, ...] = ()
        self._folder, self._store = folder, store
        self._run = uuid4().hex
        self._version = -1
        self._declared: tuple[Reference, ...] = ()
        self._refused: dict[tuple[Reference, str], InputError] = {}
        self._told: dict[Reference, str] = {}

    def refresh(self, session: SparkSession) -> int:
        """Take over what changed, and say how many tables have a problem that was not told of yet."""
        version = self._store.references.version()
        if version != self._version:
            self._folder.mkdir(parents=True, exist_ok=True)
            self._declared, self._version = self._store.references.load(), version
            self._refused.clear()
        letters: list[DeadLetter] = []
        found = [(reference, self._current(session, reference, letters)) for reference in self._declared]
        self.snapshots = tuple(Snapshot(reference, str(path)) for reference, path in found if path)
        return self._store.dead_letters.add(SOURCE, letters) if letters else 0

    def tidy(self) -> None:
        """Delete what only earlier batches used."""
        used = {snapshot.path for snapshot in self.snapshots}
        for path in self._folder.glob("*.parquet"):
            if str(path.absolute()) not in used:
                path.unlink()

    def _current(self, session: SparkSession, reference: Reference, letters: list[DeadLetter]) -> Path | None:
        """The file with the rows of a table: of now, else those read last, else none."""
        try:
            path = self._read(session, reference)
        except InputError as problem:
            last = last_copy(self._folder, reference)
            if self._told.get(reference) != problem.headline():
                self._told[reference] = problem.headline()
                letters.append(_letter(reference, problem, last))
            return last
        self._told.pop(reference, None)
        return path

    def _read(self, session: SparkSession, reference: Reference) -> Path:
        """The file with the rows of now, written if it is not there. What was refused once is not read again."""
        state = self._run if reference.spark_table else stamp(reference)
        if problem := self._refused.get((reference, state)):
            raise problem
        path = self._folder.absolute() / f"{digest(reference)}-{digest(state)}.parquet"
        if not path.exists():
            try:
                write_rows(_read(session, reference), path)
            except InputError as problem:
                self._refused[reference, state] = problem
                raise
        return path


def _letter(reference: Reference, problem: InputError, last: Path | None) -> DeadLetter:
    without = "with the rows that were read last" if last else "without it"
    facts = problem.facts() | {"table": reference.name, "matched": without}
    return DeadLetter(
        f"{reference.name} at {now_text()}",
        f"{problem.headline()}; publications are matched {without}",
        facts,
    )


def _read(session: SparkSession, reference: Reference) -> list[Row]:
    if reference.spark_table is None:
        return read_file(reference)
    with naming(reference):
        return rows_of(reference, content_of_arrow(_of_spark(session, reference.spark_table)))


def _of_spark(session: SparkSession, table: str) -> Any:
    try:
        return session.table(table).limit(MOST_ROWS + 1).toArrow()
    except PySparkException as problem:
        said = str(problem).split("\n")[0]
        raise InputError("Spark does not give it", received=f"'{table}'", hint=said) from problem


# The taxonomy of a running stream: a file that tasks read, made anew when one was loaded or removed.


class LiveTaxonomy:
    """What the taxonomies of a store say together, as a file; `path` is None if they say nothing."""

    def __init__(self, folder: Path, store: Store) -> None:
        self.path: str | None = None
        self._folder, self._store, self._version = folder, store, -1

    def refresh(self) -> None:
        """Take over what changed. Each file was checked with all others when it was loaded."""
        version = self._store.taxonomies.version()
        if version != self._version:
            said = [taxonomy_in(each.body, each.media_type) for each in self._store.taxonomies.load()]
            self.path, self._version = write_taxonomy(self._folder, merged(*said)), version

    def tidy(self) -> None:
        """Delete what only earlier batches used."""
        for path in self._folder.glob("*.nt"):
            if str(path.absolute()) != self.path:
                path.unlink()
