"""Notifications over a WebSocket: `/v1/notifications/ws?after=42`.

Each message is a CloudEvent, as in the stream of server-sent events. The client acknowledges with `{"ack": 42}`. A
client that cannot send headers, such as a page in a browser, sends `{"token": "tdg_..."}` first; pages of the console
have a cookie. Close codes:

    1001, 1012   the server shuts down: reconnect, with the latest number as `after`
    1013         too many streams or requests, or the store cannot be read: reconnect later
    4400         invalid message, parameter or cursor
    4401         no token, or an invalid one
    4403         a token without the scope `subscribe`, or a page of another site
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from functools import partial
from typing import Any

from fastapi import APIRouter, WebSocket, WebSocketDisconnect
from fastapi.concurrency import run_in_threadpool

from tidings.api.authentication import COOKIE, TOKEN_HINT, count_request, get_authenticator, read_bearer_token
from tidings.api.parameters import (
    check_parameters,
    find_subscriber,
    refuse_other_parameters,
    refuse_repeated_parameters,
)
from tidings.api.problem_details import HttpError
from tidings.api.routes import status_of
from tidings.api.v1.notification_fanout import Follower, NotificationFanout, StreamEnd
from tidings.api.write_limiter import MAX_WAITING_WRITES, WriteLimiter
from tidings.core.arguments import check_number, parse_number
from tidings.errors import DecodeProblem, InputError, NotAllowed, TidingsError
from tidings.parsers.strict_json import parse_value
from tidings.service.authorization import Caller, Scope
from tidings.service.event_pages import resolve_cursor
from tidings.store.store import Store

FIRST_SECONDS = 10.0
"""Time limit for the first message, which has the token."""

QUIET_SECONDS = 60.0
"""Interval at which a follower checks whether the stream has ended. The server sends pings."""

CLOSING_SECONDS = 5.0
LONGEST = 4_096
"""Characters of a message from a client; tokens are the longest ones."""

PARAMETERS = ("after", "subscriber", "subscription")
GOING_AWAY, LATER, UNUSABLE, UNKNOWN, FORBIDDEN = 1001, 1013, 4400, 4401, 4403

_CODES: dict[int, int] = {401: UNKNOWN, 403: FORBIDDEN, 429: LATER, 503: LATER}
"""Close codes by HTTP status; for any other status it is `UNUSABLE`."""

_ENDS = {StreamEnd.SERVER: GOING_AWAY, StreamEnd.STORE: LATER, StreamEnd.TOKEN: UNKNOWN}


class NotificationSocket:
    """WebSocket endpoint of notifications."""

    def __init__(self, store: Store, fanout: NotificationFanout) -> None:
        self._store, self._fanout = store, fanout
        self._writers = WriteLimiter(max_queue=MAX_WAITING_WRITES, label="acknowledgements")

    async def __call__(self, socket: WebSocket) -> None:
        """Accept first, then check: browsers see the code of a close, but not the status of a response."""
        await socket.accept()
        try:
            code, reason = await self._serve(socket)
        except WebSocketDisconnect:
            return
        except (HttpError, TidingsError) as problem:
            code, reason = _close_code(problem)
        with suppress(TimeoutError, RuntimeError):  # the client reads nothing, or has closed it already
            async with asyncio.timeout(CLOSING_SECONDS):
                await socket.close(code, _shorten_reason(reason))

    async def _serve(self, socket: WebSocket) -> tuple[int, str]:
        check_parameters(socket)
        refuse_repeated_parameters(socket)
        caller = await self._caller(socket)
        count_request(socket, caller.token.id)
        query = socket.query_params
        refuse_other_parameters(query, PARAMETERS)
        reader = await find_subscriber(caller, query.get("subscriber"))
        self._fanout.check_capacity()
        position = await run_in_threadpool(self._store.acknowledgements.cursor, reader)
        after = _check_number(query["after"], "after") if "after" in query else None
        cursor = resolve_cursor(position, after)
        with self._fanout.follow(reader, caller.token.id, cursor, position.last) as follower:
            return await self._exchange(socket, follower, query.get("subscription"))

    async def _exchange(
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
        """Store the acknowledgements of the client."""
        while True:
            value = _parse_message(await _receive_text(socket), "ack")
            upto = _check_number(None if isinstance(value, str) else value, "ack")
            await self._writers.run(
                partial(self._store.acknowledgements.acknowledge, follower.subscriber, upto)
            )

    async def _caller(self, socket: WebSocket) -> Caller:
        """Authenticate by header, by the console's cookie, or by the first message."""
        if read_bearer_token(socket) or COOKIE in socket.cookies:
            return await get_authenticator(socket).allowed(socket, Scope.SUBSCRIBE)
        try:
            async with asyncio.timeout(FIRST_SECONDS):
                first = await _receive_text(socket)
        except TimeoutError:
            raise HttpError(401, NotAllowed("a token is needed", hint=TOKEN_HINT)) from None
        token = str(_parse_message(first, "token"))
        return await get_authenticator(socket).allowed_by(token, Scope.SUBSCRIBE)


def router_for(store: Store, fanout: NotificationFanout) -> APIRouter:
    router = APIRouter()
    router.add_api_websocket_route("/v1/notifications/ws", NotificationSocket(store, fanout).__call__)
    return router


async def _send(socket: WebSocket, follower: Follower, subscription: str | None) -> None:
    """Send pages until the stream ends. A client that reads nothing fails to answer pings and is disconnected."""
    while follower.over is None:
        page = await follower.next(QUIET_SECONDS)
        for line in page.lines if page else ():
            if subscription in (None, line.subscription):
                await socket.send_text(line.text)
                await asyncio.sleep(0)  # notices a disconnect now, not after a page of warnings


async def _receive_text(socket: WebSocket) -> str:
    message = await socket.receive()
    if message["type"] == "websocket.disconnect":
        raise WebSocketDisconnect(message["code"])
    text: str | None = message.get("text")
    if text is None:
        raise InputError("invalid message", received="bytes", accepted="text")
    return text


def _close_code(error: HttpError | TidingsError) -> tuple[int, str]:
    problem = error.problem if isinstance(error, HttpError) else error
    status = error.status if isinstance(error, HttpError) else status_of(problem)
    return _CODES.get(status, UNUSABLE), problem.headline()


def _parse_message(text: str, name: str) -> Any:
    """Return the only member of a message."""
    accepted = f'{{"{name}": ...}}'
    with suppress(DecodeProblem):
        message = parse_value(text.encode()) if len(text) <= LONGEST else None
        if isinstance(message, dict) and set(message) == {name}:
            return message[name]
    raise InputError("invalid message", received=text[:40], accepted=accepted)


def _check_number(value: object, where: str) -> int:
    if isinstance(value, str):
        return parse_number(where, value)
    if isinstance(value, int) and not isinstance(value, bool):
        return check_number(where, value)
    raise InputError("not a number", where=where, received=str(value)[:40], accepted="a number")


def _shorten_reason(reason: str) -> str:
    """Truncate a reason: a close frame has room for 123 bytes."""
    return reason.encode()[:120].decode(errors="ignore")
