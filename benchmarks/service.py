"""The complete service: `tidings serve` in a separate process, with its stream, as users start it.

    publish to receipt    from the time an event is due to be sent until it arrives in a stream of server-sent events
    ingest                events per second that become durable, with and without the stream
    streams               thousands of clients with open streams that receive events

All times are wall-clock, with clients and server on the same cores. The limit is a server without matching: what HTTP
and the disk allow.
"""

from __future__ import annotations

import asyncio
import os
import resource
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Coroutine, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import httpx
import numpy as np

from benchmarks.harness import Bench
from benchmarks.processes import TICKS, ticks
from benchmarks.rows import Role, Row
from benchmarks.scale import Scale
from benchmarks.service_clients import Receipts, Server, event, listen, publish_at
from tidings.model import Subscription
from tidings.service.authorization import Access
from tidings.service.tidings import Tidings

T = TypeVar("T")

NAME = "service"
PUBLISH_TO_RECEIPT = f"{NAME}, publish to receipt"
LISTENER = "listener"
STREAM = f"/v1/notifications/stream?subscriber={LISTENER}"
BULK = 1_000
"""Events per bulk request."""
SYMBOLS = 50_000
OWNERS = 1_000
UNLIMITED = "rate=1000000000 burst=1000000"
"""One token sends everything here, so rate limits per caller must not apply."""
TIMEOUT = 300.0
"""Seconds to wait before a measurement fails."""


def run(bench: Bench, scale: Scale) -> None:
    with serving(scale.service_subscriptions) as running:
        bench.say(f"{NAME}: ready with {scale.service_subscriptions:,} subscriptions")
        measure(bench, running, scale)
    with serving(scale.service_subscriptions, only="api") as alone:
        bench.keep(ingest(alone, scale, 1))
    with limit_server(scale.service_subscriptions) as limit:
        measure(bench, limit, scale)


def measure(bench: Bench, running: Running, scale: Scale) -> None:
    _warm_up(running)
    for rate in scale.service_rates:
        bench.keep(publish_to_receipt(running, scale, rate))
    for per_request in (1, BULK):
        bench.keep(ingest(running, scale, per_request))
    bench.keep(held_streams(running, scale))


@dataclass
class Running:
    """A running service."""

    server: Server
    pid: int
    home: Path | None
    """None if only publications are stored."""
    subscriptions: int
    engine: str = "tidings serve"
    role: Role = "ours"
    published: int = 0

    def cpu(self) -> float:
        """Return the CPU seconds of the server, Spark and its workers so far."""
        return sum(ticks(self.pid).values()) / TICKS

    def numbered(self, first: int) -> Any:
        return lambda number: event(first + number)


@contextmanager
def serving(subscriptions: int, only: str | None = None) -> Iterator[Running]:
    """Run `tidings serve` in an empty folder with some subscriptions; all of it, or one part only."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "home"
        with Tidings(home) as tidings:
            token = Access(tidings.store).make("benchmark", ["administer"]).secret
            add_subscriptions(tidings, subscriptions)
        part = ["--only", only] if only else []
        port = str(find_free_port())
        server = Server(f"http://127.0.0.1:{port}", token)
        with started(server, "tidings", "serve", "--port", port, "--home", str(home), *part) as process:
            yield Running(server, process.pid, home, subscriptions, " ".join(["tidings serve", *part]))


@contextmanager
def limit_server(subscriptions: int) -> Iterator[Running]:
    """Run the limit server. The number of subscriptions is that of the rows it is compared with."""
    with tempfile.TemporaryDirectory() as folder:
        port = str(find_free_port())
        server = Server(f"http://127.0.0.1:{port}", "")
        with started(server, "benchmarks.service_limit", port, f"{folder}/journal.db") as process:
            yield Running(server, process.pid, None, subscriptions, "HTTP and SQLite alone", "limit")


@contextmanager
def started(server: Server, module: str, *words: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run a module in a process, from when it is ready until the end of the `with`."""
    environment = os.environ | {"TIDINGS_API_LIMITS": UNLIMITED}
    with tempfile.NamedTemporaryFile() as log:
        command = [sys.executable, "-m", module, *words]
        process = subprocess.Popen(command, stdout=log, stderr=log, env=environment)
        try:
            _until_ready(server, process, log.name)
            yield process
        finally:
            process.terminate()
            process.wait()


def add_subscriptions(tidings: Tidings, count: int) -> None:
    tidings.store.subscriptions.add_many(_subscriptions(count))


def _subscriptions(count: int) -> Iterator[Subscription]:
    """Yield one subscription of the listener, which every event matches, and stock subscriptions of 1,000 others."""
    yield Subscription("s-probe", LISTENER, "predicates", "exists probe")
    for number in range(count - 1):
        text = f"symbol = 'S{number % SYMBOLS}' and price < {number * 37 % 1_000}"
        yield Subscription(f"s-{number}", f"owner-{number % OWNERS}", "predicates", text)


def find_free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def _until_ready(server: Server, process: subprocess.Popen[bytes], log: str) -> None:
    until = time.monotonic() + TIMEOUT
    while time.monotonic() < until and process.poll() is None:
        try:
            if httpx.get(f"{server.address}/readyz", trust_env=False).status_code == 200:
                return
        except httpx.TransportError:
            pass
        time.sleep(0.2)
    raise RuntimeError(f"the service is not ready: {Path(log).read_text()[-2_000:]}")


