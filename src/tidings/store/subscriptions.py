"""Subscriptions, and what happened to them since a version.

Each change gets the next version, in the transaction that makes it. A follower keeps the version it has seen
and asks for what came after: first it forgets `removed`, then it takes `added`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import Connection, Select, and_, bindparam, func, or_, select, update

from tidings import durations
from tidings.errors import IdTaken, OverLimit, StoreError
from tidings.model import Subscription
from tidings.store import bulk, counters, names, standings
from tidings.store.database import Database
from tidings.store.tables import paused, subscriptions

_COLUMNS = (
    subscriptions.c.id,
    subscriptions.c.subscriber,
    subscriptions.c.language,
    subscriptions.c.text,
    subscriptions.c.within,
)
_LIVES = subscriptions.c.removed.is_(None)


@dataclass(frozen=True, slots=True)
class Changes:
    """What leads from one version to `version`: forget `removed`, then take `added`.

    An id may be in both, when it was removed and then added with another text.
    """

    version: int
    added: list[Subscription]
    removed: list[str]


class Subscriptions:
    """The subscriptions of everybody."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, subscription: Subscription, most: int | None = None) -> str:
        """Add one, and give its id; one without an id gets an id of its own.

        With `most`, its subscriber may have no more than that, paused ones and rules counted.
        """

        def add_one(connection: Connection) -> str:
            [id] = add(connection, [subscription])
            if most is not None and standings.count(connection, subscription.subscriber) > most:
                raise over_limit(most)
            return id

        return self._database.transact(add_one)

    def add_many(self, wanted: Iterable[Subscription]) -> list[str]:
        """Add all of them in one version, or none; those that are there already, unchanged, count as added."""
        offered = list(wanted)
        return self._database.transact(lambda connection: add(connection, offered))

    def remove(self, ids: Iterable[str], subscriber: str | None = None) -> list[str]:
        """Remove those that exist (and are the subscriber's, if one is given), and give their ids."""
        given = [id for id in dict.fromkeys(ids) if id.isprintable()]
        return self._database.transact(lambda connection: remove(connection, given, subscriber))

    def change(self, changed: Subscription) -> bool:
        """Give one that lives another text or delay, in one version; false if there is none of this id, subscriber and
        language.
        """
        return self._database.transact(lambda connection: _change(connection, changed))

    def version(self) -> int:
        """The version of the last change; 0 if there was none."""
        with self._database.read() as connection:
            return counters.current(connection, "subscriptions")

    def changes(self, since: int) -> Changes:
        """The net changes after a version."""
        with self._database.read() as connection:
            version = counters.current(connection, "subscriptions")
            if since > version:
                raise _from_the_future(self._database, since, version)
            added = [Subscription(*row) for row in connection.execute(_added(since, version))]
            removed = list(connection.execute(_removed(since, version)).scalars())
        return Changes(version, added, removed)

    def find(self, id: str) -> Subscription | None:
        """The subscription with this id, if there is one now."""
        with self._database.read() as connection:
            row = connection.execute(select(*_COLUMNS).where(_LIVES, subscriptions.c.id == id)).one_or_none()
        return Subscription(*row) if row else None

    def count(self, subscriber: str | None = None) -> int:
        """How many there are now, of everybody or of one subscriber."""
        wanted = _of(select(func.count()).select_from(subscriptions).where(_LIVES), subscriber)
        with self._database.read() as connection:
            return int(connection.execute(wanted).scalar_one())

    def list(self, subscriber: str | None = None, limit: int | None = None) -> Sequence[Subscription]:
        """Those of now, oldest first, of everybody or of one subscriber."""
        wanted = _of(select(*_COLUMNS).where(_LIVES), subscriber)
        ordered = wanted.order_by(subscriptions.c.added, subscriptions.c.id).limit(limit)
        with self._database.read() as connection:
            return [Subscription(*row) for row in connection.execute(ordered)]


def over_limit(most: int) -> OverLimit:
    """What is said to somebody who has as many as there may be."""
    accepted, hint = f"{most:,} for each subscriber", "remove some first"
    return OverLimit("too many subscriptions", accepted=accepted, hint=hint)


def _of(wanted: Select[*tuple[Any, ...]], subscriber: str | None) -> Select[*tuple[Any, ...]]:
    return wanted if subscriber is None else wanted.where(subscriptions.c.subscriber == subscriber)


