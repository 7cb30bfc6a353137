"""Journal of publications, in one order.

Positions count from one without gaps, in the order of commits: a reader that has reached the head has missed nothing,
and nothing appears behind it later. Publishing an id again with the same content changes nothing. A publication with a
restricted audience carries a label (`audiences`).
"""

from __future__ import annotations

import json
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache, lru_cache
from hashlib import sha256
from itertools import islice
from typing import Any, NamedTuple

from sqlalchemy import Connection, Row, Select, case, func, literal, outerjoin, select

from tidings import cloud_events
from tidings.errors import IdConflict, InputError
from tidings.model import Publication
from tidings.operations import traces
from tidings.store import audiences, bulk, counters, names, telemetry
from tidings.store.database import Database
from tidings.store.encoding import Clock, format_instant, now_text
from tidings.store.tables import counters as counters_table
from tidings.store.tables import journal
from tidings.store.tokens import is_expired, tokens

PAGE = 1_000
_LABELLED = outerjoin(journal, audiences.labels, audiences.labels.c.publication == journal.c.id)
PUBLICATIONS = select(
    journal.c.id, journal.c.media_type, journal.c.body, journal.c.position, audiences.labels.c.label
).select_from(_LABELLED)
"""Selects publications, with columns in the order of the fields of `Publication`."""
_SCHEMA_VERSION = select(counters_table.c.value).where(counters_table.c.name == "schema").scalar_subquery()
_VALID_TOKENS = select(tokens.c.id, tokens.c.expires, _SCHEMA_VERSION).where(tokens.c.revoked.is_(None))


@dataclass(frozen=True, slots=True)
class AppendResult:
    """Position of an appended publication; `new` is false if the journal had it already."""

    id: str
    position: int
    new: bool


AppendOutcome = AppendResult | InputError
"""Position of a publication, or the reason why it was rejected."""


@dataclass(frozen=True, slots=True)
class AppendBatch:
    """Publications of one caller, each appended or rejected independently of the others.

    With a `token`, the batch is only appended if that token is still valid and the event schema still has the version
    `schema`, which the publications were validated against.
    """

    publications: Sequence[Publication]
    token: str | None = None
    schema: int = 0


@dataclass(frozen=True, slots=True)
class JournalEntry:
    """A publication with its time and size in bytes; the body of a large one is empty."""

    publication: Publication
    time: str
    size: int


