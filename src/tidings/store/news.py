"""News of many subscribers at once: where each stands, and what each was told.

Whoever looks out for thousands of readers asks once for all of them, and not once for each.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any

from sqlalchemy import select, text

from tidings.model import Notification
from tidings.store import bulk
from tidings.store.database import Database
from tidings.store.notifications import READ, notification_of
from tidings.store.tables import subscribers

Numbered = tuple[str, int]
"""A subscriber, and a number of its sequence."""


class News:
    """What is new, for whom."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def last(self, names: Collection[str]) -> dict[str, int]:
        """The number of the last notification of each of these subscribers that has one."""
        with self._database.read() as connection:
            rows = bulk.select_among(connection, _LAST, subscribers.c.subscriber, names)
            return {row.subscriber: row.last_sequence for row in rows}

    def told(self, wanted: Iterable[Numbered]) -> list[Notification]:
        """The notifications with these numbers, those of a subscriber in order."""
        statement, spelled = _TOLD[self._database.engine.dialect.name]
        found: list[Notification] = []
        with self._database.read() as connection:
            for some in bulk.pieces(sorted(wanted), bulk.KEYS):
                rows = connection.execute(text(statement), spelled(some))
                found += [notification_of(*row) for row in rows]
        return sorted(found, key=lambda one: (one.subscriber, one.sequence))


_LAST = select(subscribers.c.subscriber, subscribers.c.last_sequence)
_COLUMNS = str(select(*READ).compile(compile_kwargs={"literal_binds": True})).removesuffix(
    "FROM notifications"
)


def _as_json(wanted: Sequence[Numbered]) -> dict[str, Any]:
    return {"wanted": json.dumps(wanted)}


def _as_arrays(wanted: Sequence[Numbered]) -> dict[str, Any]:
    return {"names": [name for name, _ in wanted], "numbers": [number for _, number in wanted]}


# The short list comes first, whatever the planner thinks: it is looked up row by row under the primary key.
_TOLD: dict[str, tuple[str, Callable[[Sequence[Numbered]], dict[str, Any]]]] = {
    "sqlite": (
        f"{_COLUMNS} FROM json_each(:wanted) AS w CROSS JOIN notifications"
        " ON notifications.subscriber = json_extract(w.value, '$[0]')"
        " AND notifications.sequence = json_extract(w.value, '$[1]')",
        _as_json,
    ),
    "postgresql": (
        f"{_COLUMNS} FROM unnest(CAST(:names AS text[]), CAST(:numbers AS bigint[])) AS w (name, number)"
        " JOIN notifications ON notifications.subscriber = w.name AND notifications.sequence = w.number",
        _as_arrays,
    ),
}
