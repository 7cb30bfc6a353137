"""Previews: which of the last publications a subscription would have matched, and why. Nothing is stored.

A preview evaluates the definition of matching, publication by publication, newest first, without Spark and without an
index. It stops at its limits of time and bytes and then is marked incomplete. Publications are joined with the
reference tables as they are now (`PreviewTables`).
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

from tidings.atoms import AtomShape
from tidings.core.text import plural
from tidings.errors import InputError, PublicationError, TextWarning, pointing
from tidings.events.schema.event_schema import EventSchema
from tidings.graphs.taxonomy import Taxonomy
from tidings.kinds import Environment, Explanation, find_kind, kinds_of_language
from tidings.model import Publication, Reason
from tidings.reference_data.declarations import Reference
from tidings.reference_data.enrichment import Enrichment, Lookup, Snapshot, open_lookup
from tidings.reference_data.table_rows import build_table, find_last_copy, read_file, read_stamp
from tidings.service.subscriptions import SubscriptionService
from tidings.store.audiences import is_visible
from tidings.store.journal import JournalEntry
from tidings.store.store import Store
from tidings.store.subscriptions.view import RULES

REASONS = 3
"""Maximum number of reasons that a preview lists for skipped publications."""

PAGE = 50
"""Number of publications per read."""

MISSING_TABLE = "publications are not joined with the reference table {}: its rows cannot be read here"


@dataclass(frozen=True, slots=True)
class PreviewBounds:
    """Limits of a preview: number of publications, their bytes together, and seconds."""

    last: int
    size: int
    seconds: float


@dataclass(frozen=True, slots=True)
class PreviewMatch:
    """A publication that would have matched, and why."""

    entry: JournalEntry
    because: tuple[Reason, ...]
    bindings: dict[str, Any] | None


@dataclass(frozen=True, slots=True)
class Preview:
    """The matches, newest first; `complete` is false if a limit ended the preview early.

    `skipped` counts publications that could not be matched, because they violate the current schema or are too large;
    `notes` gives the reasons. `warnings` are those of `SubscriptionService.check`.
    """

    looked_at: int
    complete: bool
    matches: list[PreviewMatch]
    notes: list[str]
    skipped: int = 0
    warnings: tuple[TextWarning, ...] = ()


def preview_subscription(
    store: Store,
    tables: PreviewTables,
    subscribing: SubscriptionService,
    schema: EventSchema | None,
    language: str,
    text: str,
    bounds: PreviewBounds,
    granted: Collection[str] | None = (),
    clock: Callable[[], float] = time.monotonic,
) -> Preview:
    """Find the publications that a text would have matched; an invalid text raises as in `check`.

    `granted` are the audience labels that the subscriber may see; None means all.
    """
    if language == RULES:
        with pointing("/language"):
            hint = "search the current metadata at /browse, or with tidings query"
            raise InputError("rules match metadata, not publications", received=language, hint=hint)
    checked = subscribing.check(language, text)
    until, readers = clock() + bounds.seconds, _Readers(tables, subscribing.taxonomy, schema, language)
    looked_at, read, is_over, matches = 0, 0, False, []
    skipped = Counter[str]()
    for entry in _newest(store, bounds):
        if clock() > until or read > bounds.size:
            is_over = True
            break
        looked_at, read = looked_at + 1, read + entry.size
        if not is_visible(granted, entry.publication.audience):
            continue
        try:
            explanation = readers.explain(_whole(entry), text)
        except PublicationError as problem:  # the stream would have made it a dead letter
            skipped[problem.without_where().headline()] += 1
            continue
        if explanation is not None:
            matches.append(PreviewMatch(entry, *explanation))
    notes = [MISSING_TABLE.format(name) for name in readers.missing_tables] + _skipped_notes(skipped)
    return Preview(looked_at, not is_over, matches, notes, skipped.total(), checked.warnings)


def _skipped_notes(skipped: Counter[str]) -> list[str]:
    """List why publications were skipped, the most frequent reasons first."""
    if not skipped:
        return []
    reasons = skipped.most_common(REASONS)
    notes = [f"{plural(count, 'publication')} skipped: {reason}" for reason, count in reasons]
    others = skipped.total() - sum(count for _, count in reasons)
    return notes + ([f"{plural(others, 'publication')} skipped for other reasons"] if others else [])


class _Readers:
    """Readers for the kinds of publication that a language matches, with the current reference tables."""

    def __init__(
        self,
        tables: PreviewTables,
        taxonomy: Callable[[], Taxonomy],
        schema: EventSchema | None,
        language: str,
    ) -> None:
        self._kinds = kinds_of_language(language)
        self._tables = {shape: tables.load(shape) for shape in {kind.shape for kind in self._kinds}}
        self._readers = {
            kind: kind.open(
                Environment(schema=schema, taxonomy=taxonomy, enrichment=self._tables[kind.shape].enrichment)
            )
            for kind in self._kinds
        }
        self._language = language

    @property
    def missing_tables(self) -> list[str]:
        return [name for tables in self._tables.values() for name in tables.missing]

    def explain(self, publication: Publication, text: str) -> Explanation | None:
        """Explain why a publication matches; None if it does not, or is of another kind."""
        kind = find_kind(publication.media_type)
        if kind not in self._readers:
            return None
        reader, body, media_type = self._readers[kind], publication.body, publication.media_type
        explanation = reader.read(body, media_type, reader.find_added(body, media_type)).explain(
            self._language, text
        )
        return explanation if explanation and explanation.because else None


def _newest(store: Store, bounds: PreviewBounds) -> Iterator[JournalEntry]:
    """Yield the last publications, page by page; a body larger than the whole limit comes without its bytes."""
    before, left = None, bounds.last
    while left > 0:
        page = store.journal.latest(before, min(PAGE, left), bounds.size)
        yield from page
        left -= len(page)
        if not page or (before := page[-1].publication.position) == 1:
            return


def _whole(entry: JournalEntry) -> Publication:
    """Return the publication of an entry, or raise if its body was too large to be read."""
    if len(entry.publication.body) != entry.size:
        raise PublicationError("too large for a preview")
    return entry.publication


# Reference tables for previews, which run without the stream. A file is read once per state of it, and its rows stay in
# memory. If it cannot be read, the stream's copy of the rows that it read last is used, as the stream does itself; it
# is available if both have the same home. Tables of Spark have only that copy. Without either, publications are not
# joined with the table, and a note reports it.


class LoadedTables(NamedTuple):
    """Reference tables, and the names of those whose rows are not available."""

    enrichment: Enrichment
    missing: tuple[str, ...] = ()


class PreviewTables:
    """The current tables that are declared in a store; `copies` is the folder of the stream's copies."""

    def __init__(self, store: Store, copies: Path) -> None:
        self._store, self._copies, self._guard = store, copies, Lock()
        self._read: dict[Reference, tuple[str | None, Lookup | None]] = {}
        self._copied: dict[Reference, Lookup] = {}

    def load(self, shape: AtomShape) -> LoadedTables:
        """Load the tables that publications of a shape are joined with."""
        with self._guard:
            declared = self._store.references.load()
            self._evict_all_except(declared)
            tables = {reference: self._load(reference) for reference in declared if reference.shape is shape}
        missing = tuple(reference.name for reference, table in tables.items() if table is None)
        return LoadedTables(Enrichment.of(table for table in tables.values() if table is not None), missing)

    def _evict_all_except(self, declared: tuple[Reference, ...]) -> None:
        for cache in (self._read, self._copied):
            for reference in cache.keys() - set(declared):
                del cache[reference]

    def _load(self, reference: Reference) -> Lookup | None:
        state = _file_state(reference)
        if reference not in self._read or self._read[reference][0] != state:
            self._read[reference] = state, None if state is None else _read_lookup(reference)
        return self._read[reference][1] or self._load_copy(reference)

    def _load_copy(self, reference: Reference) -> Lookup | None:
        path = find_last_copy(self._copies, reference)
        try:
            lookup = open_lookup(Snapshot(reference, str(path))) if path else None
        except FileNotFoundError:  # the stream has just replaced it
            return self._copied.get(reference)
        if lookup is not None:
            self._copied[reference] = lookup
        return lookup


def _file_state(reference: Reference) -> str | None:
    """Return a stamp that changes with the file; None for a missing file or a table of Spark."""
    if reference.spark_table is not None:
        return None
    try:
        return read_stamp(reference)
    except InputError:
        return None


def _read_lookup(reference: Reference) -> Lookup | None:
    """Read the rows of a file; None if it is invalid, which the stream reports as a dead letter."""
    try:
        return Lookup(reference, build_table(read_file(reference)))
    except InputError:
        return None
