"""Stores on SQLite and PostgreSQL, and a receiver on loopback."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.delivery.delivering_store import Delivering, delivering
from tests.store.conftest import new_url, takes_places_back, url
from tests.support.servers.site import Site, a_site
from tidings.store.database import sqlite_url

__all__ = ["new_url", "takes_places_back", "url"]


@pytest.fixture
def site() -> Iterator[Site]:
    with a_site() as made:
        yield made


@pytest.fixture
def at(url: str) -> Iterator[Delivering]:
    """Ana has two subscriptions, Bo has one."""
    with delivering(url) as made:
        for who, id in (("ana", "s-1"), ("ana", "s-2"), ("bo", "s-3")):
            made.subscribe(who, id)
        yield made


@pytest.fixture
def sqlite(tmp_path: Path) -> str:
    """The address of a new store in a file, where any store will do."""
    return sqlite_url(tmp_path / "store.db")


@pytest.fixture
def sqlite_at(sqlite: str) -> Iterator[Delivering]:
    with delivering(sqlite) as made:
        made.subscribe("ana", "s-1")
        made.subscribe("bo", "s-3")
        yield made
