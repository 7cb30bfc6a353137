"""Leases of delivery cursors.

A worker leases a cursor, which increments its ticket. A worker whose ticket is not the current one has lost the lease.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

from sqlalchemy import Connection, Row, Text, Update, select, update

from tidings.delivery.sql.tables import delivery_cursors
from tidings.store.bulk import json_rows, json_rows_parameter

CursorKey = tuple[str, str]
"""The key of a cursor: a destination and a subscription."""


class EntryRange(NamedTuple):
    """The entries `first` to `last` of a subscription."""

    subscriber: str
    subscription: str
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class CursorLease:
    """A leased cursor: entries after `position` are to be delivered to the destination, which is at `host`.

    `attempts` counts earlier attempts for the first of these entries. `digest_end` is the last entry of a digest that
    was started, `next_is_digest` whether the next message is to be a digest.
    """

    destination: str
    subscription: str
    subscriber: str
    host: str
    position: int
    ticket: int
    attempts: int
    digest_end: int | None
    next_is_digest: int

    @property
    def key(self) -> CursorKey:
        return self.destination, self.subscription

    @property
    def is_digest(self) -> bool:
        return bool(self.next_is_digest) or self.digest_end is not None

    def next(self, run: int) -> EntryRange:
        """Return the next entries: those of the digest that was started, or up to `run` of them."""
        last = (self.digest_end or self.position) if self.is_digest else self.position + run
        return EntryRange(self.subscriber, self.subscription, self.position + 1, last)


LEASE_COLUMNS = tuple(delivery_cursors.c[name] for name in CursorLease.__dataclass_fields__)

_tickets = json_rows("to", "what", numbers=("ticket",))
_STILL_LEASED = (
    select(*delivery_cursors.c)
    .join_from(
        _tickets,
        delivery_cursors,
        (delivery_cursors.c.destination == _tickets.c.to)
        & (delivery_cursors.c.subscription == _tickets.c.what)
        & (delivery_cursors.c.ticket == _tickets.c.ticket),
    )
    .order_by(delivery_cursors.c.destination, delivery_cursors.c.subscription)
    .with_for_update(of=delivery_cursors)
)


def lock_leased(
    connection: Connection, held: Sequence[CursorLease]
) -> dict[CursorKey, Row[*tuple[Any, ...]]]:
    """Lock the cursors whose leases are still valid; return their rows. All code locks cursors in the same order."""
    tickets = json_rows_parameter((lease.destination, lease.subscription, lease.ticket) for lease in held)
    return {(row.destination, row.subscription): row for row in connection.execute(_STILL_LEASED, tickets)}


def update_cursors(connection: Connection, values: Mapping[CursorKey, Mapping[str, Any]]) -> None:
    """Write the same columns of several cursors, which must be locked."""
    if values:
        names = tuple(sorted(next(iter(values.values())), key=_is_number))
        rows = json_rows_parameter((*key, *(row[name] for name in names)) for key, row in values.items())
        connection.execute(_update_statement(names), rows)


def _is_number(name: str) -> bool:
    return not isinstance(delivery_cursors.c[name].type, Text)


@lru_cache(maxsize=100)
def _update_statement(names: tuple[str, ...]) -> Update:
    new = json_rows(
        *("to", "what", *(f"new_{name}" for name in names if not _is_number(name))),
        numbers=[f"new_{name}" for name in names if _is_number(name)],
    )
    here = delivery_cursors.c.destination == new.c.to, delivery_cursors.c.subscription == new.c.what
    return update(delivery_cursors).where(*here).values({name: new.c[f"new_{name}"] for name in names})
