"""Webhooks: deliveries per second to a receiver on this machine, signed and in order, on SQLite and PostgreSQL.

The receiver is a separate process that reads requests and responds 204, over persistent connections. CPU seconds are
those of the delivering process and of the database server. The limit is a plain loop that signs and posts the same
notifications from memory, without storing any state.
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
from tidings.delivery.delivery_policy import DeliveryPolicy
from tidings.delivery.destinations import Destinations, create_senders
from tidings.delivery.dispatcher import DeliveryEvent, Dispatcher
from tidings.delivery.worker import DeliveryWorker
from tidings.model import Publication, Reason, Subscription
from tidings.store.encoding import MatchRow
from tidings.store.store import Store

NAME = "service, webhooks"
AT_ONCE = 32
"""Connections to the receiver."""
BECAUSE = (Reason("price < 200", 180, "/price"),)


class Receiver(asyncio.Protocol):
    """Responds 204 to every request."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport, self._received = transport, b""

    def data_received(self, data: bytes) -> None:
        self._received += data
        while (end := self._received.find(b"\r\n\r\n")) >= 0:
            head = self._received[:end].lower()
            length = int(head.partition(b"content-length:")[2].split(b"\r\n")[0])
            if len(self._received) < end + 4 + length:
                return
            self._received = self._received[end + 4 + length :]
            self._transport.write(b"HTTP/1.1 204 No Content\r\n\r\n")


def receive(pipe: Connection) -> None:
    """Serve until the process is terminated; send the port through the pipe."""

    async def serve() -> None:
        server = await asyncio.get_running_loop().create_server(Receiver, "127.0.0.1", 0)
        pipe.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(serve())


def fill(store: Store, policy: DeliveryPolicy, url: str, round: int, subscribers: int, each: int) -> None:
    names = [f"p-{round}-{number}" for number in range(each)]
    body = json.dumps({"event_type": "furniture", "price": 180, "period": "XVI"}).encode()
    store.journal.append([Publication(name, "application/json", body) for name in names])
    destinations = Destinations(store, create_senders(policy), policy)
    owners = [f"u-{round}-{number}" for number in range(subscribers)]
    store.subscriptions.add_many(
        [Subscription(f"s-{owner}", owner, "predicates", "price < 200") for owner in owners]
    )
    for owner in owners:
        destinations.add(owner, "webhook", url)
    destinations.close()
    matches = [MatchRow(name, f"s-{owner}", owner, BECAUSE) for name in names for owner in owners]
    store.notifications.commit_batch("bench", round, matches)


def deliver(store: Store, policy: DeliveryPolicy, count: int) -> None:
    """Run the worker until `count` notifications have been delivered."""
    done, left = Event(), [count]

    def on_event(event: DeliveryEvent) -> None:
        assert event.problem is None, event.problem
        left[0] -= event.count
        if left[0] <= 0:
            done.set()

    with DeliveryWorker(Dispatcher(store, create_senders(policy), policy), on_event):
        done.wait()


def run(bench: Bench, scale: Scale) -> None:
    with running_receiver() as url, ExitStack() as opened:
        for place in places(bench, NAME, scale.webhooks_server, opened):
            with place.empty() as store:
                for round, (subscribers, each) in enumerate(scale.webhooks, start=1):
                    bench.keep(measure_delivery(place, store, url, round, subscribers, each))
        for subscribers, each in scale.webhooks:
            bench.keep(measure_limit(url, subscribers, each))


def measure_delivery(place: Place, store: Store, url: str, round: int, subscribers: int, each: int) -> Row:
    policy, count = DeliveryPolicy(inside=True, per_host=AT_ONCE), subscribers * each
    fill(store, policy, url, round, subscribers, each)
    spent, _ = place.measure(lambda: deliver(store, policy, count))
    return _row(subscribers, each, place.name, spent.cpu, spent.wall)


def measure_limit(url: str, subscribers: int, each: int) -> Row:
    """Measure the plain loop."""
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
    """Post for each subscriber in order, over as many connections as delivery uses for one host."""
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
def running_receiver() -> Iterator[str]:
    """Run a receiver until the end of the `with`; yield its address."""
    ours, theirs = multiprocessing.Pipe()
    receiver = multiprocessing.get_context("spawn").Process(target=receive, args=(theirs,), daemon=True)
    receiver.start()
    try:
        yield f"http://127.0.0.1:{ours.recv()}/"
    finally:
        receiver.terminate()
        receiver.join()
