"""A server with notifications, functions that add notifications, and readers of its streams."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
from fastapi import APIRouter

from tests.support.servers.http_server import served
from tidings.api.authentication import Authenticator
from tidings.api.v1 import notifications, openapi, websocket
from tidings.api.v1.notification_fanout import NotificationFanout
from tidings.model import Publication, Reason
from tidings.service.authorization import Access
from tidings.store.database import sqlite_url
from tidings.store.encoding import MatchRow
from tidings.store.store import Store, open_store

BECAUSE = (Reason("price < 200", 180, "/price"),)


@dataclass
class Place:
    """A store, its access control, and the address at which it is served."""

    store: Store
    access: Access
    address: str = ""
    look_out: NotificationFanout | None = None
    written: int = field(default=0)

    def token(self, subscriber: str | None = None, *scopes: str) -> str:
        return self.access.make("test", scopes or ("subscribe",), subscriber).secret

    def notify(
        self, subscriber: str, count: int = 1, subscription: str = "s-1", body: bytes = b'{"price": 180}'
    ) -> None:
        """Append publications and notify one subscriber of them."""
        first = self.written
        self.written += count
        ids = [f"p-{number}" for number in range(first, self.written)]
        self.store.journal.append([Publication(id, "application/json", body) for id in ids])
        matches = [MatchRow(id, f"{subscription}-{subscriber}", subscriber, BECAUSE) for id in ids]
        self.store.notifications.commit_batch("test", first, matches)

    def notify_all(self, subscribers: list[str]) -> None:
        """Append a publication and notify many subscribers of it."""
        self.written += 1
        id = f"p-{self.written}-all"
        self.store.journal.append([Publication(id, "application/json", b'{"price": 1}')])
        matches = [MatchRow(id, f"s-{name}", name, BECAUSE) for name in subscribers]
        self.store.notifications.commit_batch("all", self.written, matches)

    @contextmanager
    def serve(self, port: int = 0, **more: Any) -> Iterator[str]:
        """Serve the store; may be called repeatedly."""
        self.look_out = NotificationFanout(self.store, interval=0.02, **more)
        router = APIRouter()
        router.include_router(notifications.router_for(self.store, self.look_out))
        router.include_router(websocket.router_for(self.store, self.look_out))
        router.include_router(openapi.router)
        with served(router, port, [self.look_out.end], Authenticator(self.access)) as self.address:
            yield self.address

    @property
    def port(self) -> int:
        return int(self.address.rpartition(":")[2])


@contextmanager
def place_at(folder: Path) -> Iterator[Place]:
    with open_store(sqlite_url(folder / "store.db")) as store:
        yield Place(store, Access(store))


def bearing(secret: str, **more: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {secret}", **more}


@contextmanager
def client_of(place: Place, secret: str) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=place.address, headers=bearing(secret), trust_env=False, timeout=60) as client:
        yield client


@dataclass
class Event:
    """A block of a stream of server-sent events."""

    id: int | None = None
    data: Any = None
    comment: str | None = None
    retry: int | None = None


def events_of(response: httpx.Response) -> Iterator[Event]:
    """Read the blocks of a stream, independently of the tested client."""
    lines: list[str] = []
    for line in response.iter_lines():
        if line:
            lines.append(line)
            continue
        event = Event()
        for each in lines:
            name, _, value = each.partition(": ")
            if name == "":
                event.comment = value
            elif name == "data":
                event.data = json.loads(value)
            else:
                setattr(event, name, int(value))
        yield event
        lines = []


def numbers(events: Iterator[Event], count: int) -> list[int]:
    """Read the sequences of the next notifications."""
    sequences: list[int] = []
    while len(sequences) < count:
        event = next(events)
        if event.data is not None:
            assert event.id == event.data["data"]["sequence"]
            sequences.append(event.data["data"]["sequence"])
    return sequences
