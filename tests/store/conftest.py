"""Fixtures that run every store test of this folder on SQLite and on a real PostgreSQL."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.support.stores.ready_stores import ReadyStores
from tidings.store.database import sqlite_url
from tidings.store.store import Store, open_store


@pytest.fixture(scope="session", params=["sqlite", "postgresql"])
def new_url(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Callable[[], str]:
    """Return a function that gives the address of a new, empty database at each call."""
    if request.param == "sqlite":
        return lambda: sqlite_url(tmp_path_factory.mktemp("store") / "store.db")
    places: ReadyStores = request.getfixturevalue("postgres_places")
    return places.empty


@pytest.fixture(autouse=True)
def release_databases() -> Iterator[None]:
    """Release the databases when a test is over and everything that it opened is closed."""
    yield
    for places in set(ReadyStores.of.values()):
        places.take_back()


@pytest.fixture
def url(new_url: Callable[[], str]) -> str:
    """The address of a new, empty database."""
    return new_url()


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    with open_store(url) as opened:
        yield opened