def _warm_up(running: Running) -> None:
    """Run the first batches, which build the index and load kernels."""
    asyncio.run(_measure_delays(running, rate=20, seconds=2, per_request=1))


def publish_to_receipt(running: Running, scale: Scale, rate: int) -> Row:
    """Publish events at a rate and measure the time to receipt. High rates use ten events per request."""
    per_request = max(1, rate // 100)
    before = running.cpu()
    delays = asyncio.run(_measure_delays(running, rate, scale.service_seconds, per_request))
    workload = f"{PUBLISH_TO_RECEIPT}, {rate:,} events a second"
    return _row(
        running, workload, len(delays), running.cpu() - before, times=delays, wall=scale.service_seconds
    )


async def _measure_delays(running: Running, rate: float, seconds: float, per_request: int) -> list[float]:
    first, total = running.published, round(rate * seconds)
    running.published += total
    receipts = Receipts(expected=total)
    async with asyncio.TaskGroup() as group:
        is_open = asyncio.Event()
        after = f"&after={await asyncio.to_thread(_last, running)}"
        listening = group.create_task(listen(running.server, STREAM + after, receipts, is_open))
        await _with_timeout(is_open.wait())
        due = await publish_at(running.server, rate, seconds, per_request, running.numbered(first))
        await _with_timeout(receipts.complete.wait())
        listening.cancel()
    return [receipts.times[first + number] - moment for number, moment in enumerate(due)]


def _last(running: Running, subscriber: str = LISTENER) -> int:
    if running.home is None:
        return 0
    with Tidings(running.home) as tidings:
        return tidings.store.notifications.last_sequence(subscriber)


async def _with_timeout(waiting: Coroutine[Any, Any, T]) -> T:
    async with asyncio.timeout(TIMEOUT):
        return await waiting


def ingest(running: Running, scale: Scale, per_request: int) -> Row:
    """Measure the maximum rate of eight clients that send one request after another."""
    count = scale.service_ingested if per_request > 1 else scale.service_ingested // 50
    first, before = running.published, running.cpu()
    running.published += count
    began = time.perf_counter()
    asyncio.run(publish_at(running.server, 1e9, count / 1e9, per_request, running.numbered(first)))
    wall = time.perf_counter() - began
    workload = f"{NAME}, durable ingest, {per_request:,} in a request"
    row = _row(running, workload, count, running.cpu() - before, wall=wall)
    if running.engine == "tidings serve":
        _catch_up(running)
    return row


def _catch_up(running: Running) -> None:
    """Wait until the stream has written notifications for all publications."""
    until = time.monotonic() + TIMEOUT
    while _last(running) < running.published:
        assert time.monotonic() < until, "the stream does not catch up"
        time.sleep(0.2)


def held_streams(running: Running, scale: Scale) -> Row:
    """Measure clients with open streams, each of which receives an event per second."""
    _allow_files(2 * scale.service_clients + 1_000)
    before, began = running.cpu(), time.perf_counter()
    delays = asyncio.run(_measure_streams(running, scale))
    workload = f"{NAME}, {scale.service_clients:,} streams held"
    return _row(
        running, workload, len(delays), running.cpu() - before, times=delays, wall=time.perf_counter() - began
    )


def _allow_files(count: int) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < count:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(count, hard), hard))


async def _measure_streams(running: Running, scale: Scale) -> list[float]:
    seconds, first = scale.service_held_seconds, running.published
    running.published += seconds
    all_receipts = [Receipts(expected=seconds) for _ in range(scale.service_clients)]
    path = f"{STREAM}&after={await asyncio.to_thread(_last, running)}"
    connecting = asyncio.Semaphore(100)

    async def client(receipts: Receipts, is_open: asyncio.Event) -> None:
        async with connecting:
            task = asyncio.create_task(listen(running.server, path, receipts, is_open))
            await is_open.wait()
        await task

    async with asyncio.TaskGroup() as group:
        opened = [asyncio.Event() for _ in all_receipts]
        tasks = [group.create_task(client(*each)) for each in zip(all_receipts, opened, strict=True)]
        for is_open in opened:
            await _with_timeout(is_open.wait())
        due = await publish_at(running.server, 1, seconds, 1, running.numbered(first))
        for receipts in all_receipts:
            await _with_timeout(receipts.complete.wait())
        for task in tasks:
            task.cancel()
    return [each.times[first + n] - moment for each in all_receipts for n, moment in enumerate(due)]


def _row(
    running: Running,
    workload: str,
    events: int,
    cpu: float,
    times: Sequence[float] | None = None,
    wall: float | None = None,
) -> Row:
    p50, p99 = (float(np.percentile(times, share)) if times else None for share in (50, 99))
    return Row(
        workload,
        running.subscriptions,
        running.engine,
        events_per_cpu_second=events / max(cpu, 1e-9),
        build_seconds=None,
        bytes_per_subscription=None,
        matches_per_event=None,
        seconds_per_event=max(cpu, 1e-9) / events,
        events_per_second=events / wall if wall else None,
        p50_seconds=p50,
        p99_seconds=p99,
        role=running.role,
    )
