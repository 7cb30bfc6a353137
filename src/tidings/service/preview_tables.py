"""Reference tables for previews, which are made without the stream: publications are joined with the tables of now.

A file is read here, once for each state of it, and its rows are kept in memory. Where it cannot be read, the copy
counts that the stream made of the rows it read last, if the stream has the same home: for the stream they count as
well. Tables of Spark's have no other way in. Without either, publications are looked at without the table, and a note
says so.
"""

from __future__ import annotations

from pathlib import Path
from threading import Lock

from tidings.atoms import Atoms, Event
from tidings.documents import xml_decoder
from tidings.documents.model import Node
from tidings.documents.xml_columns import atoms_of
from tidings.errors import InputError, PublicationError
from tidings.reference_data.declarations import Reference
from tidings.reference_data.enrichment import (
    MOST_ADDED,
    Enrichment,
    Lookup,
    Snapshot,
    enriched_body,
    enriched_event,
    opened,
)
from tidings.reference_data.tables import last_copy, read_file, stamp, table_of
from tidings.store.store import Store


class JoinedPublications:
    """Publications with what tables add to them; `without` are the tables of which no rows can be had."""

    def __init__(self, enrichment: Enrichment | None = None, without: tuple[str, ...] = ()) -> None:
        self._enrichment, self.without = enrichment or Enrichment(()), without

    def event(self, plain: Event) -> Event:
        if self._enrichment.is_empty:
            return plain
        added = self._enrichment.found(Atoms.of([plain], self._enrichment.attributes), are_documents=False)
        rows = added.get(0, [])
        return enriched_event(plain, rows) if 0 < len(rows) <= MOST_ADDED else plain

    def document(self, body: bytes) -> Node:
        """A document that would be too large with what is added is matched as it was published."""
        plain = xml_decoder.decode(body)
        if self._enrichment.is_empty:
            return plain
        rows = self._enrichment.found(atoms_of([plain]), are_documents=True).get(0, [])
        if not 0 < len(rows) <= MOST_ADDED:
            return plain
        try:
            return xml_decoder.decode(enriched_body(body, rows))
        except PublicationError:
            return plain


class PreviewTables:
    """The tables that are declared in a store, as they are now; `copies` is where a stream keeps its own."""

    def __init__(self, store: Store, copies: Path) -> None:
        self._store, self._copies, self._guard = store, copies, Lock()
        self._read: dict[Reference, tuple[str | None, Lookup | None]] = {}
        self._copied: dict[Reference, Lookup] = {}

    def joining(self, are_documents: bool) -> JoinedPublications:
        """The tables that documents are joined with, or events."""
        with self._guard:
            declared = self._store.references.load()
            self._forget(declared)
            of_kind = [each for each in declared if each.is_of_documents == are_documents]
            tables = {each: self._table(each) for each in of_kind}
        without = tuple(each.name for each, table in tables.items() if table is None)
        return JoinedPublications(
            Enrichment.of(table for table in tables.values() if table is not None), without
        )

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
