"""Rows of subscriptions: what is in them, and those that live."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from sqlalchemy import Connection, select

from tidings import durations
from tidings.errors import pointing
from tidings.model import Subscription
from tidings.store import bulk, names
from tidings.store.tables import subscriptions

COLUMNS = (
    subscriptions.c.id,
    subscriptions.c.subscriber,
    subscriptions.c.language,
    subscriptions.c.text,
    subscriptions.c.within,
)
LIVES = subscriptions.c.removed.is_(None)
_LIVING = select(*COLUMNS).where(LIVES)


def living(connection: Connection, ids: Collection[str]) -> Iterator[Subscription]:
    """Those of these that live, in the caller's transaction."""
    return (
        Subscription(*row) for row in bulk.select_among(connection, _LIVING, subscriptions.c.id, set(ids))
    )


def row(one: Subscription, version: int) -> tuple[object, ...]:
    """A subscription as a row that is added in a version, if every database can keep it."""
    names.check("a subscription's id", one.id, "/id")
    names.check("a subscriber's name", one.subscriber, "/subscriber")
    with pointing("/within"):
        within = None if one.within is None else durations.check(one.within)
    return version, one.id, one.subscriber, one.language, checked_text(one), None, within


def checked_text(one: Subscription) -> str:
    """Its text, if every database can keep it."""
    return names.check_text("a subscription's text", one.text, "/text")
