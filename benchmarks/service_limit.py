"""What HTTP and the disk alone allow: a server with nothing in it of Tidings, beside which the service is measured.

    python -m benchmarks.service_limit PORT FILE

It takes publications as the service does, on the same HTTP server, and answers when SQLite has them on the disk, those
that wait together in one transaction. Each line is then sent to all who hold a stream, whoever they are: no tokens, no
subscriptions, no Spark, and nothing is read again after a break.
"""

from __future__ import annotations

import asyncio
import sqlite3
import sys
from collections.abc import Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import uvicorn

Scope = dict[str, Any]
Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]

MOST = 1_000
"""Requests that wait for the disk."""


class Bare:
    """The application."""

    def __init__(self, path: str) -> None:
        self._waiting: asyncio.Queue[tuple[list[bytes], asyncio.Future[None]]] = asyncio.Queue(MOST)
        self._database = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
        self._database.execute("PRAGMA journal_mode = WAL")
        self._database.execute("PRAGMA synchronous = FULL")
        self._database.execute("CREATE TABLE journal (position INTEGER PRIMARY KEY, body BLOB NOT NULL)")
        self._told: list[bytes] = []
        self._news = asyncio.Condition()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        elif scope["method"] == "POST":
            await self._take(receive, send)
        elif scope["path"].endswith("/stream"):
            await self._stream(send)
        else:
            await answer(send, 200, b"{}")

    async def _live(self, receive: Receive, send: Send) -> None:
        async with working(self._write()):
            await receive()
            await send({"type": "lifespan.startup.complete"})
            await receive()
        await send({"type": "lifespan.shutdown.complete"})

    async def _take(self, receive: Receive, send: Send) -> None:
        body, more = b"", True
        while more:
            part = await receive()
            body, more = body + part["body"], part.get("more_body", False)
        written = asyncio.get_running_loop().create_future()
        await self._waiting.put((body.split(b"\n"), written))
        await written
        await answer(send, 201, b"{}")

    async def _write(self) -> None:
        """Put down what waits, tell it, and see what waits now."""
        while True:
            some = [await self._waiting.get()]
            while not self._waiting.empty():
                some.append(self._waiting.get_nowait())
            lines = [line for each, _ in some for line in each]
            await asyncio.to_thread(self._commit, lines)
            for _, written in some:
                written.set_result(None)
            async with self._news:
                first = len(self._told) + 1
                self._told += [b"id: %d\ndata: %b\n\n" % told for told in enumerate(lines, first)]
                self._news.notify_all()

    def _commit(self, lines: list[bytes]) -> None:
        self._database.execute("BEGIN IMMEDIATE")
        self._database.executemany("INSERT INTO journal (body) VALUES (?)", ((line,) for line in lines))
        self._database.execute("COMMIT")

    async def _stream(self, send: Send) -> None:
        await begin(send, 200, b"text/event-stream")
        seen = len(self._told)
        while True:
            async with self._news:
                await self._news.wait_for(lambda: len(self._told) > seen)  # noqa: B023
            some, seen = b"".join(self._told[seen:]), len(self._told)
            await send({"type": "http.response.body", "body": some, "more_body": True})


@asynccontextmanager
async def working(work: Any) -> Any:
    """Something that works until the end of the `with`; if it fails, so does the `with`."""
    async with asyncio.TaskGroup() as group:
        task = group.create_task(work)
        yield
        task.cancel()


async def begin(send: Send, status: int, kind: bytes, *more: tuple[bytes, bytes]) -> None:
    headers = [(b"content-type", kind), *more]
    await send({"type": "http.response.start", "status": status, "headers": headers})


async def answer(send: Send, status: int, body: bytes) -> None:
    await begin(send, status, b"application/json", (b"content-length", b"%d" % len(body)))
    await send({"type": "http.response.body", "body": body})


def main() -> None:
    port, path = sys.argv[1:]
    config = uvicorn.Config(
        lambda: Bare(path),
        factory=True,
        host="127.0.0.1",
        port=int(port),
        http="h11",
        log_level="error",
        timeout_graceful_shutdown=1,  # streams do not end by themselves
    )
    uvicorn.Server(config).run()


if __name__ == "__main__":
    main()
