"""Server-sent events: a subscriber's notifications as they come, each under its number.

    retry: 2000

    id: 42
    data: {"specversion":"1.0","id":"n-5d21",...}

    : still here

A reader that was cut off comes back with `Last-Event-ID: 42` and gets number 43 next. Browsers do so by themselves.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from contextlib import suppress

from fastapi import Response
from starlette.types import Receive, Scope, Send

from tidings.api.middleware.head_requests import HEAD_SCOPE_KEY
from tidings.api.v1.streams.fanout import Follower, StreamEnd
from tidings.service.event_pages import EventLine, EventPage

HEARTBEAT_SECONDS = 15.0
"""Proxies close what is silent for longer, mostly after 30 or 60 seconds."""

STALL_SECONDS = 75.0
"""A reader that takes nothing for so long is let go, if the system has not seen to that before (`serving`). It comes
back, and goes on where it was.
"""

RETRY = b"retry: 2000\n\n"
HEARTBEAT = b": still here\n\n"
PIECE = 65_536
"""Bytes that are sent at once; a slow reader has no more than that in memory, and one notification."""

HEADERS = {
    "Content-Type": "text/event-stream; charset=utf-8",
    "Cache-Control": "no-store",
    "X-Accel-Buffering": "no",  # nginx would gather the answer until it ends
}


class EventStream(Response):
    """An answer that goes on until its reader is gone, the server ends or the token is no longer good."""

    def __init__(self, follower: Follower, subscription: str | None = None) -> None:
        self.status_code, self.background = 200, None
        self.init_headers(HEADERS)
        self._follower, self._subscription = follower, subscription

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if HEAD_SCOPE_KEY in scope:
            await _head(send, self.status_code, self.raw_headers)
            return
        with self._follower as follower, suppress(TimeoutError):  # a reader that takes nothing
            gone = asyncio.create_task(_until_gone(receive, follower))
            try:
                await send(
                    {"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers}
                )
                await self._send(send, RETRY)
                await self._follow(send)
                if follower.over is not StreamEnd.GONE:
                    await self._send(send, f": {_why(follower)}\n\n".encode(), more=False)
            finally:
                gone.cancel()

    async def _follow(self, send: Send) -> None:
        while self._follower.over is None:
            page = await self._follower.next(HEARTBEAT_SECONDS)
            for piece in self._pieces(page):
                await self._send(send, piece)

    def _pieces(self, page: EventPage | None) -> Iterator[bytes]:
        """What is sent for a page. If nothing of it is for this reader, its cursor moves all the same."""
        if page is None:
            if self._follower.over is None:
                yield HEARTBEAT
            return
        wanted = [line for line in page.lines if self._subscription in (None, line.subscription)]
        yield from _join_events(wanted)
        if not wanted or wanted[-1].sequence < page.cursor:
            yield f"id: {page.cursor}\n\n".encode()

    async def _send(self, send: Send, body: bytes, more: bool = True) -> None:
        async with self._follower.sending(STALL_SECONDS):
            await send({"type": "http.response.body", "body": body, "more_body": more})


async def _head(send: Send, status: int, headers: list[tuple[bytes, bytes]]) -> None:
    """The headers alone, for whoever asked for no more."""
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": b""})


def _join_events(lines: Iterable[EventLine]) -> Iterator[bytes]:
    """Lines as events, small ones together."""
    parts, size = [], 0
    for line in lines:
        parts.append(f"id: {line.sequence}\ndata: {line.text}\n\n")
        size += len(parts[-1])
        if size >= PIECE:
            yield "".join(parts).encode()
            parts, size = [], 0
    if parts:
        yield "".join(parts).encode()


def _why(follower: Follower) -> str:
    return follower.over.value if follower.over is not None else ""


async def _until_gone(receive: Receive, follower: Follower) -> None:
    """Wait until the reader is gone. What it sends meanwhile says nothing."""
    while (await receive())["type"] != "http.disconnect":
        pass
    follower.end(StreamEnd.GONE)
