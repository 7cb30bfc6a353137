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
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Header, Query, Response
from fastapi.concurrency import run_in_threadpool
from pydantic import BaseModel, ConfigDict, Field

from tidings.api.authentication import SubscribeCaller
from tidings.api.middleware.write_limiter import run_write
from tidings.api.v1 import schemas
from tidings.api.v1.openapi import TEXT_SCHEMA
from tidings.api.v1.route_classes import VersionedRoute
from tidings.api.v1.schemas import copy_fields
from tidings.api.v1.streams.event_stream import EventStream
from tidings.api.v1.streams.fanout import NotificationFanout
from tidings.client.records import AckPosition
from tidings.core.storable import LARGEST_INTEGER, parse_number
from tidings.errors import InputError
from tidings.service.authorization import Caller
from tidings.service.event_pages import EventPage, read_page, resolve_cursor
from tidings.store.acknowledgements import SubscriberPosition
from tidings.store.store import Store

LONGEST_WAIT = 60

Subscriber = Annotated[
    str | None, Query(max_length=500, description="The subscriber; only administrators may name another one.")
]
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
Limit = Annotated[int, Query(ge=1, le=1_000, description="Page size; a page may be shorter.")]
Wait = Annotated[
    float, Query(ge=0, le=LONGEST_WAIT, description="Long polling: seconds to wait if there are none.")
]

ResponseDescriptions = dict[int | str, dict[str, Any]]


class AckRequest(BaseModel):
    """Acknowledges everything up to a sequence number."""

    model_config = ConfigDict(extra="forbid")
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
        who = await find_subscriber(caller, subscriber)
        read = partial(read_page, self._store, who, limit=limit, subscription=subscription)
        page, position = await run_in_threadpool(self._read_first, who, after, read)
        if wait and not page.lines:
            page = await self._poll(caller, who, page, read, wait)
            position = await self._position(who)
        return _page_response(page, position)

    def _read_first(
        self, who: str, after: int | None, read: partial[EventPage]
    ) -> tuple[EventPage, SubscriberPosition]:
        """Read the page after a cursor and the subscriber's position, in one thread."""
        position = self._store.acknowledgements.standing
        return read(after=resolve_cursor(position(who), after)), position(who)

    async def _poll(
        self, caller: Caller, who: str, page: EventPage, read: partial[EventPage], seconds: float
    ) -> EventPage:
        """Return the first page that is not empty, or an empty one when the time is over."""
        self._fanout.check_capacity()
        clock = asyncio.get_running_loop().time
        until = clock() + seconds
        with self._fanout.follow(who, caller.token.id, page.cursor, page.cursor) as follower:
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
        who = await find_subscriber(caller, subscriber)
        self._fanout.check_capacity()
        position = await self._position(who)
        cursor = resolve_cursor(position, _resume_cursor(last_event_id, after))
        follower = self._fanout.follow(who, caller.token.id, cursor, position.last)
        return EventStream(follower, subscription)

    async def position(self, caller: SubscribeCaller, subscriber: Subscriber = None) -> AckPosition:
        """Read up to which number everything is acknowledged, and the latest number."""
        return copy_fields(AckPosition, await self._position(await find_subscriber(caller, subscriber)))

    async def acknowledge(
        self, caller: SubscribeCaller, given: AckRequest, subscriber: Subscriber = None
    ) -> AckPosition:
        """Acknowledge everything up to a number. A smaller number than before changes nothing."""
        who = await find_subscriber(caller, subscriber)
        work = partial(self._store.acknowledgements.acknowledge, who, given.upto)
        return copy_fields(AckPosition, await run_write(work))

    async def _position(self, who: str) -> SubscriberPosition:
        return await run_in_threadpool(partial(self._store.acknowledgements.standing, who))


def router_for(store: Store, fanout: NotificationFanout) -> APIRouter:
    """Return the routes. The application calls `fanout.end` on shutdown, which ends the streams."""
    endpoints = NotificationEndpoints(store, fanout)
    router = APIRouter(prefix="/v1/notifications", tags=["notifications"], route_class=VersionedRoute)
    events = {
        "content": {"text/event-stream": {"schema": TEXT_SCHEMA}},
        "description": "CloudEvents as they are created",
    }
    page: ResponseDescriptions = {200: {"model": schemas.NotificationPage}}
    stream: ResponseDescriptions = {200: events}
    router.add_api_route("", endpoints.page, responses=page, response_class=Response)
    router.add_api_route("/stream", endpoints.stream, responses=stream, response_class=Response)
    router.add_api_route("/ack", endpoints.position)
    for method in ("PUT", "POST"):  # each is an operation of its own in the OpenAPI document
        router.add_api_route("/ack", endpoints.acknowledge, methods=[method])
    return router


def subscriber_of(caller: Caller, named: str | None) -> str:
    """Return the subscriber that a request is about. Impossible names are refused before the store is read."""
    subscriber = caller.acting_as(named)
    if not subscriber.isprintable():
        raise InputError("no subscriber has such a name", where="subscriber", received=ascii(subscriber))
    return subscriber


async def find_subscriber(caller: Caller, named: str | None) -> str:
    """Return the same without blocking: a name such as `Student:1` may need a lookup in a source database."""
    if named is None or named == caller.subscriber or ":" not in named:
        return subscriber_of(caller, named)
    return await run_in_threadpool(subscriber_of, caller, named)


def _resume_cursor(last_event_id: str | None, after: int | None) -> int | None:
    """Return the cursor at which a stream resumes. Browsers reconnect to the first address, with `Last-Event-ID`."""
    if not last_event_id:
        return after
    return parse_number("Last-Event-ID", last_event_id)


def _page_response(page: EventPage, position: SubscriberPosition) -> Response:
    """Join the lines, which are JSON already."""
    lines = ",".join(line.text for line in page.lines)
    rest = f'"cursor":{page.cursor},"last":{position.last},"acknowledged":{position.acknowledged}'
    return Response(f'{{"notifications":[{lines}],{rest}}}', media_type="application/json")
