"""New stores without migrations: tables that the migrations created once are copied or reused.

Most tests start with a new store, and creating its fifty tables and hundred indexes takes longer than most tests. Each
copy has its own name as a provider, which stores must not share.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import ClassVar

import psycopg
from sqlalchemy import select
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError

from tests.support.servers.postgres import Server
from tidings.core.atomic_files import private_file
from tidings.metadata.sql.tables import metadata_identity
from tidings.store import names, store
from tidings.store.database import Database, open_database, sqlite_url
from tidings.store.store import open_store


@contextlib.contextmanager
def migrated_anew() -> Iterator[None]:
    """Create new stores by migrations within the block, for tests of creating stores."""
    original, store.open_database = store.open_database, open_database
    try:
        yield
    finally:
        store.open_database = original


def open_ready(url: str) -> Database:
    """Open a database as `open_database` does, and create the tables of a new store by copying."""
    with contextlib.suppress(ArgumentError):
        parsed = make_url(url)
        if parsed.get_backend_name() == "sqlite" and parsed.database not in (None, "", ":memory:"):
            place(Path(str(parsed.database)))
        elif url in ReadyStores.of:
            ReadyStores.of[url].fill(url)
    return open_database(url)


def place(path: Path) -> None:
    """Create a store in this file unless it exists. The file appears complete, also for concurrent openers."""
    if path.exists() or not path.parent.is_dir():
        return
    content, name = template()
    temporary = private_file(path.with_name(f"{path.name}.{names.new_id('t')}"))
    try:
        temporary.write_bytes(content.replace(name.encode(), _new_name().encode()))
        with contextlib.suppress(FileExistsError):
            os.link(temporary, path)
    finally:
        temporary.unlink()


@cache
def template() -> tuple[bytes, str]:
    """Return the content of the file of a new store, and the name of the store in it."""
    with TemporaryDirectory() as folder, migrated_anew():
        path = Path(folder) / "store.db"
        with open_store(sqlite_url(path)) as created, created.database.read() as connection:
            name: str = connection.execute(select(metadata_identity.c.id)).scalar_one()
        return path.read_bytes(), name


def _new_name() -> str:
    return names.new_id("m", 16)


TEMPLATE = "ready_template"
LARGE = 200_000
"""Bytes: deleted rows stay in the file of a table and slow down scans."""

FUNCTIONS = f"""
CREATE FUNCTION public.shape_of(place text) RETURNS text LANGUAGE sql AS $$
  SELECT md5(string_agg(concat_ws(' ', relname, relkind, relhastriggers, attname, atttypid, attnotnull), ','
                        ORDER BY relname, attnum))
  FROM pg_class JOIN pg_attribute ON attrelid = pg_class.oid AND attnum > 0
  WHERE relnamespace = place::regnamespace
$$;
CREATE FUNCTION public.is_small(place text) RETURNS bool LANGUAGE sql AS $$
  SELECT max(pg_relation_size(oid)) <= {LARGE} FROM pg_class WHERE relnamespace = place::regnamespace
$$;
CREATE FUNCTION public.begin_again(place text) RETURNS void LANGUAGE plpgsql
SET session_replication_role = replica -- ignore foreign keys
AS $$
DECLARE each record;
BEGIN
  FOR each IN
    SELECT relname, pg_relation_size(
      format('{TEMPLATE}.%I', relname)::regclass) > 0 AS begins_with_rows
    FROM pg_class WHERE relnamespace = place::regnamespace AND relkind = 'r' AND pg_relation_size(oid) > 0
  LOOP
    EXECUTE format('DELETE FROM %I.%I', place, each.relname);
    IF each.begins_with_rows THEN
      EXECUTE format('INSERT INTO %I.%I SELECT * FROM {TEMPLATE}.%I', place, each.relname, each.relname);
    END IF;
  END LOOP;
END $$;
"""


class ReadyStores:
    """Schemas of a server: a schema whose tables are still as the migrations created them is reused by a later test for
    a new store.
    """

    of: ClassVar[dict[str, ReadyStores]] = {}
    """The server of each address in use."""

    def __init__(self, server: Server) -> None:
        self._server, self._numbers = server, iter(range(1, 1_000_000))
        self._connection = psycopg.connect(server.url(), autocommit=True)
        self._released: list[str] = []
        self._connection.execute(f"CREATE SCHEMA {TEMPLATE}")
        with migrated_anew(), open_store(self._address(TEMPLATE)):
            self._connection.execute(FUNCTIONS)

    def close(self) -> None:
        self._connection.close()

    def empty(self) -> str:
        """Create a schema without tables and return its address."""
        name = f"place_{next(self._numbers)}"
        self._connection.execute(f"CREATE SCHEMA {name}")
        address = self._address(name)
        ReadyStores.of[address] = self
        return address

    def fill(self, address: str) -> None:
        """Create a new store in an empty schema."""
        name = self._name(address)
        if not self._released or self._has_row(
            "SELECT 1 FROM pg_class WHERE relnamespace = %s::regnamespace", name
        ):
            return
        released = self._released.pop()
        with self._connection.transaction():
            self._connection.execute(f"DROP SCHEMA {name}")
            self._connection.execute(f"ALTER SCHEMA {released} RENAME TO {name}")
            self._connection.execute("SELECT begin_again(%s)", [name])
            self._connection.execute(f"UPDATE {name}.{metadata_identity.name} SET id = %s", [_new_name()])

    def take_back(self) -> None:
        """Release the schemas without connections for reuse."""
        for address in [each for each, places in ReadyStores.of.items() if places is self]:
            name = self._name(address)
            if self._has_row("SELECT 1 FROM pg_stat_activity WHERE application_name = %s", name):
                continue
            del ReadyStores.of[address]
            if self._has_row(
                "SELECT 1 WHERE shape_of(%s) = shape_of(%s) AND is_small(%s)", name, TEMPLATE, name
            ):
                self._released.append(name)

    def _address(self, name: str) -> str:
        """Return the address of a schema; the name of its connections shows whether it is in use."""
        options = f"-csearch_path%3D{name}%20-capplication_name%3D{name}"
        return f"{self._server.url()}?options={options}"

    @staticmethod
    def _name(address: str) -> str:
        return re.findall(r"search_path%3D(\w+)", address)[0]

    def _has_row(self, question: str, *values: str) -> bool:
        return self._connection.execute(question, values).fetchone() is not None
