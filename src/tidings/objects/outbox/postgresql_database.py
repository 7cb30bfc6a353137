"""Connection to PostgreSQL databases with triggers; a module of its own, because its driver is an extra."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import psycopg

from tidings.objects.model.relational_view import quote_name
from tidings.objects.outbox.database import (
    CONNECT_TIMEOUT_SECONDS,
    DATABASE_URL_FORMS,
    DatabaseUnavailable,
    InstalledObjects,
    ObjectDatabase,
    redact_url,
)
from tidings.objects.triggers.dialect import Dialect, SchemaObjectKind
from tidings.objects.triggers.postgresql_dialect import PostgresqlDialect


@contextmanager
def open_postgresql(url: str) -> Iterator[ObjectDatabase]:
    plain_url, redacted_url = f"postgresql:{url.partition(':')[2]}", redact_url(url)
    try:
        with psycopg.connect(
            plain_url, autocommit=True, connect_timeout=CONNECT_TIMEOUT_SECONDS
        ) as connection:
            yield PostgresqlDatabase(connection)
    except psycopg.Error as error:
        raise DatabaseUnavailable(
            "the database cannot be used",
            where=redacted_url,
            received=str(error).strip(),
            accepted=DATABASE_URL_FORMS,
        ) from error


# Triggers of a partitioned table are inherited by its partitions, and dropped with it.
_TRIGGERS = """
SELECT 'trigger', t.tgname,
    CASE WHEN pg_table_is_visible(c.oid) THEN c.relname ELSE c.relnamespace::regnamespace || '.' || c.relname END,
    CASE WHEN t.tgenabled = 'O' THEN obj_description(t.oid, 'pg_trigger') ELSE 'disabled' END
FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid
WHERE NOT t.tgisinternal AND t.tgparentid = 0 AND t.tgname LIKE 'tidings\\_%'
    AND EXISTS (SELECT 1 FROM pg_proc p WHERE p.oid = t.tgfoid AND p.pronamespace = current_schema()::regnamespace)
"""
# A function for keys keeps the type that the column had when the function was created.
_FUNCTIONS = """
SELECT 'function', p.proname, NULL,
    CASE WHEN found IS NULL OR a.atttypid = p.prorettype THEN p.prosrc ELSE 'of another type' END
FROM pg_proc p LEFT JOIN LATERAL regexp_match(p.prosrc, 'a key of (.+): its column "(.+)"') AS found ON true
    LEFT JOIN pg_attribute a ON a.attrelid = to_regclass(found[1]) AND a.attname = replace(found[2], '""', '"')
WHERE p.pronamespace = current_schema()::regnamespace AND p.proname LIKE 'tidings\\_%'
"""
# An index is in the schema of its table. In another schema it is ours if one of our functions mentions the table: any
# schema may have tables of the same names with such indexes.
_INDEXES = """
SELECT 'index', i.relname,
    CASE WHEN pg_table_is_visible(c.oid) THEN c.relname ELSE c.relnamespace::regnamespace || '.' || c.relname END, NULL
FROM pg_index x JOIN pg_class i ON i.oid = x.indexrelid JOIN pg_class c ON c.oid = x.indrelid
WHERE i.relname LIKE 'tidings\\_%' AND (i.relnamespace = current_schema()::regnamespace
        OR i.relname LIKE 'tidings\\_%\\_by\\_%' AND EXISTS (
            SELECT 1 FROM pg_proc p JOIN pg_namespace n ON n.oid = c.relnamespace
            WHERE p.pronamespace = current_schema()::regnamespace AND p.proname LIKE 'tidings\\_%'
                AND strpos(p.prosrc, concat(
                    '"', replace(n.nspname, '"', '""'), '"."', replace(c.relname, '"', '""'), '"')) > 0))
    AND NOT EXISTS (SELECT 1 FROM pg_inherits h WHERE h.inhrelid = i.oid)
    AND NOT EXISTS (SELECT 1 FROM pg_constraint k WHERE k.conindid = i.oid)
"""
_PIN_SEARCH_PATH = """
SELECT set_config('search_path', string_agg(quote_ident(name), ', ' ORDER BY place), true)
FROM unnest(current_schemas(false)) WITH ORDINALITY AS schemas (name, place)
"""


class PostgresqlDatabase(ObjectDatabase):
    """A PostgreSQL database; our objects are in the first schema of the search path."""

    dialect: Dialect = PostgresqlDialect()
    rejection = psycopg.errors.CheckViolation
    conversion_error = psycopg.DataError

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self._connection = connection

    def installed_objects(self) -> InstalledObjects:
        rows = [
            row
            for statement in (_TRIGGERS, _FUNCTIONS, _INDEXES)
            for row in self._connection.execute(statement.encode()).fetchall()
        ]
        return {(SchemaObjectKind(kind), name): (table, mark) for kind, name, table, mark in rows}

    def query(self, sql: str, *values: str) -> list[tuple[Any, ...]]:
        with psycopg.RawCursor(self._connection) as cursor:
            return cursor.execute(sql.encode(), values or None).fetchall()

    def execute(self, sql: str, *values: str) -> int:
        with psycopg.RawCursor(self._connection) as cursor:
            return cursor.execute(sql.encode(), values or None).rowcount

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        with self._connection.transaction(force_rollback=True):
            self._connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            yield

    def columns(self, table: str) -> list[str]:
        query = "SELECT attname FROM pg_attribute WHERE attrelid = to_regclass(%s) AND attnum > 0 AND NOT attisdropped"
        return [str(row[0]) for row in self._connection.execute(query, (quote_name(table),)).fetchall()]

    def run(self, statements: Sequence[str]) -> None:
        """Execute statements with a fixed search path, which functions keep: "$user" in it depends on the user."""
        with self._connection.transaction():
            self._connection.execute(_PIN_SEARCH_PATH)
            for statement in statements:
                self._connection.execute(statement.encode())
