"""A database by its address: that of SQLite or of PostgreSQL, whose driver is an extra."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import PurePosixPath
from urllib.parse import parse_qs, unquote, urlsplit

from tidings.errors import InputError
from tidings.objects.triggers.sites import ACCEPTED, Site, open_sqlite, without_password

SCHEMES = {"sqlite": "sqlite", "postgresql": "postgresql", "postgres": "postgresql"}
"""What an address begins with, and which database it is then."""

EXTRA = "pip install 'tidings[postgresql]'"


def dialect_of(url: str) -> str:
    """Which database is at an address; any other is refused."""
    there = SCHEMES.get(urlsplit(url).scheme.partition("+")[0])
    if there is None:
        shown = without_password(url)
        raise InputError("no database can be at this address", received=shown, accepted=ACCEPTED)
    return there


def open_site(url: str) -> AbstractContextManager[Site]:
    """The database, until the end of a `with`."""
    if dialect_of(url) == "sqlite":
        return open_sqlite(url)
    try:
        from tidings.objects.triggers.postgresql_site import (  # noqa: PLC0415 - its driver is an extra
            open_postgresql,
        )
    except ModuleNotFoundError as error:
        raise InputError("the driver for PostgreSQL is not installed", hint=EXTRA) from error
    return open_postgresql(url)


def name_of(url: str) -> str:
    """What people call the database at an address: the name without its folder and its ending."""
    return PurePosixPath(unquote(urlsplit(url).path)).stem


def has_password(url: str) -> bool:
    """Whether somebody who reads the address could log in."""
    parts = urlsplit(url)
    return parts.password is not None or "password" in parse_qs(parts.query)
