"""Server-sent events: the notifications of a subscriber as they are created.

    retry: 2000

    id: 42
    data: {"specversion":"1.0","id":"n-5d21",...}

    : still here

After a disconnect a client sends `Last-Event-ID: 42` and receives number 43 next. Browsers do this automatically.
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
"""Proxies close idle connections, mostly after 30 or 60 seconds."""

STALL_SECONDS = 75.0
"""A client that reads nothing for so long is disconnected, unless TCP did that before (`server.py`). It reconnects and
resumes where it was.
"""

RETRY = b"retry: 2000\n\n"
HEARTBEAT = b": still here\n\n"
PIECE = 65_536
"""Bytes that are sent at once: a slow client holds no more than this, and one notification, in memory."""

HEADERS = {
    "Content-Type": "text/event-stream; charset=utf-8",
    "Cache-Control": "no-store",
    "X-Accel-Buffering": "no",  # nginx would buffer the response until it ends
}


class EventStream(Response):
    """A response that lasts until the client disconnects, the server shuts down or the token becomes invalid."""

    def __init__(self, follower: Follower, subscription: str | None = None) -> None:
        self.status_code, self.background = 200, None
        self.init_headers(HEADERS)
        self._follower, self._subscription = follower, subscription

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if HEAD_SCOPE_KEY in scope:
            await send(
                {"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers}
            )
            await send({"type": "http.response.body", "body": b""})
            return
        with self._follower as follower, suppress(TimeoutError):  # a client that reads nothing
            disconnect = asyncio.create_task(_wait_for_disconnect(receive, follower))
            try:
                await send(
                    {"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers}
                )
                await self._send(send, RETRY)
                await self._follow(send)
                if follower.over is not None and follower.over is not StreamEnd.GONE:
                    await self._send(send, f": {follower.over.value}\n\n".encode(), more=False)
            finally:
                disconnect.cancel()

    async def _follow(self, send: Send) -> None:
        while self._follower.over is None:
            page = await self._follower.next(HEARTBEAT_SECONDS)
            for piece in self._render(page):
                await self._send(send, piece)

    def _render(self, page: EventPage | None) -> Iterator[bytes]:
        """Yield a page as bytes. If the filter removes the last events, an id alone advances the cursor."""
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


def _join_events(lines: Iterable[EventLine]) -> Iterator[bytes]:
    """Yield lines as events, small ones joined."""
    parts, size = [], 0
    for line in lines:
        parts.append(f"id: {line.sequence}\ndata: {line.text}\n\n")
        size += len(parts[-1])
        if size >= PIECE:
            yield "".join(parts).encode()
            parts, size = [], 0
    if parts:
        yield "".join(parts).encode()


async def _wait_for_disconnect(receive: Receive, follower: Follower) -> None:
    """End the stream when the client disconnects. Anything it sends before is ignored."""
    while (await receive())["type"] != "http.disconnect":
        pass
    follower.end(StreamEnd.GONE)