class Journal:
    """The ordered log of publications."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database, self._clock = database, clock

    def append(self, publications: Iterable[Publication]) -> list[AppendResult]:
        """Append publications durably and return their positions; append none if one is rejected.

        A publication with an empty id gets a new one.
        """
        offered = add_trace(publications)

        def append_all_or_none(connection: Connection) -> list[AppendResult]:
            results = []
            for outcome in append_publications(connection, offered):
                if isinstance(outcome, InputError):
                    raise outcome
                results.append(outcome)
            return results

        return self._database.transact(append_all_or_none)

    def append_batches(self, batches: Sequence[AppendBatch]) -> list[list[AppendOutcome] | None]:
        """Append the batches of several callers in one transaction (group commit); return the outcomes of each.

        None stands for a batch whose token or schema is out of date: its caller validates again, and reports why.
        """
        return self._database.transact(lambda connection: self._append_batches(connection, batches))

    def _append_batches(
        self, connection: Connection, batches: Sequence[AppendBatch]
    ) -> list[list[AppendOutcome] | None]:
        schemas = self._schema_versions(connection, {batch.token for batch in batches if batch.token})
        is_current = [batch.token is None or schemas.get(batch.token) == batch.schema for batch in batches]
        current = [batch for batch, holds in zip(batches, is_current, strict=True) if holds]
        publications = [publication for batch in current for publication in batch.publications]
        outcomes = iter(append_publications(connection, publications) if publications else ())
        return [
            list(islice(outcomes, len(batch.publications))) if holds else None
            for batch, holds in zip(batches, is_current, strict=True)
        ]

    def _schema_versions(self, connection: Connection, ids: set[str]) -> dict[str, int]:
        """Return the version of the event schema for each valid token: one query checks both, for all callers."""
        if not ids:
            return {}
        rows = bulk.select_among(connection, _VALID_TOKENS, tokens.c.id, ids)
        moment = format_instant(self._clock())
        return {id: version for id, expires, version in rows if not is_expired(expires, moment)}

    def head(self) -> int:
        """Return the last position; 0 for an empty journal."""
        with self._database.read() as connection:
            return counters.current(connection, "journal")

    def time_of(self, position: int) -> datetime | None:
        """Return when the publication at a position was appended."""
        with self._database.read() as connection:
            time = connection.execute(select(journal.c.time).where(journal.c.position == position)).scalar()
        return datetime.fromisoformat(time) if time else None

    def read(self, after: int, upto: int | None = None, page: int = PAGE) -> Iterator[Publication]:
        """Read the publications after a position in order, up to `upto` (default: the current head).

        They are fetched in pages, so that no transaction stays open while the caller works on them.
        """
        last = self.head() if upto is None else upto
        while after < last:
            end = min(after + page, last)
            query = PUBLICATIONS.where(journal.c.position > after, journal.c.position <= end)
            with self._database.read() as connection:
                rows = connection.execute(query.order_by(journal.c.position)).all()
            for row in rows:
                yield Publication(*row)
            after = end

    def pages(self, after: int, upto: int) -> Iterator[list[JournalEntry]]:
        """Read the publications after a position, up to `upto`, with their times, in pages of bounded size."""
        position = journal.c.position
        while after < upto:
            with self._database.read() as connection:
                end = bulk.end_of_page(connection, position, journal.c.body, after, upto)
                query = _entries(sys.maxsize).where(position > after, position <= end)
                rows = connection.execute(query.order_by(position)).all()
            yield [_entry_of(row) for row in rows]
            after = end

    def find(self, id: str) -> Publication | None:
        """Find a publication by id."""
        with self._database.read() as connection:
            row = connection.execute(PUBLICATIONS.where(journal.c.id == id)).one_or_none()
        return Publication(*row) if row else None

    def find_all(self, ids: Collection[str], largest: int) -> dict[str, Publication]:
        """Find publications by id, without those of more than `largest` bytes."""
        with self._database.read() as connection:
            return find_publications(connection, ids, largest)

    def latest(self, before: int | None, limit: int, largest: int) -> list[JournalEntry]:
        """Return the last publications, newest first, or the last ones before a position."""
        position = journal.c.position
        end = self.head() + 1 if before is None else before
        query = _entries(largest).where(position < end, position >= end - limit)
        with self._database.read() as connection:
            rows = connection.execute(query.order_by(position.desc())).all()
        return [_entry_of(row) for row in rows]

    def entry(self, id: str, largest: int) -> JournalEntry | None:
        """Find a publication by id, with its time and size."""
        if not id.isprintable():
            return None
        with self._database.read() as connection:
            row = connection.execute(_entries(largest).where(journal.c.id == id)).one_or_none()
        return _entry_of(row) if row else None


def find_publications(connection: Connection, ids: Collection[str], largest: int) -> dict[str, Publication]:
    """Find publications by id, without those of more than `largest` bytes."""
    rows = bulk.select_among(connection, _select_up_to(largest), journal.c.id, ids)
    return {row.id: Publication(*row) for row in rows}


@lru_cache(maxsize=1_000)
def _select_up_to(largest: int) -> Select[*tuple[Any, ...]]:
    return PUBLICATIONS.where(func.length(journal.c.body) <= largest)


def _entries(largest: int) -> Select[*tuple[Any, ...]]:
    """Select entries without reading bodies larger than the limit."""
    size = func.length(journal.c.body)
    body = case((size <= largest, journal.c.body), else_=literal(b"")).label("shown")
    own = journal.c.id, journal.c.media_type, body, journal.c.position
    return select(*own, audiences.labels.c.label, journal.c.time, size).select_from(_LABELLED)


def _entry_of(row: Row[*tuple[Any, ...]]) -> JournalEntry:
    id, media_type, body, position, label, time, size = row
    return JournalEntry(Publication(id, media_type, bytes(body), position, label), time, size)


class _Existing(NamedTuple):
    """A publication in the journal."""

    media_type: str
    body: bytes
    position: int
    audience: str | None


def add_trace(publications: Iterable[Publication]) -> list[Publication]:
    """Give publications the traceparent of the current span, unless they have one."""
    if (current := traces.current_traceparent()) is None:
        return list(publications)
    return [replace(each, traceparent=each.traceparent or current) for each in publications]


def append_publications(connection: Connection, offered: Sequence[Publication]) -> list[AppendOutcome]:
    """Append publications in the caller's transaction; return the position or the problem of each."""
    last = counters.lock(connection, "journal")
    given_ids = {publication.id for publication in offered}
    ids = [publication.id or names.new_id("p") for publication in offered]
    existing = {id: _Existing(*fields) for id, *fields in _read_existing(connection, ids)}
    if apart := _ids_of_other_sources(offered, existing):
        existing |= {id: _Existing(*fields) for id, *fields in _read_existing(connection, apart)}
    source = cache(lambda id: _source(existing[id]))
    outcomes: list[AppendOutcome] = []
    new, carried, traced, time = [], [], [], now_text()
    for publication, id in zip(offered, ids, strict=True):
        if not publication.id and (id in existing or id in given_ids):
            id = names.new_id("p", 16)
        if publication.source is not None and id in existing and source(id) not in (None, publication.source):
            id = _of_source(publication)
        if id in existing:
            outcomes.append(_repeat_outcome(id, publication, existing[id]))
        elif problem := _problem(id, publication.audience):
            outcomes.append(problem)
        else:
            last += 1
            existing[id] = _Existing(publication.media_type, publication.body, last, publication.audience)
            new.append((last, id, publication.media_type, publication.body, time))
            carried += [(id, publication.audience)] if publication.audience is not None else []
            outcomes.append(AppendResult(id, last, new=True))
            if publication.traceparent:
                traced.append((last, id, publication.traceparent))
    bulk.insert_rows(connection, journal, new)
    bulk.insert_rows(connection, audiences.labels, carried)
    telemetry.record_traces(connection, traced, time)
    counters.advance(connection, "journal", last)
    return outcomes


