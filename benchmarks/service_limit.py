"""Limit of HTTP and the disk: a server without Tidings, with which the service is compared.

    python -m benchmarks.service_limit PORT FILE

It accepts publications as the service does, on the same HTTP server, and responds when SQLite has them on disk, with
group commit. Each line is then sent to all open streams: no tokens, no subscriptions, no Spark, and no replay after a
lost connection.
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
"""Maximum number of requests that wait for the disk."""


class LimitServer:
    """The ASGI application."""

    def __init__(self, path: str) -> None:
        self._waiting: asyncio.Queue[tuple[list[bytes], asyncio.Future[None]]] = asyncio.Queue(MOST)
        self._database = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
        self._database.execute("PRAGMA journal_mode = WAL")
        self._database.execute("PRAGMA synchronous = FULL")
        self._database.execute("CREATE TABLE journal (position INTEGER PRIMARY KEY, body BLOB NOT NULL)")
        self._events: list[bytes] = []
        self._changed = asyncio.Condition()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        elif scope["method"] == "POST":
            await self._accept(receive, send)
        elif scope["path"].endswith("/stream"):
            await self._stream(send)
        else:
            await answer(send, 200, b"{}")

    async def _live(self, receive: Receive, send: Send) -> None:
        async with background(self._write()):
            await receive()
            await send({"type": "lifespan.startup.complete"})
            await receive()
        await send({"type": "lifespan.shutdown.complete"})

    async def _accept(self, receive: Receive, send: Send) -> None:
        body, more = b"", True
        while more:
            part = await receive()
            body, more = body + part["body"], part.get("more_body", False)
        written = asyncio.get_running_loop().create_future()
        await self._waiting.put((body.split(b"\n"), written))
        await written
        await answer(send, 201, b"{}")

    async def _write(self) -> None:
        """Commit waiting requests in batches, and send their lines to the streams."""
        while True:
            batch = [await self._waiting.get()]
            while not self._waiting.empty():
                batch.append(self._waiting.get_nowait())
            lines = [line for request, _ in batch for line in request]
            await asyncio.to_thread(self._commit, lines)
            for _, written in batch:
                written.set_result(None)
            async with self._changed:
                first = len(self._events) + 1
                self._events += [b"id: %d\ndata: %b\n\n" % entry for entry in enumerate(lines, first)]
                self._changed.notify_all()

    def _commit(self, lines: list[bytes]) -> None:
        self._database.execute("BEGIN IMMEDIATE")
        self._database.executemany("INSERT INTO journal (body) VALUES (?)", ((line,) for line in lines))
        self._database.execute("COMMIT")

    async def _stream(self, send: Send) -> None:
        await begin(send, 200, b"text/event-stream")
        seen = len(self._events)
        while True:
            async with self._changed:
                await self._changed.wait_for(lambda: len(self._events) > seen)  # noqa: B023
            chunk, seen = b"".join(self._events[seen:]), len(self._events)
            await send({"type": "http.response.body", "body": chunk, "more_body": True})


@asynccontextmanager
async def background(work: Any) -> Any:
    """Run a coroutine in the background until the end of the `with`; its failure fails the `with`."""
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
        lambda: LimitServer(path),
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
