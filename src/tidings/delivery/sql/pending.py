"""What is delivered next: entries of lanes in order, with the publications that they are about."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from sqlalchemy import Connection, func, select

from tidings.delivery.sql import destination_store
from tidings.delivery.sql.destination_store import Destination, QuietHours
from tidings.delivery.sql.leases import CursorLease, EntryRange
from tidings.model import Publication
from tidings.store.bulk import json_rows, json_rows_parameter
from tidings.store.database import Database
from tidings.store.entries import ENTRY_NOTIFICATION, SubscriptionEntry
from tidings.store.journal import find_publications
from tidings.store.notifications import NOTIFICATION_COLUMNS, notification_from_row
from tidings.store.tables import journal, notifications, subscription_entries


@dataclass(frozen=True, slots=True)
class EntryBatch:
    """Entries in order, and the publications that they are about, by id."""

    entries: Sequence[SubscriptionEntry]
    publications: Mapping[str, Publication]


@dataclass(frozen=True, slots=True)
class RunContext:
    """Destinations by id, the quiet hours of subscribers who have some, and for each lane what was read."""

    destinations: Mapping[str, Destination]
    quiet: Mapping[str, QuietHours]
    read: Sequence[EntryBatch | None]


class _Sized(NamedTuple):
    """An entry, and how many bytes its publication has in the journal."""

    entry: SubscriptionEntry
    size: int


class PendingEntries:
    """The entries of everybody's subscriptions, as deliveries read them: publications with more than `largest` bytes
    are left out.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def read(self, wanted: EntryRange, largest: int, most_bytes: int | None = None) -> EntryBatch:
        """Entries and their publications: of more than `most_bytes` together, only the first of them, one at least."""
        with self._database.read() as connection:
            [found] = _entries(connection, [wanted])
            sized = [_Sized(one.entry, one.size if one.size <= largest else 0) for one in found]
            some = found if most_bytes is None else list(_upto(sized, most_bytes))
            entries = [one.entry for one in some]
            return EntryBatch(entries, find_publications(connection, _named(entries), largest))

    def read_short(self, wanted: Sequence[EntryRange], few: int, largest: int) -> list[EntryBatch | None]:
        """Those of many that have a few entries and no more, about publications of `largest` bytes each at most, read
        together; nothing for the others.
        """
        with self._database.read() as connection:
            return _short(connection, wanted, few, largest)

    def known(self, lanes: Sequence[CursorLease], run: int, few: int, largest: int) -> RunContext:
        """What there is to know of lanes that were taken, with what is next in those that have little."""
        with self._database.read() as connection:
            return RunContext(
                destination_store.find_destinations(connection, {lane.destination for lane in lanes}),
                destination_store.quiet_of(connection, {lane.subscriber for lane in lanes}),
                _short(connection, [lane.next(run) for lane in lanes], few, largest),
            )


_wanted = json_rows("who", "what", numbers=("turn", "low", "high"))
_size = (
    select(func.length(journal.c.body)).where(journal.c.id == notifications.c.publication).scalar_subquery()
)
_ENTRIES = (
    select(
        _wanted.c.turn,
        func.coalesce(_size, 0),
        subscription_entries.c.number,
        subscription_entries.c.time,
        *NOTIFICATION_COLUMNS,
    )
    .join_from(
        _wanted,
        subscription_entries,
        (subscription_entries.c.subscriber == _wanted.c.who)
        & (subscription_entries.c.subscription == _wanted.c.what)
        & (subscription_entries.c.number >= _wanted.c.low)
        & (subscription_entries.c.number <= _wanted.c.high),
    )
    .join(notifications, ENTRY_NOTIFICATION)
    .order_by(_wanted.c.turn, subscription_entries.c.number)
)


def _entries(connection: Connection, wanted: Sequence[EntryRange]) -> list[list[_Sized]]:
    """The entries of each, oldest first."""
    rows = json_rows_parameter((one[0], one[1], turn, one.first, one.last) for turn, one in enumerate(wanted))
    found: list[list[_Sized]] = [[] for _ in wanted]
    for turn, size, number, time, *row in connection.execute(_ENTRIES, rows):
        found[turn].append(_Sized(SubscriptionEntry(number, time, notification_from_row(*row)), size))
    return found


def _short(
    connection: Connection, wanted: Sequence[EntryRange], few: int, largest: int
) -> list[EntryBatch | None]:
    begun = [each._replace(last=min(each.last, each.first + few)) for each in wanted]
    found = [
        [one.entry for one in each] if len(each) <= few and all(one.size <= largest for one in each) else None
        for each in _entries(connection, begun)
    ]
    named = {id for entries in found if entries for id in _named(entries)}
    published = find_publications(connection, named, largest)
    return [None if entries is None else EntryBatch(entries, published) for entries in found]


def _upto(found: Sequence[_Sized], most_bytes: int) -> Iterator[_Sized]:
    left = most_bytes
    for turn, one in enumerate(found):
        left -= one.size
        if left < 0 and turn:
            return
        yield one


def _named(entries: Sequence[SubscriptionEntry]) -> set[str]:
    """Publications by name; what is withheld has none."""
    return {one.notification.publication for one in entries if one.notification.publication}
