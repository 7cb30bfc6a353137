"""Which of the last publications a subscription would have matched, and why; nothing is kept.

The definition of matching is asked, publication by publication, newest first: without Spark, and without an index. What
takes too long, or is too much to read, is left out, and the answer says so.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import Any

from tidings.core.text import plural
from tidings.errors import InputError, PublicationError, TextWarning, pointing
from tidings.events.schema.event_schema import EventSchema
from tidings.graphs.taxonomy import Taxonomy
from tidings.kinds import Environment, Explanation, find_kind, kinds_of_language
from tidings.model import Publication, Reason
from tidings.service.preview_tables import PreviewTables
from tidings.service.subscriptions import SubscriptionService
from tidings.store.audiences import is_visible
from tidings.store.journal import JournalEntry
from tidings.store.store import Store
from tidings.store.subscriptions.view import RULES

REASONS = 3
"""How many reasons a preview gives for publications that it skipped."""

PAGE = 50
"""How many publications are read at a time."""

WITHOUT = "publications are looked at without the reference table {}, whose rows cannot be read here"


@dataclass(frozen=True, slots=True)
class PreviewBounds:
    """How many publications a preview looks at, of how many bytes together, and for how many seconds."""

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
    """What was found, newest first; `complete` says whether all that was asked for was looked at.

    `skipped` counts publications that could not be matched, because they do not fit the schema of now or are too large;
    the notes give the reasons. `warnings` are those of the text, as `check` gives them.
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
    """What a text in a language would have matched; one that is no subscription is refused as `check` does.

    Publications are joined with reference tables as they are now. `granted` are the labels of publications that may be
    seen; None is all of them.
    """
    if language == RULES:
        with pointing("/language"):
            hint = "ask what there is now at /browse, or with tidings query"
            raise InputError(
                "rules are about metadata, and publications are none", received=language, hint=hint
            )
    checked = subscribing.check(language, text)
    until, readers = clock() + bounds.seconds, _Readers(tables, subscribing.taxonomy, schema, language)
    looked_at, read, is_over, found = 0, 0, False, []
    skipped = Counter[str]()
    for entry in _newest(store, bounds):
        if clock() > until or read > bounds.size:
            is_over = True
            break
        looked_at, read = looked_at + 1, read + entry.size
        if not is_visible(granted, entry.publication.audience):
            continue
        try:
            why = readers.explain(_whole(entry), text)
        except PublicationError as problem:  # the stream would have made it a dead letter
            skipped[problem.without_where().headline()] += 1
            continue
        if why is not None:
            found.append(PreviewMatch(entry, *why))
    notes = [WITHOUT.format(name) for name in readers.missing_tables] + _skipped_notes(skipped)
    return Preview(looked_at, not is_over, found, notes, skipped.total(), checked.warnings)


def _skipped_notes(skipped: Counter[str]) -> list[str]:
    """Why publications were skipped, the most frequent reasons first."""
    if not skipped:
        return []
    reasons = skipped.most_common(REASONS)
    notes = [f"{plural(count, 'publication')} skipped: {reason}" for reason, count in reasons]
    rest = skipped.total() - sum(count for _, count in reasons)
    return notes + ([f"{plural(rest, 'publication')} skipped for other reasons"] if rest else [])


class _Readers:
    """Readers of the kinds that a language is about, with the reference tables as they are now."""

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
        why = reader.read(body, media_type, reader.find_added(body, media_type)).explain(self._language, text)
        return why if why and why.because else None


def _newest(store: Store, bounds: PreviewBounds) -> Iterator[JournalEntry]:
    """The last publications, page by page; one that is too large for all of it together is passed over."""
    before, left = None, bounds.last
    while left > 0:
        page = store.journal.latest(before, min(PAGE, left), bounds.size)
        yield from page
        left -= len(page)
        if not page or (before := page[-1].publication.position) == 1:
            return


def _whole(entry: JournalEntry) -> Publication:
    """The publication of an entry; one that was too large to be read is refused."""
    if len(entry.publication.body) != entry.size:
        raise PublicationError("too large for a preview")
    return entry.publication
