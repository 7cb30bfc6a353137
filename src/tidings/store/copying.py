"""A copy of a store in a file, as of one moment, while others write to it; and what stands in such a copy."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from tidings.errors import StoreError

COUNTED = {
    "publications": "SELECT value FROM counters WHERE name = 'journal'",
    "notifications": "SELECT sum(last_sequence) FROM subscribers",
    "matched": "SELECT value FROM counters WHERE name = 'matched'",
}
"""What is told of a copy. A store of an earlier version does not know how far everything is matched."""


def copy_sqlite(path: Path, copy: Path) -> dict[str, int]:
    """Have SQLite copy a store in one step: nobody who writes has to wait for it. Gives what stands in the copy."""
    try:
        with closing(sqlite3.connect(path)) as source, closing(sqlite3.connect(copy)) as target:
            source.backup(target)
            target.execute("PRAGMA journal_mode = DELETE")  # one file, without a log beside it
            return {name: _count(target, asked) for name, asked in COUNTED.items()}
    except sqlite3.Error as error:
        raise StoreError(f"the store cannot be copied: {error}", where=str(path)) from error


def _count(database: sqlite3.Connection, asked: str) -> int:
    found = database.execute(asked).fetchone()
    return int(found[0] or 0) if found else 0
