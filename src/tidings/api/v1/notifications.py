"""Notifications over HTTP: pages by cursor, acknowledging by cursor, and a stream of server-sent events.

    GET        /v1/notifications            ?after=  &limit=  &subscription=  &wait=
    GET        /v1/notifications/stream     ?after=  &subscription=            Last-Event-ID
    GET        /v1/notifications/ack
    PUT, POST  /v1/notifications/ack        {"upto": 42}

The cursor is the number of a notification in its subscriber's sequence. Whoever names none begins after what was
acknowledged. An administrator says with `subscriber` whose notifications are meant.
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
from tidings.api.v1.streams.event_stream import EventStream
from tidings.api.v1.streams.fanout import NotificationFanout
from tidings.core.storable import LARGEST_INTEGER, parse_number
from tidings.errors import InputError
from tidings.service.access import Caller
from tidings.service.event_pages import EventPage, read_page, resolve_cursor
from tidings.store.positions import SubscriberPosition
from tidings.store.store import Store

LONGEST_WAIT = 60

Subscriber = Annotated[
    str | None, Query(max_length=500, description="Whose notifications: an administrator names them.")
]
After = Annotated[
    int | None,
    Query(
        ge=0,
        le=LARGEST_INTEGER,
        description="A cursor: only what comes after it. Without one, what is unacknowledged.",
    ),
]
Subscription = Annotated[str | None, Query(max_length=500, description="Only those of this subscription.")]
Limit = Annotated[int, Query(ge=1, le=1_000, description="At most so many; there may be fewer in a page.")]
Wait = Annotated[
    float, Query(ge=0, le=LONGEST_WAIT, description="Seconds to wait for the first, if there is none.")
]

ResponseDescriptions = dict[int | str, dict[str, Any]]
"""What a route answers, for the OpenAPI document."""


class AckRequest(BaseModel):
    """Everything up to this number is dealt with."""

    model_config = ConfigDict(extra="forbid")
    upto: int = Field(ge=0, le=LARGEST_INTEGER, strict=True)


class NotificationEndpoints:
    """Reads notifications for those who ask."""

    def __init__(self, store: Store, look_out: NotificationFanout) -> None:
        self._store, self._look_out = store, look_out

    async def page(
        self,
        caller: SubscribeCaller,
        after: After = None,
        limit: Limit = 100,
        subscription: Subscription = None,
        subscriber: Subscriber = None,
        wait: Wait = 0,
    ) -> Response:
        """A page of notifications, oldest first, and the cursor after which the next page begins."""
        who = await find_subscriber(caller, subscriber)
        read = partial(read_page, self._store, who, limit=limit, subscription=subscription)
        page, standing = await run_in_threadpool(self._first, who, after, read)
        if wait and not page.lines:
            page = await self._waited(caller, who, page, read, wait)
            standing = await self._standing(who)
        return _page_response(page, standing)

    def _first(
        self, who: str, after: int | None, read: partial[EventPage]
    ) -> tuple[EventPage, SubscriberPosition]:
        """The page after a cursor, and how things stand then: one thread for all of it."""
        standing = self._store.acknowledgements.standing
        return read(after=resolve_cursor(standing(who), after)), standing(who)

    async def _waited(
        self, caller: Caller, who: str, page: EventPage, read: partial[EventPage], seconds: float
    ) -> EventPage:
        """The first page with something in it, or the last look when the time is over."""
        self._look_out.check_room()
        clock = asyncio.get_running_loop().time
        until = clock() + seconds
        with self._look_out.follow(who, caller.token.id, page.cursor, page.cursor) as follower:
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
        last_event_id: Annotated[str | None, Header(description="The cursor of whoever comes back.")] = None,
    ) -> Response:
        """Notifications as server-sent events, from a cursor on and as they come."""
        who = await find_subscriber(caller, subscriber)
        self._look_out.check_room()
        standing = await self._standing(who)
        cursor = resolve_cursor(standing, _resume_cursor(last_event_id, after))
        follower = self._look_out.follow(who, caller.token.id, cursor, standing.last)
        return EventStream(follower, subscription)

    async def standing(self, caller: SubscribeCaller, subscriber: Subscriber = None) -> schemas.AckPosition:
        """What is acknowledged, and the last number there is."""
        return _shown(await self._standing(await find_subscriber(caller, subscriber)))

    async def acknowledge(
        self, caller: SubscribeCaller, given: AckRequest, subscriber: Subscriber = None
    ) -> schemas.AckPosition:
        """Acknowledge everything up to a number. A smaller one than before changes nothing."""
        who = await find_subscriber(caller, subscriber)
        work = partial(self._store.acknowledgements.acknowledge, who, given.upto)
        return _shown(await run_write(work))

    async def _standing(self, who: str) -> SubscriberPosition:
        return await run_in_threadpool(partial(self._store.acknowledgements.standing, who))


def router_for(store: Store, look_out: NotificationFanout) -> APIRouter:
    """The endpoints. Whoever serves them calls `look_out.end` at the end, so that streams end then, too."""
    reading = NotificationEndpoints(store, look_out)
    router = APIRouter(prefix="/v1/notifications", tags=["notifications"], route_class=VersionedRoute)
    events = {
        "content": {"text/event-stream": {"schema": TEXT_SCHEMA}},
        "description": "CloudEvents as they come",
    }
    paged: ResponseDescriptions = {200: {"model": schemas.NotificationPage}}
    streamed: ResponseDescriptions = {200: events}
    router.add_api_route("", reading.page, responses=paged, response_class=Response)
    router.add_api_route("/stream", reading.stream, responses=streamed, response_class=Response)
    router.add_api_route("/ack", reading.standing)
    for method in ("PUT", "POST"):  # each is an operation of its own in the OpenAPI document
        router.add_api_route("/ack", reading.acknowledge, methods=[method])
    return router


def subscriber_of(caller: Caller, named: str | None) -> str:
    """The subscriber that is meant; a name that nobody can have is refused before a database is asked for it."""
    subscriber = caller.acting_as(named)
    if not subscriber.isprintable():
        raise InputError("no subscriber has such a name", where="subscriber", received=ascii(subscriber))
    return subscriber


async def find_subscriber(caller: Caller, named: str | None) -> str:
    """The same where nothing may block: another's name may have to be looked up in a database of objects."""
    if named is None or named == caller.subscriber or ":" not in named:
        return subscriber_of(caller, named)
    return await run_in_threadpool(subscriber_of, caller, named)


def _resume_cursor(last_event_id: str | None, after: int | None) -> int | None:
    """Where a stream goes on. A browser that comes back has the address it began with, and says what it saw last."""
    if not last_event_id:
        return after
    return parse_number("Last-Event-ID", last_event_id)


def _shown(standing: SubscriberPosition) -> schemas.AckPosition:
    return schemas.AckPosition(acknowledged=standing.acknowledged, last=standing.last, time=standing.time)


def _page_response(page: EventPage, standing: SubscriberPosition) -> Response:
    """The lines are JSON already."""
    lines = ",".join(line.text for line in page.lines)
    rest = f'"cursor":{page.cursor},"last":{standing.last},"acknowledged":{standing.acknowledged}'
    return Response(f'{{"notifications":[{lines}],{rest}}}', media_type="application/json")
