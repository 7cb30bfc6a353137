"""Notifications: pages by cursor, acknowledgement by cursor, and a stream of server-sent events.

    GET        /v1/notifications            ?after=  &limit=  &subscription=  &wait=
    GET        /v1/notifications/stream     ?after=  &subscription=            Last-Event-ID
    GET        /v1/notifications/ack
    PUT, POST  /v1/notifications/ack        {"upto": 42}

The cursor is the sequence number of a notification among those of its subscriber. Without a cursor, reading begins
after the acknowledged ones. An administrator passes `subscriber`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Header, Query, Response
from fastapi.concurrency import run_in_threadpool
from pydantic import Field
from starlette.types import Receive, Scope, Send

from tidings.api.authentication import SubscribeCaller
from tidings.api.middleware import HEAD_SCOPE_KEY
from tidings.api.parameters import Limit, Subscriber, find_subscriber
from tidings.api.v1 import schemas
from tidings.api.v1.notification_fanout import Follower, NotificationFanout, StreamEnd
from tidings.api.v1.openapi import TEXT_SCHEMA
from tidings.api.v1.route_classes import VersionedRoute
from tidings.api.v1.schemas import copy_fields
from tidings.api.write_limiter import run_write
from tidings.client.records import AckPosition
from tidings.core.arguments import LARGEST_INTEGER, parse_number
from tidings.service.authorization import Caller
from tidings.service.event_pages import EventLine, EventPage, read_page, resolve_cursor
from tidings.store.notifications.acknowledgements import SubscriberCursor
from tidings.store.store import Store

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
    """Server-sent events, until the client disconnects, the server shuts down or the token becomes invalid.

        retry: 2000

        id: 42
        data: {"specversion":"1.0","id":"n-5d21",...}

        : still here

    After a disconnect a client sends `Last-Event-ID: 42` and receives number 43 next. Browsers do this automatically.
    """

    def __init__(self, follower: Follower, subscription: str | None = None) -> None:
        self.status_code, self.background = 200, None
        self.init_headers(HEADERS)
        self._follower, self._subscription = follower, subscription

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        start = {"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers}
        if HEAD_SCOPE_KEY in scope:
            await send(start)
            await send({"type": "http.response.body", "body": b""})
            return
        with self._follower as follower, suppress(TimeoutError):  # a client that reads nothing
            disconnect = asyncio.create_task(_wait_for_disconnect(receive, follower))
            try:
                await send(start)
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
        lines = [line for line in page.lines if self._subscription in (None, line.subscription)]
        yield from _join_events(lines)
        if not lines or lines[-1].sequence < page.cursor:
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


LONGEST_WAIT = 60

After = Annotated[
    int | None,
    Query(
        ge=0,
        le=LARGEST_INTEGER,
        description="A cursor: only notifications after it. Default: the unacknowledged ones.",
    ),
]
Subscription = Annotated[
    str | None, Query(max_length=500, description="Only notifications of this subscription.")
]
Wait = Annotated[
    float, Query(ge=0, le=LONGEST_WAIT, description="Long polling: seconds to wait if there are none.")
]


class AckRequest(schemas.StrictModel):
    """Acknowledges everything up to a sequence number."""

    upto: int = Field(ge=0, le=LARGEST_INTEGER, strict=True)


class NotificationEndpoints:
    """Reads, streams and acknowledges notifications."""

    def __init__(self, store: Store, fanout: NotificationFanout) -> None:
        self._store, self._fanout = store, fanout

    async def page(
        self,
        caller: SubscribeCaller,
        after: After = None,
        limit: Limit = 100,
        subscription: Subscription = None,
        subscriber: Subscriber = None,
        wait: Wait = 0,
    ) -> Response:
        """Read a page of notifications, oldest first, and the cursor after which the next page begins."""
        reader = await find_subscriber(caller, subscriber)
        read = partial(read_page, self._store, reader, limit=limit, subscription=subscription)
        page, position = await run_in_threadpool(self._read_first, reader, after, read)
        if wait and not page.lines:
            page = await self._poll(caller, reader, page, read, wait)
            position = await self._position(reader)
        return _page_response(page, position)

    def _read_first(
        self, reader: str, after: int | None, read: partial[EventPage]
    ) -> tuple[EventPage, SubscriberCursor]:
        """Read the page after a cursor and the subscriber's position, in one thread."""
        position = self._store.acknowledgements.cursor
        return read(after=resolve_cursor(position(reader), after)), position(reader)

    async def _poll(
        self, caller: Caller, reader: str, page: EventPage, read: partial[EventPage], seconds: float
    ) -> EventPage:
        """Return the first page that is not empty, or an empty one when the time is over."""
        self._fanout.check_capacity()
        clock = asyncio.get_running_loop().time
        until = clock() + seconds
        with self._fanout.follow(reader, caller.token.id, page.cursor, page.cursor) as follower:
            while not page.lines and follower.over is None and clock() < until:
                if await follower.next(until - clock()) is not None:
                    page = await run_in_threadpool(partial(read, after=page.cursor))
        return page

    async def stream(
        self,
        caller: SubscribeCaller,
        after: After = None,
        subscription: Subscription = None,
        subscriber: Subscriber = None,
        last_event_id: Annotated[
            str | None, Header(description="The cursor of a reconnecting client.")
        ] = None,
    ) -> Response:
        """Stream notifications as server-sent events, from a cursor on."""
        reader = await find_subscriber(caller, subscriber)
        self._fanout.check_capacity()
        position = await self._position(reader)
        cursor = resolve_cursor(position, _resume_cursor(last_event_id, after))
        follower = self._fanout.follow(reader, caller.token.id, cursor, position.last)
        return EventStream(follower, subscription)

    async def position(self, caller: SubscribeCaller, subscriber: Subscriber = None) -> AckPosition:
        """Read up to which number everything is acknowledged, and the latest number."""
        return copy_fields(AckPosition, await self._position(await find_subscriber(caller, subscriber)))

    async def acknowledge(
        self, caller: SubscribeCaller, body: AckRequest, subscriber: Subscriber = None
    ) -> AckPosition:
        """Acknowledge everything up to a number. A smaller number than before changes nothing."""
        reader = await find_subscriber(caller, subscriber)
        work = partial(self._store.acknowledgements.acknowledge, reader, body.upto)
        return copy_fields(AckPosition, await run_write(work))

    async def _position(self, reader: str) -> SubscriberCursor:
        return await run_in_threadpool(partial(self._store.acknowledgements.cursor, reader))