def _read_existing(connection: Connection, ids: Iterable[str]) -> Iterator[Row[*tuple[Any, ...]]]:
    return bulk.select_among(connection, PUBLICATIONS, journal.c.id, {id for id in ids if id.isprintable()})


def _ids_of_other_sources(offered: Iterable[Publication], existing: Mapping[str, _Existing]) -> set[str]:
    """Return the ids that CloudEvents may get because their own are taken, or used twice in this batch."""
    seen, renamed = set(existing), set[str]()
    for publication in offered:
        if publication.source is not None and publication.id in seen:
            renamed.add(_of_source(publication))
        seen.add(publication.id)
    return renamed


def _of_source(publication: Publication) -> str:
    """Return the id of a CloudEvent whose own id belongs to another source; the same each time."""
    return f"{publication.id}~{sha256(str(publication.source).encode('utf-8', 'surrogatepass')).hexdigest()[:16]}"


def _source(existing: _Existing) -> str | None:
    """Return the source of a CloudEvent in the journal; None for other publications."""
    if _kind(existing.media_type) != "application/json" or b"specversion" not in existing.body:
        return None
    event = json.loads(existing.body)
    source = event.get("source") if "specversion" in event else None
    return source if isinstance(source, str) else None


def _problem(id: str, audience: str | None) -> InputError | None:
    label = None if audience is None else names.find_problem("an audience label", audience)
    return names.find_problem("a publication's id", id) or label


def _kind(media_type: str) -> str:
    """Return the media type for comparison: a CloudEvent sent as plain JSON is the same publication."""
    return "application/json" if media_type == cloud_events.MEDIA_TYPE else media_type


def _repeat_outcome(id: str, publication: Publication, existing: _Existing) -> AppendResult | IdConflict:
    """Return the existing publication if it is the same, or an error, which hides positions of restricted ones."""
    same_kind = _kind(publication.media_type) == _kind(existing.media_type)
    if same_kind and (publication.body, publication.audience) == (existing.body, existing.audience):
        return AppendResult(id, existing.position, new=False)
    return IdConflict(
        f"the id '{id}' was already used for another publication",
        where=f"position {existing.position}" if existing.audience is None else None,
        hint="give it an id of its own, or leave the id out",
    )
