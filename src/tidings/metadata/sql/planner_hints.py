"""Planner settings for statements that are written in their order of execution.

The filter joins few rows with their partners by indexes; any other order is slow. SQLite evaluates CROSS JOINs as
written. PostgreSQL has no statistics of tables that were just filled, and guesses: it joined 2,000 new rows with
100,000 rules by nested scans. So join reordering is turned off.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import Connection, Table, text

PLANNER_SETTINGS = {
    "join_collapse_limit": "1",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
    "enable_material": "off",
    "jit": "off",  # what is switched off counts as very expensive, and what is expensive is compiled
}


@contextmanager
def keep_join_order(connection: Connection) -> Iterator[None]:
    """Prevent the planner from reordering joins. After an error, the transaction ends, and with it the setting."""
    if connection.dialect.name == "sqlite":
        yield
        return
    before = dict(zip(PLANNER_SETTINGS, connection.execute(_CURRENT).one(), strict=True))
    connection.execute(_SET, PLANNER_SETTINGS)
    yield
    connection.execute(_SET, before)


# All at once: each statement is a round trip to the server.
_CURRENT = text("SELECT " + ", ".join(f"current_setting('{name}')" for name in PLANNER_SETTINGS))
_SET = text("SELECT " + ", ".join(f"set_config('{name}', :{name}, true)" for name in PLANNER_SETTINGS))


def analyze_table(connection: Connection, table: Table) -> None:
    """Make PostgreSQL collect statistics after a bulk insert; by itself, it does so a minute later.

    Until then it chooses an index by its first column, even if all rows have the same value there.
    """
    if connection.dialect.name == "postgresql":
        connection.execute(text(f"ANALYZE {table.name}"))
