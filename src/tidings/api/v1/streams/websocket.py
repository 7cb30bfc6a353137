"""Notifications over a WebSocket: `/v1/notifications/ws?after=42`.

Each message is a CloudEvent, the same as in the stream of server-sent events. The client acknowledges with
`{"ack": 42}`. Who cannot send a header, as in a browser, sends `{"token": "tdg_..."}` first; a page of the console has
its cookie.

    1001, 1012   the server ends: come back, with the last number as `after`
    1013         too many follow here, too many requests, or the store cannot be read: come back later
    4400         a message, a parameter or a cursor that cannot be used
    4401         no token, or one that is not good, now or any more
    4403         a token that is for something else, or a page from elsewhere
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from functools import partial
from typing import Any

from fastapi import APIRouter, WebSocket, WebSocketDisconnect
from fastapi.concurrency import run_in_threadpool

from tidings.api.authentication import COOKIE, TOKEN_HINT, count_request, get_authenticator, read_bearer_token
from tidings.api.http_error import HttpError
from tidings.api.middleware.write_limiter import MAX_WAITING_WRITES, WriteLimiter
from tidings.api.parameters import check_parameters, refuse_other_parameters
from tidings.api.routes import status_of
from tidings.api.v1.notifications import find_subscriber
from tidings.api.v1.route_classes import refuse_repeated_parameters
from tidings.api.v1.streams.fanout import Follower, NotificationFanout, StreamEnd
from tidings.core.storable import check_number, parse_number
from tidings.errors import DecodeProblem, InputError, NotAllowed, TidingsError
from tidings.parsers.strict_json import parse_value
from tidings.service.access import Caller, Scope
from tidings.service.event_pages import resolve_cursor
from tidings.store.store import Store

FIRST_SECONDS = 10.0
"""How long the first message, with the token, may take."""

QUIET_SECONDS = 60.0
"""How long a follower waits before it looks whether it is over; pings are the server's."""

CLOSING_SECONDS = 5.0
LONGEST = 4_096
"""Characters of a message from a client: a token is the longest there is."""

PARAMETERS = ("after", "subscriber", "subscription")
GOING_AWAY, LATER, UNUSABLE, UNKNOWN, FORBIDDEN = 1001, 1013, 4400, 4401, 4403

_CODES: dict[int, int] = {401: UNKNOWN, 403: FORBIDDEN, 429: LATER, 503: LATER}
"""By the status that an answer would have; what is not here is unusable."""

_ENDS = {StreamEnd.SERVER: GOING_AWAY, StreamEnd.STORE: LATER, StreamEnd.TOKEN: UNKNOWN}


