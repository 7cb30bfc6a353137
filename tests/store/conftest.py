"""Every test of this folder that asks for a store runs on SQLite and on a real PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from postgres import Server, find_binaries, running_server
from tidings.store import Store, open_store, sqlite_url


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[Server]:
    binaries = find_binaries()
    if binaries is None:
        pytest.skip("no PostgreSQL here: neither initdb on the PATH nor /usr/lib/postgresql/*/bin")
    with running_server(binaries) as server:
        yield server


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of a new, empty place."""
    if request.param == "sqlite":
        return sqlite_url(tmp_path / "store.db")
    server: Server = request.getfixturevalue("postgres_server")
    return server.empty()


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    with open_store(url) as opened:
        yield opened
