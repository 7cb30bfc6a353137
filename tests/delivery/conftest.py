"""Stores on SQLite and PostgreSQL, and a receiver on loopback."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.delivery.delivery_setup import DeliverySetup, open_delivery
from tests.store.conftest import new_url, release_databases, url
from tests.support.servers.site import Site, a_site
from tidings.store.database import sqlite_url

__all__ = ["new_url", "release_databases", "url"]


@pytest.fixture
def site() -> Iterator[Site]:
    with a_site() as opened:
        yield opened


@pytest.fixture
def delivery(url: str) -> Iterator[DeliverySetup]:
    """A setup with two subscriptions of ana and one of bo."""
    with open_delivery(url) as opened:
        for subscriber, id in (("ana", "s-1"), ("ana", "s-2"), ("bo", "s-3")):
            opened.subscribe(subscriber, id)
        yield opened


@pytest.fixture
def sqlite(tmp_path: Path) -> str:
    """The address of a new store in a file, where any store will do."""
    return sqlite_url(tmp_path / "store.db")


@pytest.fixture
def sqlite_delivery(sqlite: str) -> Iterator[DeliverySetup]:
    with open_delivery(sqlite) as opened:
        opened.subscribe("ana", "s-1")
        opened.subscribe("bo", "s-3")
        yield opened