def _added(since: int, version: int) -> Select[*tuple[Any, ...]]:
    """What lives at `version` and did not at `since`; later changes, already visible to this reader, do not
    count.
    """
    alive = or_(_LIVES, subscriptions.c.removed > version)
    born = and_(subscriptions.c.added > since, subscriptions.c.added <= version)
    return select(*_COLUMNS).where(born, alive).order_by(subscriptions.c.added, subscriptions.c.id)


def _removed(since: int, version: int) -> Select[*tuple[Any, ...]]:
    died = and_(subscriptions.c.removed > since, subscriptions.c.removed <= version)
    return select(subscriptions.c.id).where(subscriptions.c.added <= since, died).order_by(subscriptions.c.id)


def _from_the_future(database: Database, since: int, version: int) -> StoreError:
    return StoreError(
        f"the store is at version {version} of its subscriptions, but version {since} of them is known here",
        where=database.name,
        hint="was the store replaced by an older copy? remove the segments folder: it is built anew",
    )


def add(connection: Connection, offered: Sequence[Subscription]) -> list[str]:
    last = counters.lock(connection, "subscriptions")
    given = {one.id for one in offered if one.id}
    ids = [one.id or names.fresh("s") for one in offered]
    known = {one.id: one for one in living(connection, ids)}
    _refuse_paused(connection, given)
    new = []
    for i, one in enumerate(offered):
        if not one.id and (ids[i] in known or ids[i] in given):
            ids[i] = names.fresh("s", 16)
        named = replace(one, id=ids[i])
        if ids[i] not in known:
            known[ids[i]] = named
            new.append(_row(named, last + 1))
        elif known[ids[i]] != named:
            raise _taken(known[ids[i]])
    if new:
        bulk.insert_rows(connection, subscriptions, new)
        counters.advance(connection, "subscriptions", last + 1)
    return ids


def _change(connection: Connection, changed: Subscription) -> bool:
    last = counters.lock(connection, "subscriptions")
    before = next(living(connection, [changed.id]), None)
    if before is None or (before.subscriber, before.language) != (changed.subscriber, changed.language):
        return False
    if before != changed:
        _kill(connection, [changed.id], last + 1)
        bulk.insert_rows(connection, subscriptions, [_row(changed, last + 1)])
        counters.advance(connection, "subscriptions", last + 1)
    return True


def _refuse_paused(connection: Connection, ids: Collection[str]) -> None:
    """What is paused keeps its id. Most stores have nothing paused, and many ids are not looked for then."""
    if not ids or connection.execute(select(paused.c.id).limit(1)).first() is None:
        return
    found = next(bulk.select_among(connection, select(paused.c.id), paused.c.id, ids), None)
    if found is not None:
        hint = "resume or remove that one, or leave the id out"
        raise IdTaken(f"the id '{found.id}' is used for a subscription that is paused", hint=hint)


def living(connection: Connection, ids: Collection[str]) -> Iterator[Subscription]:
    """Those of these that live, in the caller's transaction."""
    rows = bulk.select_among(connection, select(*_COLUMNS).where(_LIVES), subscriptions.c.id, set(ids))
    return (Subscription(*row) for row in rows)


def _row(one: Subscription, version: int) -> tuple[object, ...]:
    names.check("a subscription's id", one.id, "/id")
    names.check("a subscriber's name", one.subscriber, "/subscriber")
    within = None if one.within is None else durations.check(one.within)
    return version, one.id, one.subscriber, one.language, checked_text(one), None, within


def checked_text(one: Subscription) -> str:
    """Its text, if every database can keep it."""
    return names.check_text("a subscription's text", one.text, "/text")


def _taken(one: Subscription) -> IdTaken:
    return IdTaken(
        f"the id '{one.id}' is already used for another subscription",
        hint="give it an id of its own, leave the id out, or unsubscribe first",
    )


def remove(connection: Connection, ids: Sequence[str], subscriber: str | None) -> list[str]:
    last = counters.lock(connection, "subscriptions")
    own = {one.id for one in living(connection, ids) if subscriber in (None, one.subscriber)}
    removed = [id for id in ids if id in own]
    if removed:
        _kill(connection, removed, last + 1)
        counters.advance(connection, "subscriptions", last + 1)
    return removed


def _kill(connection: Connection, ids: Sequence[str], version: int) -> None:
    died = update(subscriptions).where(_LIVES, subscriptions.c.id == bindparam("dying"))
    connection.execute(died.values(removed=version), [{"dying": id} for id in ids])