def router_for(store: Store, fanout: NotificationFanout) -> APIRouter:
    """Return the routes. The application calls `fanout.end` on shutdown, which ends the streams."""
    endpoints = NotificationEndpoints(store, fanout)
    router = APIRouter(prefix="/v1/notifications", tags=["notifications"], route_class=VersionedRoute)
    page: dict[int | str, dict[str, Any]] = {200: {"model": schemas.NotificationPage}}
    stream: dict[int | str, dict[str, Any]] = {
        200: {
            "content": {"text/event-stream": {"schema": TEXT_SCHEMA}},
            "description": "CloudEvents as they are created",
        }
    }
    router.add_api_route("", endpoints.page, responses=page, response_class=Response)
    router.add_api_route("/stream", endpoints.stream, responses=stream, response_class=Response)
    router.add_api_route("/ack", endpoints.position)
    for method in ("PUT", "POST"):  # each is an operation of its own in the OpenAPI document
        router.add_api_route("/ack", endpoints.acknowledge, methods=[method])
    return router


def _resume_cursor(last_event_id: str | None, after: int | None) -> int | None:
    """Return the cursor at which a stream resumes. Browsers reconnect to the first address, with `Last-Event-ID`."""
    if not last_event_id:
        return after
    return parse_number("Last-Event-ID", last_event_id)


def _page_response(page: EventPage, position: SubscriberCursor) -> Response:
    """Join the lines, which are JSON already."""
    lines = ",".join(line.text for line in page.lines)
    cursors = f'"cursor":{page.cursor},"last":{position.last},"acknowledged":{position.acknowledged}'
    return Response(f'{{"notifications":[{lines}],{cursors}}}', media_type="application/json")
