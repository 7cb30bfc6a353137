"""Webhooks: how many a second reach a receiver on this machine, signed, in order, on SQLite and PostgreSQL.

The receiver is a process of its own that reads a request and answers 204, over connections that are kept. CPU seconds
are those of the process that delivers, and of the server of the database. The limit is a plain loop that signs and
posts the same notifications out of memory, and remembers nothing.
"""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from multiprocessing.connection import Connection
from threading import Event
from urllib.parse import urlsplit

from standardwebhooks import Webhook

from benchmarks.harness import Bench
from benchmarks.metadata_places import Place, places
from benchmarks.rows import Role, Row
from benchmarks.scale import Scale
from tidings.delivery.destinations import Destinations, create_senders
from tidings.delivery.dispatcher import DeliveryEvent, Dispatcher
from tidings.delivery.retry_policy import DeliveryPolicy
from tidings.delivery.worker import DeliveryWorker
from tidings.model import Publication, Reason, Subscription
from tidings.store.encoding import MatchRow
from tidings.store.store import Store

NAME = "service, webhooks"
AT_ONCE = 32
"""Connections to the receiver."""
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


def fill(store: Store, rules: DeliveryPolicy, url: str, round: int, subscribers: int, each: int) -> None:
    names = [f"p-{round}-{number}" for number in range(each)]
    body = json.dumps({"event_type": "furniture", "price": 180, "period": "XVI"}).encode()
    store.journal.append([Publication(name, "application/json", body) for name in names])
    destinations = Destinations(store, create_senders(rules), rules)
    owners = [f"u-{round}-{number}" for number in range(subscribers)]
    store.subscriptions.add_many(
        [Subscription(f"s-{who}", who, "predicates", "price < 200") for who in owners]
    )
    for who in owners:
        destinations.add(who, "webhook", url)
    destinations.close()
    found = [MatchRow(name, f"s-{who}", who, BECAUSE) for name in names for who in owners]
    store.notifications.commit_batch("bench", round, found)


def deliver(store: Store, rules: DeliveryPolicy, count: int) -> None:
    """Until so many were delivered."""
    done, left = Event(), [count]

    def heard(happened: DeliveryEvent) -> None:
        assert happened.problem is None, happened.problem
        left[0] -= happened.count
        if left[0] <= 0:
            done.set()

    with DeliveryWorker(Dispatcher(store, create_senders(rules), rules), heard):
        done.wait()


def run(bench: Bench, scale: Scale) -> None:
    with receiving() as url, ExitStack() as opened:
        for place in places(bench, NAME, scale.webhooks_server, opened):
            with place.empty() as store:
                for round, (subscribers, each) in enumerate(scale.webhooks, start=1):
                    bench.keep(measured(place, store, url, round, subscribers, each))
        for subscribers, each in scale.webhooks:
            bench.keep(posted(url, subscribers, each))


def measured(place: Place, store: Store, url: str, round: int, subscribers: int, each: int) -> Row:
    rules, count = DeliveryPolicy(inside=True, per_host=AT_ONCE), subscribers * each
    fill(store, rules, url, round, subscribers, each)
    spent, _ = place.spent(lambda: deliver(store, rules, count))
    return _row(subscribers, each, place.name, spent.cpu, spent.wall)


def posted(url: str, subscribers: int, each: int) -> Row:
    """The same by the plain loop."""
    cpu, wall = time.process_time(), time.perf_counter()
    asyncio.run(post_all(url, subscribers, each))
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    return _row(subscribers, each, "a plain loop", cpu, wall, "limit")


def _row(subscribers: int, each: int, engine: str, cpu: float, wall: float, role: Role = "ours") -> Row:
    count = subscribers * each
    return Row(
        f"{NAME}, {subscribers:,} with {each:,} each",
        subscribers,
        engine,
        events_per_cpu_second=count / cpu,
        build_seconds=None,
        bytes_per_subscription=None,
        matches_per_event=1.0,
        seconds_per_event=cpu / count,
        events_per_second=count / wall,
        role=role,
    )


async def post_all(url: str, subscribers: int, each: int) -> None:
    """Subscribers in turn over as many connections as delivery has for one place; each gets one after another."""
    host, secret = urlsplit(url), Webhook("whsec_" + "bGltaXQ=" * 4)
    waiting = iter(range(subscribers))

    async def work() -> None:
        reader, writer = await asyncio.open_connection(host.hostname, host.port)
        for subscriber in waiting:
            for number in range(each):
                writer.write(_request(secret, f"n-{subscriber}-{number}", subscriber, number))
                assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 204")
        writer.close()

    await asyncio.gather(*(work() for _ in range(min(AT_ONCE, subscribers))))


def _request(secret: Webhook, id: str, subscriber: int, number: int) -> bytes:
    at, event = datetime.now(UTC), {"event_type": "furniture", "price": 180, "period": "XVI"}
    reasons = [{"predicate": each.predicate, "value": each.value, "at": each.at} for each in BECAUSE]
    data = {"subscriber": f"u-{subscriber}", "sequence": number, "because": reasons, "publication": event}
    body = json.dumps({"specversion": "1.0", "id": id, "type": "tidings.notification", "data": data})
    head = (
        f"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\nwebhook-id: {id}\r\nwebhook-timestamp: {int(at.timestamp())}\r\n"
        f"webhook-signature: {secret.sign(id, at, body)}\r\n\r\n"
    )
    return (head + body).encode()


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
