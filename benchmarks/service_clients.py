"""Clients of the service with little overhead, so that the server is measured.

They use HTTP over plain sockets: thousands of streams of server-sent events in one event loop, and publishers that send
at a given rate whether or not the server keeps up.
"""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from urllib.parse import urlsplit

AT_ONCE = 8
"""Connections of a publisher."""

_PROBE = re.compile(rb'"probe": ?(\d+)')


@dataclass
class Server:
    """Address of the service, and a token of its administrator."""

    address: str
    token: str

    @property
    def host(self) -> tuple[str, int]:
        parts = urlsplit(self.address)
        return str(parts.hostname), int(parts.port or 80)

    async def connect(self) -> Connection:
        return Connection(self, *await asyncio.open_connection(*self.host))


@dataclass
class Connection:
    """A persistent connection."""

    server: Server
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def post(self, path: str, body: bytes, kind: str) -> tuple[int, bytes]:
        self.writer.write(self._head("POST", path, f"Content-Type: {kind}", len(body)) + body)
        await self.writer.drain()
        return await self._answer()

    async def open_stream(self, path: str) -> None:
        self.writer.write(self._head("GET", path, "Accept: text/event-stream"))
        status, _ = await self._headers()
        assert status == 200, f"{path} answers {status}"

    async def next_event(self) -> tuple[int, bytes]:
        """Return the number of the next event of a stream, and its data."""
        number = 0
        while line := await self.reader.readline():
            if line.startswith(b"id:"):
                number = int(line[3:])
            elif line.startswith(b"data:") and number:
                return number, line
        raise ConnectionError("the stream has ended")

    def _head(self, method: str, path: str, more: str, length: int | None = None) -> bytes:
        host, port = self.server.host
        lines = [
            f"{method} {path} HTTP/1.1",
            f"Host: {host}:{port}",
            f"Authorization: Bearer {self.server.token}",
            more,
        ]
        lines += [] if length is None else [f"Content-Length: {length}"]
        return "\r\n".join([*lines, "", ""]).encode()

    async def _headers(self) -> tuple[int, dict[str, str]]:
        status = int((await self.reader.readline()).split()[1])
        headers: dict[str, str] = {}
        while (line := (await self.reader.readline()).strip()) != b"":
            name, _, value = line.decode().partition(":")
            headers[name.lower()] = value.strip()
        return status, headers

    async def _answer(self) -> tuple[int, bytes]:
        status, headers = await self._headers()
        return status, await self.reader.readexactly(int(headers.get("content-length", 0)))

    def close(self) -> None:
        self.writer.close()


@dataclass
class Receipts:
    """Times at which events arrived, by the number in each event."""

    times: dict[int, float] = field(default_factory=dict)
    complete: asyncio.Event = field(default_factory=asyncio.Event)
    expected: int = 0

    def record(self, data: bytes) -> None:
        probe = _PROBE.search(data)
        if probe is not None:
            self.times[int(probe[1])] = time.perf_counter()
            if len(self.times) >= self.expected:
                self.complete.set()


async def listen(server: Server, path: str, receipts: Receipts, is_open: asyncio.Event) -> None:
    """Record the time of each event of a stream until cancelled, and check that numbers have no gaps."""
    connection = await server.connect()
    try:
        await connection.open_stream(path)
        is_open.set()
        last: int | None = None
        while True:
            number, data = await connection.next_event()
            assert last is None or number == last + 1, f"{number} came after {last}"
            last = number
            receipts.record(data)
    finally:
        connection.close()


async def publish_at(
    server: Server, rate: float, seconds: float, per_request: int, body: Callable[[int], bytes]
) -> list[float]:
    """Publish at a rate, `per_request` events in each request; return the time at which each event was due.

    The due time stays the same if the previous request delays the next one, so a server that cannot keep up shows in
    the delays.
    """
    total, clock, began = round(rate * seconds), time.perf_counter, time.perf_counter()
    due: list[float] = [0.0] * total
    numbers = count(0, per_request)

    async def work() -> None:
        connection = await server.connect()
        try:
            for first in numbers:
                if first >= total:
                    return
                moment = began + first / rate
                if (left := moment - clock()) > 0:
                    await asyncio.sleep(left)
                batch = range(first, min(total, first + per_request))
                lines = b"\n".join(body(number) for number in batch)
                for number in batch:
                    due[number] = moment
                kind = "application/json" if per_request == 1 else "application/x-ndjson"
                status, answer = await connection.post("/v1/publications", lines, kind)
                assert status in (200, 201, 207), f"publishing answers {status}: {answer[:300]!r}"
        finally:
            connection.close()

    at_once = min(AT_ONCE, max(1, round(rate)))  # a connection without a request for seconds is closed
    await asyncio.gather(*(work() for _ in range(at_once)))
    return due


def event(number: int) -> bytes:
    """Return an event that matches the listener's subscription, and some of the others."""
    return json.dumps(
        {
            "probe": number,
            "symbol": f"S{number * 7919 % 5_000}",
            "price": number * 31 % 1_000,
            "volume": number % 97,
        }
    ).encode()
