"""The databases that triggers are tried on: SQLite in memory, and a PostgreSQL server."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest
from sqlalchemy import Engine, create_engine

from tests.objects.databases import Database, Memory, Postgres
from tests.objects.engines import in_memory
from tests.objects.university import filled
from tests.support.servers.postgres import Server


@pytest.fixture(scope="session")
def postgres(postgres_server: Server) -> Iterator[Postgres]:
    with psycopg.connect(postgres_server.url(), autocommit=True) as connection:
        yield Postgres(connection)


@pytest.fixture(scope="module")
def engine_on_server(postgres_server: Server) -> Iterator[Engine]:
    """A schema of its own, whose tables go with each test."""
    engine = create_engine(postgres_server.empty().replace("postgresql://", "postgresql+psycopg://"))
    yield engine
    engine.dispose()


@pytest.fixture(params=["sqlite", "postgresql"])
def engine(request: pytest.FixtureRequest) -> Engine:
    found: Engine = in_memory() if request.param == "sqlite" else request.getfixturevalue("engine_on_server")
    return found


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest) -> Database:
    """An empty one."""
    if request.param == "sqlite":
        return Memory()
    found: Postgres = request.getfixturevalue("postgres")
    return found.emptied()


@pytest.fixture
def university(database: Database) -> Database:
    """The paper's, watched by two students; nothing has changed yet."""
    return filled(database)
