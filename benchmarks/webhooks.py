"""Webhooks: how many a second reach a receiver on this machine, signed, in order, on SQLite and PostgreSQL.

The receiver is a process of its own that reads a request and answers 204, over connections that are kept. CPU seconds
are those of the process that delivers, and of the server of the database.
"""

from __future__ import annotations

import asyncio
import json
import multiprocessing
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from multiprocessing.connection import Connection
from threading import Event

from benchmarks.harness import Bench
from benchmarks.metadata_places import Place, places
from benchmarks.rows import Row
from benchmarks.scale import Scale
from tidings.delivery import Courier, DeliveryLoop, Destinations, Happened, Rules
from tidings.delivery.kinds import senders
from tidings.model import Publication, Reason, Subscription
from tidings.store import Found, Store

NAME = "service, webhooks"
BECAUSE = (Reason("price < 200", 180, "/price"),)


class Receiver(asyncio.Protocol):
    """Takes whatever is posted."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport, self._given = transport, b""

    def data_received(self, data: bytes) -> None:
        self._given += data
        while (end := self._given.find(b"\r\n\r\n")) >= 0:
            head = self._given[:end].lower()
            length = int(head.partition(b"content-length:")[2].split(b"\r\n")[0])
            if len(self._given) < end + 4 + length:
                return
            self._given = self._given[end + 4 + length :]
            self._transport.write(b"HTTP/1.1 204 No Content\r\n\r\n")


def receive(pipe: Connection) -> None:
    """Serve until the process is ended; the port goes through the pipe."""

    async def serve() -> None:
        server = await asyncio.get_running_loop().create_server(Receiver, "127.0.0.1", 0)
        pipe.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(serve())


def fill(store: Store, rules: Rules, url: str, round: int, subscribers: int, each: int) -> None:
    names = [f"p-{round}-{number}" for number in range(each)]
    body = json.dumps({"event_type": "furniture", "price": 180, "period": "XVI"}).encode()
    store.journal.append([Publication(name, "application/json", body) for name in names])
    destinations = Destinations(store, senders(rules), rules)
    owners = [f"u-{round}-{number}" for number in range(subscribers)]
    store.subscriptions.add_many(
        [Subscription(f"s-{who}", who, "predicates", "price < 200") for who in owners]
    )
    for who in owners:
        destinations.add(who, "webhook", url)
    destinations.close()
    found = [Found(name, f"s-{who}", who, BECAUSE) for name in names for who in owners]
    store.notifications.commit_batch("bench", round, found)


def deliver(store: Store, rules: Rules, count: int) -> None:
    """Until so many were delivered."""
    done, left = Event(), [count]

    def heard(happened: Happened) -> None:
        assert happened.problem is None, happened.problem
        left[0] -= happened.count
        if left[0] <= 0:
            done.set()

    with DeliveryLoop(Courier(store, senders(rules), rules), heard):
        done.wait()


def run(bench: Bench, scale: Scale) -> None:
    with receiving() as url, ExitStack() as opened:
        for place in places(bench, NAME, scale.webhooks_server, opened):
            with place.empty() as store:
                for round, (subscribers, each) in enumerate(scale.webhooks, start=1):
                    bench.keep(measured(place, store, url, round, subscribers, each))


def measured(place: Place, store: Store, url: str, round: int, subscribers: int, each: int) -> Row:
    rules, count = Rules(inside=True, per_place=32), subscribers * each
    fill(store, rules, url, round, subscribers, each)
    spent, _ = place.spent(lambda: deliver(store, rules, count))
    return Row(
        f"{NAME}, {subscribers:,} with {each:,} each",
        subscribers,
        place.name,
        events_per_cpu_second=count / spent.cpu,
        build_seconds=None,
        bytes_per_subscription=None,
        matches_per_event=1.0,
        seconds_per_event=spent.cpu / count,
        events_per_second=count / spent.wall,
    )


@contextmanager
def receiving() -> Iterator[str]:
    """The address of a receiver, until the end of the `with`."""
    ours, theirs = multiprocessing.Pipe()
    receiver = multiprocessing.get_context("spawn").Process(target=receive, args=(theirs,), daemon=True)
    receiver.start()
    try:
        yield f"http://127.0.0.1:{ours.recv()}/"
    finally:
        receiver.terminate()
        receiver.join()
