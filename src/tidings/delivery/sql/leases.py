"""A lane as whoever works on it has taken it, and whether it is still theirs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

from sqlalchemy import Connection, Row, Text, Update, select, update

from tidings.delivery.sql.tables import delivery_lanes
from tidings.store.bulk import json_rows, json_rows_parameter

CursorKey = tuple[str, str]
"""A destination and a subscription."""


class EntryRange(NamedTuple):
    """Entries of a subscription, from a number to another."""

    subscriber: str
    subscription: str
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class CursorLease:
    """A destination and a subscription, as they were taken: entries after `told` are to be delivered.

    `attempts` were begun before for the first of them; `gathered` is the last entry of the digest that is under way,
    `gathers` whether what waits is to be one.
    """

    destination: str
    subscription: str
    subscriber: str
    place: str
    told: int
    ticket: int
    attempts: int
    gathered: int | None
    gathers: int

    @property
    def key(self) -> CursorKey:
        return self.destination, self.subscription

    @property
    def together(self) -> bool:
        """Whether its entries go together."""
        return bool(self.gathers) or self.gathered is not None

    def next(self, run: int) -> EntryRange:
        """The entries that are next: those of the digest that was begun, or some."""
        last = (self.gathered or self.told) if self.together else self.told + run
        return EntryRange(self.subscriber, self.subscription, self.told + 1, last)


TAKEN = tuple(delivery_lanes.c[name] for name in CursorLease.__dataclass_fields__)

_tickets = json_rows("to", "what", numbers=("ticket",))
_MINE = (
    select(*delivery_lanes.c)
    .join_from(
        _tickets,
        delivery_lanes,
        (delivery_lanes.c.destination == _tickets.c.to)
        & (delivery_lanes.c.subscription == _tickets.c.what)
        & (delivery_lanes.c.ticket == _tickets.c.ticket),
    )
    .order_by(delivery_lanes.c.destination, delivery_lanes.c.subscription)
    .with_for_update(of=delivery_lanes)
)


def lock_leased(
    connection: Connection, lanes: Sequence[CursorLease]
) -> dict[CursorKey, Row[*tuple[Any, ...]]]:
    """The rows of those of these lanes that nobody took since, locked. All who lock lanes do it in the same order."""
    tickets = json_rows_parameter((lane.destination, lane.subscription, lane.ticket) for lane in lanes)
    return {(row.destination, row.subscription): row for row in connection.execute(_MINE, tickets)}


def update_cursors(connection: Connection, values: Mapping[CursorKey, Mapping[str, Any]]) -> None:
    """Write the same columns of several lanes, which must be locked."""
    if values:
        names = tuple(sorted(next(iter(values.values())), key=_is_number))
        rows = json_rows_parameter((*key, *(row[name] for name in names)) for key, row in values.items())
        connection.execute(_writing(names), rows)


def _is_number(name: str) -> bool:
    return not isinstance(delivery_lanes.c[name].type, Text)


@lru_cache(maxsize=100)
def _writing(names: tuple[str, ...]) -> Update:
    new = json_rows(
        *("to", "what", *(f"new_{name}" for name in names if not _is_number(name))),
        numbers=[f"new_{name}" for name in names if _is_number(name)],
    )
    here = delivery_lanes.c.destination == new.c.to, delivery_lanes.c.subscription == new.c.what
    return update(delivery_lanes).where(*here).values({name: new.c[f"new_{name}"] for name in names})
