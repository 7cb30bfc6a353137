"""Stores on SQLite and PostgreSQL, and a receiver on loopback."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.delivery.receiving import Delivering, delivering
from tests.feeds.site import Site, a_site
from tests.store.conftest import new_url, url

__all__ = ["new_url", "url"]


@pytest.fixture
def site() -> Iterator[Site]:
    with a_site() as made:
        yield made


@pytest.fixture
def at(url: str) -> Iterator[Delivering]:
    """Ana has two subscriptions, Bo has one."""
    with delivering(url) as made:
        for who, id in (("ana", "s-1"), ("ana", "s-2"), ("bo", "s-3")):
            made.subscribe(who, id)
        yield made
