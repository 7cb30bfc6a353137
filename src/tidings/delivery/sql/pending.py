"""Pending entries: the next entries of delivery cursors, with their publications."""

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
from tidings.store.journal import find_publications
from tidings.store.notifications.notification_store import NOTIFICATION_COLUMNS, notification_from_row
from tidings.store.notifications.subscription_entries import ENTRY_NOTIFICATION, NumberedNotification
from tidings.store.tables import journal, notifications, numbered_notifications


@dataclass(frozen=True, slots=True)
class EntryBatch:
    """Entries in order, and their publications by id."""

    entries: Sequence[NumberedNotification]
    publications: Mapping[str, Publication]


@dataclass(frozen=True, slots=True)
class RunContext:
    """Destinations by id, quiet hours by subscriber, and for each cursor its entries if they were read ahead."""

    destinations: Mapping[str, Destination]
    quiet: Mapping[str, QuietHours]
    entries: Sequence[EntryBatch | None]


class _SizedEntry(NamedTuple):
    """An entry, and the size of its publication in the journal in bytes."""

    entry: NumberedNotification
    size: int


class PendingEntries:
    """The entries of all subscriptions as deliveries read them, without publications larger than a limit."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def read(self, range: EntryRange, largest: int, max_bytes: int | None = None) -> EntryBatch:
        """Read entries, up to `max_bytes` of publications but at least one entry.

        Publications of more than `largest` bytes are left out, and do not count.
        """
        with self._database.read() as connection:
            [sized] = _read_ranges(connection, [range])
            if max_bytes is not None:
                limited = [item if item.size <= largest else item._replace(size=0) for item in sized]
                sized = list(_take_up_to(limited, max_bytes))
            entries = [item.entry for item in sized]
            return EntryBatch(entries, find_publications(connection, _publication_ids(entries), largest))

    def read_short(self, ranges: Sequence[EntryRange], few: int, largest: int) -> list[EntryBatch | None]:
        """Read ranges in one query; None for a range of more than `few` entries or with a large publication."""
        with self._database.read() as connection:
            return _read_short(connection, ranges, few, largest)

    def load_context(self, leased: Sequence[CursorLease], run: int, few: int, largest: int) -> RunContext:
        """Load the data for a run of each cursor, with the next entries if they are few and small."""
        with self._database.read() as connection:
            return RunContext(
                destination_store.find_destinations(connection, {lease.destination for lease in leased}),
                destination_store.find_quiet_hours(connection, {lease.subscriber for lease in leased}),
                _read_short(connection, [lease.next(run) for lease in leased], few, largest),
            )


_wanted = json_rows("who", "what", numbers=("turn", "low", "high"))
_size = (
    select(func.length(journal.c.body)).where(journal.c.id == notifications.c.publication).scalar_subquery()
)
_ENTRIES = (
    select(
        _wanted.c.turn,
        func.coalesce(_size, 0),
        numbered_notifications.c.number,
        numbered_notifications.c.time,
        *NOTIFICATION_COLUMNS,
    )
    .join_from(
        _wanted,
        numbered_notifications,
        (numbered_notifications.c.subscriber == _wanted.c.who)
        & (numbered_notifications.c.subscription == _wanted.c.what)
        & (numbered_notifications.c.number >= _wanted.c.low)
        & (numbered_notifications.c.number <= _wanted.c.high),
    )
    .join(notifications, ENTRY_NOTIFICATION)
    .order_by(_wanted.c.turn, numbered_notifications.c.number)
)


def _read_ranges(connection: Connection, ranges: Sequence[EntryRange]) -> list[list[_SizedEntry]]:
    """Read the entries of each range, oldest first."""
    rows = json_rows_parameter(
        (r.subscriber, r.subscription, i, r.first, r.last) for i, r in enumerate(ranges)
    )
    entries: list[list[_SizedEntry]] = [[] for _ in ranges]
    for index, size, number, time, *row in connection.execute(_ENTRIES, rows):
        entry = NumberedNotification(number, time, notification_from_row(*row))
        entries[index].append(_SizedEntry(entry, size))
    return entries


def _read_short(
    connection: Connection, ranges: Sequence[EntryRange], few: int, largest: int
) -> list[EntryBatch | None]:
    starts = [each._replace(last=min(each.last, each.first + few)) for each in ranges]
    short = [
        [item.entry for item in sized]
        if len(sized) <= few and all(item.size <= largest for item in sized)
        else None
        for sized in _read_ranges(connection, starts)
    ]
    ids = {id for entries in short if entries for id in _publication_ids(entries)}
    publications = find_publications(connection, ids, largest)
    return [None if entries is None else EntryBatch(entries, publications) for entries in short]


def _take_up_to(sized: Sequence[_SizedEntry], max_bytes: int) -> Iterator[_SizedEntry]:
    left = max_bytes
    for index, item in enumerate(sized):
        left -= item.size
        if left < 0 and index:
            return
        yield item


def _publication_ids(entries: Sequence[NumberedNotification]) -> set[str]:
    """Return the ids of publications; withheld notifications have none."""
    return {entry.notification.publication for entry in entries if entry.notification.publication}
