"""python -m benchmarks.webhooks [URL]: how many webhooks a second reach a receiver on this machine.

The receiver is a process of its own that reads a request and answers 204, over connections that are kept. Without an
address the store is a SQLite file in a temporary folder; one that is named must be empty. CPU seconds are those of the
process that delivers.
"""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import sys
import tempfile
import time
from multiprocessing.connection import Connection
from pathlib import Path
from threading import Event

from tidings.delivery import Courier, DeliveryLoop, Destinations, Happened, Rules
from tidings.delivery.kinds import senders
from tidings.model import Publication, Reason, Subscription
from tidings.store import Found, Store, open_store, sqlite_url

SHAPES = ((32, 500), (200, 50), (1, 5_000), (2_000, 1))
"""How many subscribers, each with a destination, and how many notifications each has waiting."""
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


def deliver(store: Store, rules: Rules, count: int) -> tuple[float, float]:
    """Wall and CPU seconds until so many were delivered."""
    done, left = Event(), [count]

    def heard(happened: Happened) -> None:
        assert happened.problem is None, happened.problem
        left[0] -= happened.count
        if left[0] <= 0:
            done.set()

    wall, cpu = time.perf_counter(), time.process_time()
    with DeliveryLoop(Courier(store, senders(rules), rules), heard):
        done.wait()
        return time.perf_counter() - wall, time.process_time() - cpu


def run(store: Store, port: int) -> None:
    rules = Rules(inside=True, per_place=32)
    for round, (subscribers, each) in enumerate(SHAPES, start=1):
        fill(store, rules, f"http://127.0.0.1:{port}/", round, subscribers, each)
        count = subscribers * each
        wall, cpu = deliver(store, rules, count)
        what = f"{subscribers:,} destinations, {each:,} notifications each"
        print(f"{what:<46}{count / wall:>12,.0f}/s {count / cpu:>12,.0f} per CPU second")


def main() -> None:
    ours, theirs = multiprocessing.Pipe()
    receiver = multiprocessing.get_context("spawn").Process(target=receive, args=(theirs,), daemon=True)
    receiver.start()
    with tempfile.TemporaryDirectory() as folder:
        url = sys.argv[1] if len(sys.argv) > 1 else sqlite_url(Path(folder) / "store.db")
        with open_store(url) as store:
            print(store.database.name)
            run(store, ours.recv())
    receiver.terminate()


if __name__ == "__main__":
    main()
