"""The subscriptions of a store at one version, in ranges of ids that several processes read at the same time.

Active subscriptions are read as they were at the version, whatever changes meanwhile: rows of removed ones are kept.
Paused ones and rules have no versions, and are read as they are.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from sqlalchemy import Connection, bindparam, func, select

from tidings.model import Subscription
from tidings.store import bulk, counters
from tidings.store.database import Database
from tidings.store.subscriptions.admission import COLUMNS, IS_LIVE
from tidings.store.subscriptions.view import (
    ACTIVE,
    PAUSED,
    RULES,
    SubscriptionFilter,
    SubscriptionStatus,
    SubscriptionView,
)
from tidings.store.tables import Whole, subscriptions

PAGE = 5_000


@dataclass(frozen=True, slots=True)
class SubscriptionRange:
    """The subscriptions that were active at a version, with ids after `after`, up to and including `upto` if given."""

    version: int
    after: str = ""
    upto: str | None = None


class SubscriptionSnapshots:
    """Subscriptions in ranges."""

    def __init__(self, database: Database) -> None:
        self._database, self._view = database, SubscriptionView(database)

    def cut(self, size: int) -> list[SubscriptionRange]:
        """Divide the subscriptions that are active now into ranges of about `size`."""
        with self._database.moment() as connection:
            version = counters.current(connection, "subscriptions")
            ends = connection.execute(_ENDS, {"size": size}).scalars().all()
        bounds = ["", *ends]
        return [SubscriptionRange(version, *pair) for pair in zip(bounds, [*ends, None], strict=True)]

    def read(self, part: SubscriptionRange) -> Iterator[list[Subscription]]:
        """Read a range in pages, in the order of ids."""
        after: str | None = part.after
        while after is not None:
            with self._database.moment() as connection:
                page, after = _read_page(connection, part, after)
            yield page

    def others(self, version: int) -> Iterator[list[SubscriptionStatus]]:
        """Read paused subscriptions and rules in pages, without those that were active at a version."""
        for selection in (SubscriptionFilter(state=PAUSED), SubscriptionFilter(state=ACTIVE, language=RULES)):
            while page := self._view.page(selection, PAGE):
                ids = [each.subscription.id for each in page]
                with self._database.read() as connection:
                    active = _removed_since(connection, version, ids)
                yield [each for each in page if each.subscription.id not in active]
                selection = SubscriptionFilter(ids[-1], state=selection.state, language=selection.language)


_numbered = (
    select(subscriptions.c.id, func.row_number().over(order_by=subscriptions.c.id).label("number"))
    .where(IS_LIVE)
    .subquery()
)
_ENDS = (
    select(_numbered.c.id)
    .where(_numbered.c.number % bindparam("size", type_=Whole) == 0)
    .order_by(_numbered.c.id)
)
_WAS_ADDED = subscriptions.c.added <= bindparam("version")
_WAS_REMOVED = subscriptions.c.removed > bindparam("version")


def _read_page(
    connection: Connection, part: SubscriptionRange, after: str
) -> tuple[list[Subscription], str | None]:
    """Return a page of a range, and its last id; None if it is the last page.

    Those that are active and those that were removed later are found with an index each; with an `or` SQLite would
    read the whole table.
    """
    between = [subscriptions.c.id > after] + ([subscriptions.c.id <= part.upto] if part.upto else [])
    active = select(*COLUMNS).where(IS_LIVE, *between).order_by(subscriptions.c.id).limit(PAGE)
    rows = connection.execute(active.add_columns(subscriptions.c.added)).all()
    last = rows[-1].id if len(rows) == PAGE else None
    removed = select(*COLUMNS).where(_WAS_REMOVED, _WAS_ADDED, *between)
    if last is not None:
        removed = removed.where(subscriptions.c.id <= last)
    page = [Subscription(*row[:5]) for row in rows if row.added <= part.version]
    page += [Subscription(*row) for row in connection.execute(removed, {"version": part.version})]
    return sorted(page, key=lambda subscription: subscription.id), last


def _removed_since(connection: Connection, version: int, ids: Collection[str]) -> set[str]:
    """Return which of these ids were active at a version and are not any more."""
    query = select(subscriptions.c.id).where(
        subscriptions.c.removed > version, subscriptions.c.added <= version
    )
    return {row.id for row in bulk.select_among(connection, query, subscriptions.c.id, ids)}
