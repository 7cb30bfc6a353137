"""Databases of the trigger tests: statements in, rows out."""

from __future__ import annotations

import json
import sqlite3
from abc import ABC, abstractmethod
from typing import Any

import psycopg

from tidings.objects.model.table_mapping import MappedModel
from tidings.objects.outbox.database import ObjectDatabase, SqliteDatabase
from tidings.objects.outbox.postgresql_database import PostgresqlDatabase
from tidings.objects.propagation import UNLIMITED, Limits
from tidings.objects.triggers.dialect import Dialect
from tidings.objects.triggers.generator import generate_schema
from tidings.objects.triggers.postgresql_dialect import PostgresqlDialect
from tidings.objects.triggers.sqlite_dialect import SqliteDialect


class Database(ABC):
    """A database that is empty at first."""

    dialect: Dialect
    problem: type[Exception]

    @abstractmethod
    def run(self, sql: str) -> list[tuple[Any, ...]]: ...

    @abstractmethod
    def run_all(self, sql: str) -> None:
        """Run several statements, one after the other."""

    @property
    @abstractmethod
    def site(self) -> ObjectDatabase: ...

    def install(self, mapped: MappedModel, limits: Limits = UNLIMITED) -> None:
        for piece in generate_schema(mapped, self.dialect, limits):
            self.run(piece.sql)


class Memory(Database):
    """SQLite in memory."""

    dialect = SqliteDialect()
    problem = sqlite3.IntegrityError

    def __init__(self) -> None:
        self.connection = sqlite3.connect(":memory:", isolation_level=None)
        self.connection.execute("PRAGMA foreign_keys = ON")

    def run(self, sql: str) -> list[tuple[Any, ...]]:
        return self.connection.execute(sql).fetchall()

    def run_all(self, sql: str) -> None:
        self.connection.executescript(sql)

    @property
    def site(self) -> ObjectDatabase:
        return SqliteDatabase(self.connection)


class Postgres(Database):
    """A schema that is recreated for each test, over one connection."""

    dialect = PostgresqlDialect()
    problem = psycopg.errors.CheckViolation

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self.connection = connection

    def recreate_schema(self) -> Postgres:
        self.run("DROP SCHEMA IF EXISTS tried CASCADE")
        self.run("CREATE SCHEMA tried")
        self.run("SET search_path = tried")
        return self

    def run(self, sql: str) -> list[tuple[Any, ...]]:
        """Run a statement; JSON values become texts as in SQLite."""
        cursor = self.connection.execute(sql.encode())
        rows = cursor.fetchall() if cursor.description else []
        return [tuple(map(_plain, row)) for row in rows]

    def run_all(self, sql: str) -> None:
        self.connection.execute(sql.encode())

    @property
    def site(self) -> ObjectDatabase:
        return PostgresqlDatabase(self.connection)


def _plain(value: object) -> object:
    return json.dumps(value, separators=(",", ":")) if isinstance(value, dict | list) else value
