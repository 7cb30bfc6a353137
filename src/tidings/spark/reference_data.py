"""Reference tables of streams and batch jobs: read by the driver, stored as files for tasks.

    <home>/segments/references/<declaration>-<state of the file>.parquet

Before each batch a stream checks whether a declaration or a file has changed. An unusable table does not stop it: the
rows read last stay in use, if there are any, and a dead letter reports the problem.
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
from tidings.reference_data.files import MOST_ROWS, read_arrow_content
from tidings.reference_data.table_rows import (
    Row,
    build_rows,
    compute_digest,
    find_last_copy,
    name_table_in_errors,
    read_file,
    read_stamp,
    write_rows,
)
from tidings.store.dead_letters import DeadLetter
from tidings.store.encoding import now_text
from tidings.store.store import Store

SOURCE = "references"
"""The source in dead letters about reference tables."""


def write_snapshots(
    session: SparkSession, references: Sequence[Reference], folder: Path
) -> tuple[Snapshot, ...]:
    """Write the rows of all tables to files in a folder; raise `InputError` for an unusable one."""
    snapshots = []
    for reference in references:
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{compute_digest(reference)}.parquet"
        write_rows(_read_rows(session, reference), path)
        snapshots.append(Snapshot(reference, str(path.absolute())))
    return tuple(snapshots)


class LiveReferences:
    """Current snapshots of the tables that a store declares."""

    def __init__(self, folder: Path, store: Store) -> None:
        self.snapshots: tuple[Snapshot, ...] = ()
        self._folder, self._store = folder, store
        self._run = uuid4().hex
        self._version = -1
        self._declared: tuple[Reference, ...] = ()
        self._refused: dict[tuple[Reference, str], InputError] = {}
        self._reported: dict[Reference, str] = {}

    def refresh(self, session: SparkSession) -> int:
        """Read changed tables; return how many have a problem that was not reported before."""
        version = self._store.references.version()
        if version != self._version:
            self._folder.mkdir(parents=True, exist_ok=True)
            self._declared, self._version = self._store.references.load(), version
            self._refused.clear()
        letters: list[DeadLetter] = []
        paths = [(reference, self._find_rows(session, reference, letters)) for reference in self._declared]
        self.snapshots = tuple(Snapshot(reference, str(path)) for reference, path in paths if path)
        return self._store.dead_letters.add(SOURCE, letters) if letters else 0

    def tidy(self) -> None:
        """Delete files that only earlier batches used."""
        used = {snapshot.path for snapshot in self.snapshots}
        for path in self._folder.glob("*.parquet"):
            if str(path.absolute()) not in used:
                path.unlink()

    def _find_rows(
        self, session: SparkSession, reference: Reference, letters: list[DeadLetter]
    ) -> Path | None:
        """Return the file with the current rows of a table, else the rows read last, else None."""
        try:
            path = self._write_current_rows(session, reference)
        except InputError as problem:
            last = find_last_copy(self._folder, reference)
            if self._reported.get(reference) != problem.headline():
                self._reported[reference] = problem.headline()
                letters.append(_build_dead_letter(reference, problem, last))
            return last
        self._reported.pop(reference, None)
        return path

    def _write_current_rows(self, session: SparkSession, reference: Reference) -> Path:
        """Return the file with the current rows; write it if it is missing.

        A state of the table that was refused once is not read again.
        """
        state = self._run if reference.spark_table else read_stamp(reference)
        if problem := self._refused.get((reference, state)):
            raise problem
        path = self._folder.absolute() / f"{compute_digest(reference)}-{compute_digest(state)}.parquet"
        if not path.exists():
            try:
                write_rows(_read_rows(session, reference), path)
            except InputError as problem:
                self._refused[reference, state] = problem
                raise
        return path


def _build_dead_letter(reference: Reference, problem: InputError, last: Path | None) -> DeadLetter:
    rows = "with the rows that were read last" if last else "without it"
    facts = problem.facts() | {"table": reference.name, "matched": rows}
    return DeadLetter(
        f"{reference.name} at {now_text()}",
        f"{problem.headline()}; publications are matched {rows}",
        facts,
    )


def _read_rows(session: SparkSession, reference: Reference) -> list[Row]:
    if reference.spark_table is None:
        return read_file(reference)
    with name_table_in_errors(reference):
        return build_rows(reference, read_arrow_content(_read_spark_table(session, reference.spark_table)))


def _read_spark_table(session: SparkSession, table: str) -> Any:
    try:
        return session.table(table).limit(MOST_ROWS + 1).toArrow()
    except PySparkException as problem:
        hint = str(problem).split("\n")[0]
        raise InputError("Spark cannot read the table", received=f"'{table}'", hint=hint) from problem


# The taxonomy of a running stream: a file that tasks read, rewritten when a taxonomy is loaded or removed.


class LiveTaxonomy:
    """The merged taxonomies of a store as a file; `path` is None if they are empty."""

    def __init__(self, folder: Path, store: Store) -> None:
        self.path: str | None = None
        self._folder, self._store, self._version = folder, store, -1

    def refresh(self) -> None:
        """Rewrite the file after a change. Each taxonomy was checked when it was loaded."""
        version = self._store.taxonomies.version()
        if version != self._version:
            taxonomies = [taxonomy_in(each.body, each.media_type) for each in self._store.taxonomies.load()]
            self.path, self._version = write_taxonomy(self._folder, merged(*taxonomies)), version

    def tidy(self) -> None:
        """Delete files that only earlier batches used."""
        for path in self._folder.glob("*.nt"):
            if str(path.absolute()) != self.path:
                path.unlink()
