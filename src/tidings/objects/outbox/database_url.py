"""A database by its address: that of SQLite or of PostgreSQL, whose driver is an extra."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import PurePosixPath
from urllib.parse import parse_qs, unquote, urlsplit

from tidings.errors import InputError
from tidings.objects.outbox.database import DATABASE_URL_FORMS, ObjectDatabase, open_sqlite, redact_url

SCHEMES = {"sqlite": "sqlite", "postgresql": "postgresql", "postgres": "postgresql"}
"""What an address begins with, and which database it is then."""

POSTGRESQL_EXTRA = "pip install 'tidings[postgresql]'"


def detect_dialect(url: str) -> str:
    """Which database is at an address; any other is refused."""
    there = SCHEMES.get(urlsplit(url).scheme.partition("+")[0])
    if there is None:
        shown = redact_url(url)
        raise InputError("no database can be at this address", received=shown, accepted=DATABASE_URL_FORMS)
    return there


def open_database(url: str) -> AbstractContextManager[ObjectDatabase]:
    """The database, until the end of a `with`."""
    if detect_dialect(url) == "sqlite":
        return open_sqlite(url)
    try:
        from tidings.objects.outbox.postgresql_database import (  # noqa: PLC0415 - its driver is an extra
            open_postgresql,
        )
    except ModuleNotFoundError as error:
        raise InputError("the driver for PostgreSQL is not installed", hint=POSTGRESQL_EXTRA) from error
    return open_postgresql(url)


def get_database_name(url: str) -> str:
    """What people call the database at an address: the name without its folder and its ending."""
    return PurePosixPath(unquote(urlsplit(url).path)).stem


def has_password(url: str) -> bool:
    """Whether somebody who reads the address could log in."""
    parts = urlsplit(url)
    return parts.password is not None or "password" in parse_qs(parts.query)
