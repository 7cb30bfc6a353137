"""Stores with notifications that were added without a stream."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from tidings.feeds.outbound.addresses import FeedTokens, create_feed_urls
from tidings.feeds.outbound.personal_feeds import PersonalFeeds
from tidings.model import Publication, Reason, Subscription
from tidings.store.database import sqlite_url
from tidings.store.encoding import MatchRow
from tidings.store.store import Store, open_store

KEY = bytes(range(32))
PUBLIC = "http://feeds.example.org"
BECAUSE = (Reason("price < 200", 180, "/price"),)


class Clock:
    """A clock that a test advances."""

    def __init__(self) -> None:
        self.time = datetime(2026, 5, 1, 12, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.time

    def go(self, seconds: float) -> None:
        self.time += timedelta(seconds=seconds)


class NotifiedStore:
    """A store with the subscription s-1 of cy, and functions that notify cy."""

    def __init__(self, folder: Path, public: str = PUBLIC) -> None:
        self.clock = Clock()
        self.store: Store = open_store(sqlite_url(folder / "store.db"), self.clock)
        self.store.subscriptions.add(Subscription("s-1", "cy", "predicates", "price < 200"))
        self.batches = 0
        self.see_at(public)

    def see_at(self, public: str) -> PersonalFeeds:
        self.feeds = PersonalFeeds(self.store, FeedTokens(self.store, KEY), create_feed_urls(public))
        return self.feeds

    @property
    def token(self) -> str:
        found = self.feeds.addresses.token("cy", "s-1")
        assert found
        return found

    def notify(self, *matches: MatchRow) -> None:
        """Commit matches as a batch."""
        self.store.notifications.commit_batch("test", self.batches, matches)
        self.batches += 1

    def notify_of_events(self, first: int, last: int) -> list[str]:
        """Notify cy of events with these numbers, and return the titles of their entries, newest first."""
        numbers = range(first, last + 1)
        self.publish(*({"title": f"event {n}", "price": n} for n in numbers), ids=[f"p-{n}" for n in numbers])
        self.notify(*(MatchRow(f"p-{n}", "s-1", "cy", BECAUSE) for n in numbers))
        return [f"event {n}" for n in reversed(numbers)]

    def publish(self, *events: dict[str, Any], ids: Sequence[str]) -> None:
        self.put(
            *(
                Publication(id, "application/json", _json(event))
                for id, event in zip(ids, events, strict=True)
            )
        )

    def put(self, *publications: Publication) -> None:
        self.store.journal.append(publications)


def _json(event: dict[str, Any]) -> bytes:
    return json.dumps(event).encode()
