"""Subscriptions as their subscribers see them: active ones, rules and paused ones, in one order.

A page is merged from three short queries, one for each kind, in the order of ids; the next page starts after the last
id. Rules of repositories are not listed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from heapq import merge
from typing import Any

from sqlalchemy import Column, Connection, Row, Select, Table, bindparam, func, literal, null, select
from sqlalchemy.sql.elements import ColumnElement

from tidings.metadata.sql.tables import metadata_rules
from tidings.model import Subscription
from tidings.store import bulk
from tidings.store.database import Database
from tidings.store.tables import paused, subscriptions

RULES = "rules"
ACTIVE, PAUSED = "active", "paused"

_no_scope = func.coalesce(metadata_rules.c.scope, "") == ""


@dataclass(frozen=True, slots=True)
class SubscriptionStatus:
    """A subscription; when it was paused, if it is, and the reason if the service suspended it."""

    subscription: Subscription
    paused: str | None = None
    reason: str | None = None

    @property
    def state(self) -> str:
        return PAUSED if self.paused else ACTIVE


@dataclass(frozen=True, slots=True)
class SubscriptionFilter:
    """Filter: after an id, of a subscriber, in a language, in a state, with a word in text or id."""

    after: str = ""
    subscriber: str | None = None
    language: str | None = None
    state: str | None = None
    word: str | None = None


@dataclass(frozen=True, slots=True)
class _Kind:
    """The table and column names of one kind of subscription."""

    table: Table
    state: str
    id: Column[Any]
    owner: Column[Any]
    language: ColumnElement[Any]
    time: ColumnElement[Any]
    lives: tuple[ColumnElement[bool], ...] = ()


_KINDS = (
    _Kind(
        subscriptions,
        ACTIVE,
        subscriptions.c.id,
        subscriptions.c.subscriber,
        subscriptions.c.language,
        null(),
        (subscriptions.c.removed.is_(None),),
    ),
    _Kind(
        metadata_rules,
        ACTIVE,
        metadata_rules.c.name,
        metadata_rules.c.owner,
        literal(RULES),
        null(),
        (_no_scope,),
    ),
    _Kind(paused, PAUSED, paused.c.id, paused.c.subscriber, paused.c.language, paused.c.time),
)


class SubscriptionView:
    """The subscriptions of all subscribers, in every language and state."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def find(self, id: str) -> SubscriptionStatus | None:
        """Find a subscription by id."""
        if not id.isprintable():
            return None
        with self._database.read() as connection:
            results = (_read(connection, kind, [kind.id == id], 1) for kind in _KINDS)
            return next((rows[0] for rows in results if rows), None)

    def find_many(self, ids: Collection[str]) -> dict[str, SubscriptionStatus]:
        """Find subscriptions by id. Unprintable ids are skipped: they cannot exist, and PostgreSQL rejects some."""
        printable = [id for id in ids if id.isprintable()]
        with self._database.read() as connection:
            statuses = [
                _read_status(row)
                for kind, query in zip(_KINDS, _QUERIES, strict=True)
                for row in bulk.select_among(connection, query, kind.id, printable)
            ]
        return {status.subscription.id: status for status in statuses}

    def page(self, selection: SubscriptionFilter, limit: int) -> list[SubscriptionStatus]:
        """Return a page of subscriptions in the order of ids."""
        with self._database.read() as connection:
            parts = [
                _read(connection, kind, _build_conditions(kind, selection), limit)
                for kind in _KINDS
                if selection.state in (None, kind.state)
            ]
        return list(merge(*parts, key=lambda status: status.subscription.id))[:limit]

    def count(self, subscriber: str) -> int:
        """Count the subscriptions of a subscriber."""
        if not subscriber.isprintable():
            return 0
        with self._database.read() as connection:
            return count(connection, subscriber)


def count(connection: Connection, subscriber: str) -> int:
    """Count the subscriptions of a subscriber, in the caller's transaction."""
    return sum(connection.execute(_COUNTS, {"owner": subscriber}).one())


_COUNTS = select(
    *(
        select(func.count())
        .select_from(kind.table)
        .where(kind.owner == bindparam("owner"), *kind.lives)
        .scalar_subquery()
        for kind in _KINDS
    )
)


_LIVE, *_OTHERS = (
    (kind.owner, select(kind.owner, func.count()).where(*kind.lives).group_by(kind.owner)) for kind in _KINDS
)


def live_counts(connection: Connection, subscribers: Collection[str]) -> dict[str, int]:
    """Count active subscriptions without rules by subscriber; those without any are left out."""
    owner, query = _LIVE
    return {row[0]: row[1] for row in bulk.select_among(connection, query, owner, subscribers)}


def other_counts(connection: Connection, subscribers: Collection[str]) -> Counter[str]:
    """Count rules and paused subscriptions by subscriber."""
    counts = Counter[str]()
    for owner, query in _OTHERS:
        for name, count in bulk.select_among(connection, query, owner, subscribers):
            counts[name] += count
    return counts


def _build_conditions(kind: _Kind, selection: SubscriptionFilter) -> list[ColumnElement[bool]]:
    conditions: list[ColumnElement[bool]] = [kind.id > selection.after]
    if selection.subscriber is not None:
        conditions.append(kind.owner == selection.subscriber)
    if selection.language is not None:
        conditions.append(kind.language == selection.language)
    if selection.word:
        text: Column[Any] = kind.table.c.text
        conditions.append(
            text.icontains(selection.word, autoescape=True)
            | kind.id.icontains(selection.word, autoescape=True)
        )
    return conditions


def _read(
    connection: Connection, kind: _Kind, conditions: Sequence[ColumnElement[bool]], limit: int
) -> list[SubscriptionStatus]:
    rows = connection.execute(_select_kind(kind).where(*conditions).order_by(kind.id).limit(limit)).all()
    return [_read_status(row) for row in rows]


def _select_kind(kind: _Kind) -> Select[*tuple[Any, ...]]:
    columns = (kind.id, kind.owner, kind.language, kind.table.c.text, kind.table.c.within, kind.time)
    reason = paused.c.reason if kind.table is paused else null()
    return select(*columns, reason).where(*kind.lives)


_QUERIES = [_select_kind(kind) for kind in _KINDS]


def _read_status(row: Row[*tuple[Any, ...]]) -> SubscriptionStatus:
    return SubscriptionStatus(Subscription(*row[:5]), row[5], row[6])
