"""Reference tables for previews, which are made without the stream: publications are joined with the tables of now.

A file is read here, once for each state of it, and its rows are kept in memory. Where it cannot be read, the copy
counts that the stream made of the rows it read last, if the stream has the same home: for the stream they count as
well. Tables of Spark's have no other way in. Without either, publications are looked at without the table, and a note
says so.
"""

from __future__ import annotations

from pathlib import Path
from threading import Lock
from typing import NamedTuple

from tidings.atoms import AtomShape
from tidings.errors import InputError
from tidings.reference_data.declarations import Reference
from tidings.reference_data.enrichment import (
    Enrichment,
    Lookup,
    Snapshot,
    opened,
)
from tidings.reference_data.tables import last_copy, read_file, stamp, table_of
from tidings.store.store import Store


class LoadedTables(NamedTuple):
    """Reference tables, and the names of those whose rows are not available."""

    enrichment: Enrichment
    missing: tuple[str, ...] = ()


class PreviewTables:
    """The tables that are declared in a store, as they are now; `copies` is where a stream keeps its own."""

    def __init__(self, store: Store, copies: Path) -> None:
        self._store, self._copies, self._guard = store, copies, Lock()
        self._read: dict[Reference, tuple[str | None, Lookup | None]] = {}
        self._copied: dict[Reference, Lookup] = {}

    def load(self, shape: AtomShape) -> LoadedTables:
        """Load the tables that publications of a shape are joined with."""
        with self._guard:
            declared = self._store.references.load()
            self._forget(declared)
            tables = {each: self._table(each) for each in declared if each.shape is shape}
        missing = tuple(each.name for each, table in tables.items() if table is None)
        return LoadedTables(Enrichment.of(table for table in tables.values() if table is not None), missing)

    def _forget(self, declared: tuple[Reference, ...]) -> None:
        for kept in (self._read, self._copied):
            for reference in kept.keys() - set(declared):
                del kept[reference]

    def _table(self, reference: Reference) -> Lookup | None:
        state = _state(reference)
        if reference not in self._read or self._read[reference][0] != state:
            self._read[reference] = state, None if state is None else _lookup(reference)
        return self._read[reference][1] or self._copy(reference)

    def _copy(self, reference: Reference) -> Lookup | None:
        path = last_copy(self._copies, reference)
        try:
            found = opened(Snapshot(reference, str(path))) if path else None
        except FileNotFoundError:  # the stream has put another one in its place just now
            return self._copied.get(reference)
        if found is not None:
            self._copied[reference] = found
        return found


def _state(reference: Reference) -> str | None:
    """What changes when the file does; nothing if there is none, or it is one of Spark's tables."""
    if reference.spark_table is not None:
        return None
    try:
        return stamp(reference)
    except InputError:
        return None


def _lookup(reference: Reference) -> Lookup | None:
    """The rows of a file; nothing if it is broken, which the stream says in a dead letter."""
    try:
        return Lookup(reference, table_of(read_file(reference)))
    except InputError:
        return None