class NotificationSocket:
    """The WebSocket of a store's notifications."""

    def __init__(self, store: Store, look_out: NotificationFanout) -> None:
        self._store, self._look_out = store, look_out
        self._writers = WriteLimiter(waiting=MAX_WAITING_WRITES, what="acknowledgements")

    async def __call__(self, socket: WebSocket) -> None:
        """It is accepted before anything is checked: a browser learns the code of a close, not that of an answer."""
        await socket.accept()
        try:
            code, why = await self._served(socket)
        except WebSocketDisconnect:
            return
        except (HttpError, TidingsError) as problem:
            code, why = _refusal(problem)
        with suppress(TimeoutError, RuntimeError):  # it takes nothing, or is closed already
            async with asyncio.timeout(CLOSING_SECONDS):
                await socket.close(code, _short(why))

    async def _served(self, socket: WebSocket) -> tuple[int, str]:
        check_parameters(socket)
        refuse_repeated_parameters(socket)
        caller = await self._caller(socket)
        count_request(socket, caller.token.id)
        asked = socket.query_params
        refuse_other_parameters(asked, PARAMETERS)
        who = await find_subscriber(caller, asked.get("subscriber"))
        self._look_out.check_room()
        standing = await run_in_threadpool(self._store.acknowledgements.standing, who)
        cursor = resolve_cursor(standing, _number(asked["after"], "after") if "after" in asked else None)
        with self._look_out.follow(who, caller.token.id, cursor, standing.last) as follower:
            return await self._both_ways(socket, follower, asked.get("subscription"))

    async def _both_ways(
        self, socket: WebSocket, follower: Follower, subscription: str | None
    ) -> tuple[int, str]:
        """Send and receive until one of them ends."""
        sending = asyncio.create_task(_send(socket, follower, subscription))
        receiving = asyncio.create_task(self._receive(socket, follower))
        try:
            done, _ = await asyncio.wait({sending, receiving}, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        finally:
            for task in (sending, receiving):
                task.cancel()
            await asyncio.gather(sending, receiving, return_exceptions=True)
        over = follower.over or StreamEnd.SERVER
        return _ENDS.get(over, GOING_AWAY), over.value

    async def _receive(self, socket: WebSocket, follower: Follower) -> None:
        """What the client acknowledges."""
        while True:
            given = _message(await _received(socket), "ack")
            upto = _number(None if isinstance(given, str) else given, "ack")
            await self._writers.run(
                partial(self._store.acknowledgements.acknowledge, follower.subscriber, upto)
            )

    async def _caller(self, socket: WebSocket) -> Caller:
        """By header, by the console's cookie from a page of its own, or by the first message."""
        if read_bearer_token(socket) or COOKIE in socket.cookies:
            return await get_authenticator(socket).allowed(socket, Scope.SUBSCRIBE)
        try:
            async with asyncio.timeout(FIRST_SECONDS):
                first = await _received(socket)
        except TimeoutError:
            raise HttpError(401, NotAllowed("a token is needed", hint=TOKEN_HINT)) from None
        return await get_authenticator(socket).allowed_by(str(_message(first, "token")), Scope.SUBSCRIBE)


def router_for(store: Store, look_out: NotificationFanout) -> APIRouter:
    router = APIRouter()
    router.add_api_websocket_route("/v1/notifications/ws", NotificationSocket(store, look_out).__call__)
    return router


async def _send(socket: WebSocket, follower: Follower, subscription: str | None) -> None:
    """Page after page, until it is over. A client that takes nothing is let go by the pings it does not answer."""
    while follower.over is None:
        page = await follower.next(QUIET_SECONDS)
        for line in page.lines if page else ():
            if subscription in (None, line.subscription):
                await socket.send_text(line.text)
                await asyncio.sleep(
                    0
                )  # a client that is gone is noticed here, and not after a page of warnings


async def _received(socket: WebSocket) -> str:
    message = await socket.receive()
    if message["type"] == "websocket.disconnect":
        raise WebSocketDisconnect(message["code"])
    text: str | None = message.get("text")
    if text is None:
        raise InputError("a message that cannot be used", received="bytes", accepted="text")
    return text


def _refusal(refused: HttpError | TidingsError) -> tuple[int, str]:
    problem = refused.problem if isinstance(refused, HttpError) else refused
    status = refused.status if isinstance(refused, HttpError) else status_of(problem)
    return _CODES.get(status, UNUSABLE), problem.headline()


def _message(text: str, name: str) -> Any:
    """The one member of a message."""
    accepted = f'{{"{name}": ...}}'
    with suppress(DecodeProblem):
        found = parse_value(text.encode()) if len(text) <= LONGEST else None
        if isinstance(found, dict) and set(found) == {name}:
            return found[name]
    raise InputError("a message that cannot be used", received=text[:40], accepted=accepted)


def _number(given: object, where: str) -> int:
    if isinstance(given, str):
        return parse_number(where, given)
    if isinstance(given, int) and not isinstance(given, bool):
        return check_number(where, given)
    raise InputError("not a number", where=where, received=str(given)[:40], accepted="a number")


def _short(why: str) -> str:
    """A close has room for 123 bytes of reason."""
    return why.encode()[:120].decode(errors="ignore")
