"""When subscribers want to be left alone."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from sqlalchemy import Connection, delete, insert, select

from tidings.store import bulk, names
from tidings.store.database import Database
from tidings.store.destination_tables import quiet_hours


@dataclass(frozen=True, slots=True)
class QuietHours:
    """From a minute of the day to another, in a time zone (`Europe/Berlin`); it may be over midnight."""

    subscriber: str
    from_minute: int
    to_minute: int
    zone: str


class Preferences:
    """What subscribers have said about how they want to be told."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def quiet(self, subscriber: str) -> QuietHours | None:
        with self._database.read() as connection:
            return quiet_of(connection, [subscriber]).get(subscriber)

    def set_quiet(self, subscriber: str, wanted: QuietHours | None) -> None:
        """Keep quiet hours in the place of those there were; without any, there are none."""
        names.check("a subscriber's name", subscriber)
        row = {name: getattr(wanted, name) for name in QuietHours.__dataclass_fields__} if wanted else None

        def replace(connection: Connection) -> None:
            connection.execute(delete(quiet_hours).where(quiet_hours.c.subscriber == subscriber))
            if row is not None:
                connection.execute(insert(quiet_hours), row)

        self._database.transact(replace)


_WANTED = select(*quiet_hours.c)


def quiet_of(connection: Connection, subscribers: Collection[str]) -> dict[str, QuietHours]:
    """The quiet hours of those of these who have some."""
    rows = bulk.select_among(connection, _WANTED, quiet_hours.c.subscriber, set(subscribers))
    return {row.subscriber: QuietHours(*row) for row in rows}
