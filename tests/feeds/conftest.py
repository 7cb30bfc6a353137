"""A local site, a store, and a clock that moves only when a test moves it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random

import pytest

from tests.feeds.hub.callbacks import RULES, HubLoop
from tests.support.servers.site import Site, a_site
from tests.support.stores.notified_store import NotifiedStore
from tidings.feeds.hub.hub import Hub
from tidings.feeds.inbound.poller import Poller
from tidings.store.database import sqlite_url
from tidings.store.store import Store, open_store


class Clock:
    """A clock that stays at noon until a test moves it."""

    def __init__(self) -> None:
        self.now = datetime(2026, 5, 1, 12, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now

    def move(self, **by: float) -> None:
        self.now += timedelta(**by)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def site() -> Iterator[Site]:
    with a_site() as opened:
        yield opened


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(sqlite_url(tmp_path / "store.db")) as opened:
        yield opened


@pytest.fixture
def poller(store: Store, clock: Clock) -> Iterator[Poller]:
    with Poller(store, clock=clock, chance=Random(7)) as opened:
        yield opened


@pytest.fixture
def notified_store(tmp_path: Path) -> Iterator[NotifiedStore]:
    opened = NotifiedStore(tmp_path)
    yield opened
    opened.store.close()


@pytest.fixture
def loop(notified_store: NotifiedStore) -> Iterator[HubLoop]:
    opened = HubLoop(Hub(notified_store.feeds, RULES))
    yield opened
    opened.close()
