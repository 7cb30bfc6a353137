"""Of which version a store is, without changing it."""

from __future__ import annotations

from dataclasses import dataclass

from tidings.store.database import open_database
from tidings.store.migrations import NEWEST, found_version


@dataclass(frozen=True, slots=True)
class Version:
    """A store by its address without a password, its version (0: it has no tables yet), and the one that this Tidings
    works with.
    """

    name: str
    store: int
    works_with: int = NEWEST


def store_version(url: str) -> Version:
    database = open_database(url)
    try:
        return Version(database.name, found_version(database))
    finally:
        database.close()
