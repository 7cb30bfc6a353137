"""The databases of the trigger tests: SQLite in memory, and a PostgreSQL server."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest
from sqlalchemy import Engine, create_engine

from tests.objects.databases import Database, Memory, Postgres
from tests.objects.engines import in_memory
from tests.objects.university import create_university
from tests.support.servers.postgres import Server


@pytest.fixture(scope="session")
def postgres(postgres_server: Server) -> Iterator[Postgres]:
    with psycopg.connect(postgres_server.url(), autocommit=True) as connection:
        yield Postgres(connection)


@pytest.fixture(scope="module")
def engine_on_server(postgres_server: Server) -> Iterator[Engine]:
    """A separate schema; each test removes its tables."""
    engine = create_engine(postgres_server.empty().replace("postgresql://", "postgresql+psycopg://"))
    yield engine
    engine.dispose()


@pytest.fixture(params=["sqlite", "postgresql"])
def engine(request: pytest.FixtureRequest) -> Engine:
    engine_of_kind: Engine = (
        in_memory() if request.param == "sqlite" else request.getfixturevalue("engine_on_server")
    )
    return engine_of_kind


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest) -> Database:
    """An empty database."""
    if request.param == "sqlite":
        return Memory()
    on_server: Postgres = request.getfixturevalue("postgres")
    return on_server.recreate_schema()


@pytest.fixture
def university(database: Database) -> Database:
    """The university of the paper, watched by two students, without any changes yet."""
    return create_university(database)
