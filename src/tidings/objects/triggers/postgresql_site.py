"""A database of PostgreSQL that triggers are installed in. Apart, because its driver may not be there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import psycopg

from tidings.objects.triggers.dialect import Dialect, What
from tidings.objects.triggers.postgresql import Postgresql
from tidings.objects.triggers.sites import ACCEPTED, WAITS_SECONDS, Away, Found, Site, without_password
from tidings.objects.triggers.words import quoted


@contextmanager
def open_postgresql(url: str) -> Iterator[Site]:
    plain, where = f"postgresql:{url.partition(':')[2]}", without_password(url)
    try:
        with psycopg.connect(plain, autocommit=True, connect_timeout=WAITS_SECONDS) as connection:
            yield PostgresqlSite(connection)
    except psycopg.Error as error:
        raise Away(
            "the database cannot be used", where=where, received=str(error).strip(), accepted=ACCEPTED
        ) from error


_TRIGGERS = """
SELECT 'trigger', t.tgname,
    CASE WHEN pg_table_is_visible(c.oid) THEN c.relname ELSE c.relnamespace::regnamespace || '.' || c.relname END,
    CASE WHEN t.tgenabled = 'O' THEN obj_description(t.oid, 'pg_trigger') ELSE 'disabled' END
FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid
WHERE NOT t.tgisinternal AND t.tgname LIKE 'tidings\\_%'
    AND EXISTS (SELECT 1 FROM pg_proc p WHERE p.oid = t.tgfoid AND p.pronamespace = current_schema()::regnamespace)
"""
_FUNCTIONS = """
SELECT 'function', proname, NULL, prosrc FROM pg_proc
WHERE pronamespace = current_schema()::regnamespace AND proname LIKE 'tidings\\_%'
"""
_INDEXES = """
SELECT 'index', i.relname, c.relname, NULL
FROM pg_index x JOIN pg_class i ON i.oid = x.indexrelid JOIN pg_class c ON c.oid = x.indrelid
WHERE i.relnamespace = current_schema()::regnamespace AND i.relname LIKE 'tidings\\_%'
    AND NOT EXISTS (SELECT 1 FROM pg_constraint k WHERE k.conindid = i.oid)
"""


class PostgresqlSite(Site):
    """What is ours is in the schema that comes first in the search path."""

    dialect: Dialect = Postgresql()
    refusal = psycopg.errors.CheckViolation
    unfit = psycopg.DataError

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self._connection = connection

    def found(self) -> Found:
        rows = [
            row
            for query in (_TRIGGERS, _FUNCTIONS, _INDEXES)
            for row in self._connection.execute(query.encode()).fetchall()
        ]
        return {(What(what), name): (on, mark) for what, name, on, mark in rows}

    def ask(self, sql: str, *values: str) -> list[tuple[Any, ...]]:
        with psycopg.RawCursor(self._connection) as cursor:
            return cursor.execute(sql.encode(), values or None).fetchall()

    def do(self, sql: str, *values: str) -> int:
        with psycopg.RawCursor(self._connection) as cursor:
            return cursor.execute(sql.encode(), values or None).rowcount

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        with self._connection.transaction(force_rollback=True):
            self._connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            yield

    def columns(self, table: str) -> list[str]:
        query = "SELECT attname FROM pg_attribute WHERE attrelid = to_regclass(%s) AND attnum > 0 AND NOT attisdropped"
        return [str(row[0]) for row in self._connection.execute(query, (quoted(table),)).fetchall()]

    def run(self, statements: Sequence[str]) -> None:
        with self._connection.transaction():
            for statement in statements:
                self._connection.execute(statement.encode())
