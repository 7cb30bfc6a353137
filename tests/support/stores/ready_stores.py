"""New stores without the wait: tables that the migrations made once are copied or used again, not made for every test.

A store of its own is what most tests begin with, and to make its fifty tables and hundred indexes is more work than
most tests are. What stores must not share, their name as a provider, is a new one in each.
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
    """Within it new stores are made as ever, for tests that look at how."""
    before, store.open_database = store.open_database, open_database
    try:
        yield
    finally:
        store.open_database = before


def open_ready(url: str) -> Database:
    """What `open_database` gives, with tables in it if there was nothing at this address."""
    with contextlib.suppress(ArgumentError):
        parsed = make_url(url)
        if parsed.get_backend_name() == "sqlite" and parsed.database not in (None, "", ":memory:"):
            place(Path(str(parsed.database)))
        elif url in Places.of:
            Places.of[url].fill(url)
    return open_database(url)


def place(path: Path) -> None:
    """A store in this file, unless there is one. It is there whole at once, whoever else may be opening it."""
    if path.exists() or not path.parent.is_dir():
        return
    content, name = template()
    beside = private_file(path.with_name(f"{path.name}.{names.new_id('t')}"))
    try:
        beside.write_bytes(content.replace(name.encode(), _new_name().encode()))
        with contextlib.suppress(FileExistsError):
            os.link(beside, path)
    finally:
        beside.unlink()


@cache
def template() -> tuple[bytes, str]:
    """What a new store's file holds, and the store's name in it."""
    with TemporaryDirectory() as folder, migrated_anew():
        path = Path(folder) / "store.db"
        with open_store(sqlite_url(path)) as made, made.database.read() as connection:
            name: str = connection.execute(select(metadata_identity.c.id)).scalar_one()
        return path.read_bytes(), name


def _new_name() -> str:
    return names.new_id("m", 16)


TEMPLATE = "ready_template"
LARGE = 200_000
"""Bytes; rows that are deleted stay in a table's file, and who looks for others has to pass them."""

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
SET session_replication_role = replica -- whatever refers to whatever
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


class Places:
    """Schemas of a server: after a test one that is still as the migrations made it, but for its rows, becomes the
    next one that a test wants a new store in.
    """

    of: ClassVar[dict[str, Places]] = {}
    """Of which server an address is that somebody has."""

    def __init__(self, server: Server) -> None:
        self._server, self._numbers = server, iter(range(1, 1_000_000))
        self._connection = psycopg.connect(server.url(), autocommit=True)
        self._left: list[str] = []
        self._connection.execute(f"CREATE SCHEMA {TEMPLATE}")
        with migrated_anew(), open_store(self._address(TEMPLATE)):
            self._connection.execute(FUNCTIONS)

    def close(self) -> None:
        self._connection.close()

    def empty(self) -> str:
        """The address of a new place without tables."""
        name = f"place_{next(self._numbers)}"
        self._connection.execute(f"CREATE SCHEMA {name}")
        address = self._address(name)
        Places.of[address] = self
        return address

    def fill(self, address: str) -> None:
        """If nothing is there, a store that is new."""
        name = self._name(address)
        if not self._left or self._one("SELECT 1 FROM pg_class WHERE relnamespace = %s::regnamespace", name):
            return
        left = self._left.pop()
        with self._connection.transaction():
            self._connection.execute(f"DROP SCHEMA {name}")
            self._connection.execute(f"ALTER SCHEMA {left} RENAME TO {name}")
            self._connection.execute("SELECT begin_again(%s)", [name])
            self._connection.execute(f"UPDATE {name}.{metadata_identity.name} SET id = %s", [_new_name()])

    def take_back(self) -> None:
        """What nobody is connected to any more."""
        for address in [each for each, places in Places.of.items() if places is self]:
            name = self._name(address)
            if self._one("SELECT 1 FROM pg_stat_activity WHERE application_name = %s", name):
                continue
            del Places.of[address]
            if self._one("SELECT 1 WHERE shape_of(%s) = shape_of(%s) AND is_small(%s)", name, TEMPLATE, name):
                self._left.append(name)

    def _address(self, name: str) -> str:
        """Its connections are of its name, so that one sees whether there are any."""
        options = f"-csearch_path%3D{name}%20-capplication_name%3D{name}"
        return f"{self._server.url()}?options={options}"

    @staticmethod
    def _name(address: str) -> str:
        return re.findall(r"search_path%3D(\w+)", address)[0]

    def _one(self, question: str, *values: str) -> bool:
        return self._connection.execute(question, values).fetchone() is not None
