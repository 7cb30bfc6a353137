"""Statements that are written in the order in which they are to be run.

The filter goes from few rows to their partners by indexes, and only that way is short. SQLite takes a CROSS JOIN as it
is written. PostgreSQL knows nothing of tables that were filled a moment ago, and guesses: it joined 2,000 new rows with
100,000 rules by reading all of those again and again. So it is told not to.
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
    """Keep the planner from reordering. After an error there is nothing to set back: the transaction ends."""
    if connection.dialect.name == "sqlite":
        yield
        return
    before = dict(zip(PLANNER_SETTINGS, connection.execute(_CURRENT).one(), strict=True))
    connection.execute(_SET, PLANNER_SETTINGS)
    yield
    connection.execute(_SET, before)


# All of them at once: each statement is a way to the server and back.
_CURRENT = text("SELECT " + ", ".join(f"current_setting('{name}')" for name in PLANNER_SETTINGS))
_SET = text("SELECT " + ", ".join(f"set_config('{name}', :{name}, true)" for name in PLANNER_SETTINGS))


def analyze_table(connection: Connection, table: Table) -> None:
    """Let PostgreSQL count what a table has, after much has come at once; by itself it does so a minute later.

    Until then it takes an index by its first column, though all rows may have the same there.
    """
    if connection.dialect.name == "postgresql":
        connection.execute(text(f"ANALYZE {table.name}"))
