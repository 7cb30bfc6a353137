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
from tidings.documents.explanation import Explainer
from tidings.documents.xpath import xpath_parser
from tidings.errors import InputError, PublicationError, TextWarning, pointing
from tidings.events import json_decoder
from tidings.events.explanation import explain
from tidings.events.predicate_compiler import parse_and_check
from tidings.events.schema.event_schema import EventSchema
from tidings.graphs import explanation
from tidings.graphs.explanation import results_of
from tidings.graphs.gql import gql_parser
from tidings.graphs.rdf import rdf_decoder
from tidings.graphs.taxonomy import merged
from tidings.graphs.taxonomy_files import taxonomy_in
from tidings.kinds import DOCUMENTS, GRAPHS
from tidings.model import Publication, Reason
from tidings.service.preview_tables import JoinedPublications, PreviewTables
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

Why = tuple[tuple[Reason, ...], dict[str, Any] | None]
Ask = Callable[[Publication], Why | None]
"""Says why a publication matches; None if it does not, or is of another kind."""


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
    until, joined = clock() + bounds.seconds, _joined(tables, language)
    ask = _asking(store, schema, language, text, joined)
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
            why = ask(_whole(entry))
        except PublicationError as problem:  # the stream would have made it a dead letter
            skipped[problem.nowhere().headline()] += 1
            continue
        if why is not None:
            found.append(PreviewMatch(entry, *why))
    notes = [WITHOUT.format(name) for name in joined.without] + _skipped_notes(skipped)
    return Preview(looked_at, not is_over, found, notes, skipped.total(), checked.warnings)


def _skipped_notes(skipped: Counter[str]) -> list[str]:
    """Why publications were skipped, the most frequent reasons first."""
    if not skipped:
        return []
    reasons = skipped.most_common(REASONS)
    notes = [f"{plural(count, 'publication')} skipped: {reason}" for reason, count in reasons]
    rest = skipped.total() - sum(count for _, count in reasons)
    return notes + ([f"{plural(rest, 'publication')} skipped for other reasons"] if rest else [])


def _joined(tables: PreviewTables, language: str) -> JoinedPublications:
    """Graphs are joined with nothing."""
    return JoinedPublications() if language == "gql" else tables.joining(are_documents=language == "xpath")


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


def _asking(
    store: Store, schema: EventSchema | None, language: str, text: str, joined: JoinedPublications
) -> Ask:
    if language == "xpath":
        return _of_documents(text, joined)
    return _of_graphs(store, text) if language == "gql" else _of_events(schema, text, joined)


def _of_events(schema: EventSchema | None, text: str, joined: JoinedPublications) -> Ask:
    tree = parse_and_check(text, schema)

    def ask(one: Publication) -> Why | None:
        if one.media_type in DOCUMENTS or one.media_type in GRAPHS:
            return None
        because = explain(tree, joined.event(json_decoder.decode(one.body, schema)))
        return (because, None) if because else None

    return ask


def _of_documents(text: str, joined: JoinedPublications) -> Ask:
    expression = xpath_parser.parse(text)

    def ask(one: Publication) -> Why | None:
        if one.media_type not in DOCUMENTS:
            return None
        because = Explainer(joined.document(one.body)).explain(expression)
        return (because, None) if because else None

    return ask


def _of_graphs(store: Store, text: str) -> Ask:
    pattern = gql_parser.parse(text)
    taxonomy = merged(*(taxonomy_in(file.body, file.media_type) for file in store.taxonomies.load()))

    def ask(one: Publication) -> Why | None:
        if one.media_type not in GRAPHS:
            return None
        explainer = explanation.Explainer(rdf_decoder.decode(one.body, one.media_type), taxonomy)
        because = explainer.explain(pattern)
        return (because, results_of(pattern, explainer.bindings(pattern))) if because else None

    return ask
