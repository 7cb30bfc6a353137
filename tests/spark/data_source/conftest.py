"""Every test of this folder that asks for a store runs on SQLite and on a real PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.stores.ready_stores import ReadyStores
from tidings.store.database import sqlite_url
from tidings.store.store import Store, open_store


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of a place for a store."""
    if request.param == "sqlite":
        return sqlite_url(tmp_path / "store.db")
    places: ReadyStores = request.getfixturevalue("postgres_places")
    return places.empty()


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    with open_store(url) as opened:
        yield opened
