"""Bodies of requests: as many bytes as allowed, in time, as they are, and strict JSON where a model is made of them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from fastapi import Request
from starlette.requests import ClientDisconnect

from tidings.api.http_error import HttpError
from tidings.api.middleware.rate_limiter import CHARGED_BYTES, charge_requests
from tidings.core.storable import check_members
from tidings.errors import DecodeProblem, InputError, OverLimit, TidingsError
from tidings.parsers.strict_json import MOST_VALUES, has_more_values, parse_value, values_problem
from tidings.service.submission import JSON_LINES_HINT, hint_json_lines

MAX_REQUEST_BYTES = 1_000_000
"""Bytes of a request that a model is made of, where the application has no other limit."""

BODY_SECONDS = 30.0
"""How long a body may take, whatever its size. A minute's pause is somebody who is gone, or means harm."""

SLOWEST = 8_000
"""Bytes in a second: a body that comes as fast may take longer. A byte every few seconds would hold memory for days."""


class EncodedBody(InputError):
    """A body is compressed, or encoded otherwise."""


class LimitedRequest(Request):
    """A request whose body, where a model is made of it, has at most as many bytes as allowed, and is strict JSON."""

    async def body(self) -> bytes:
        if not hasattr(self, "_body"):
            limits = getattr(self.app.state, "limits", None)
            most = limits.request if limits else MAX_REQUEST_BYTES
            self._body = await read_body(self, most, hint=JSON_LINES_HINT)
        return self._body

    async def json(self) -> Any:
        try:
            body = await self.body()
            limits = getattr(self.app.state, "limits", None)
            most = limits.values if limits else MOST_VALUES
            if has_more_values(body, most):
                raise values_problem(most)
            value = parse_value(body, "a JSON object")
        except DecodeProblem as problem:
            hint = problem.hint or hint_json_lines(await self.body())
            raise HttpError(400, problem.with_hint(hint) if hint else problem) from problem
        try:
            check_members(value)
        except InputError as problem:
            raise HttpError(422, problem) from problem
        return value


async def read_body(
    request: Request, most: int, hold: Callable[[int], None] = lambda size: None, hint: str | None = None
) -> bytes:
    """The body; if it is too large it is refused, with the hint, and no more of it is read then. `hold` hears of each
    part of it before the next one is read.
    """
    _refuse_encoded(request.headers.get("content-encoding", ""))
    announced = request.headers.get("content-length", "")
    if announced.isdecimal() and int(announced[:20]) > most:
        raise build_too_large_error(most, hint)
    body = bytearray()  # a list of many small parts would take far more memory than was announced to `hold`
    try:
        async for chunk in _in_time(request.stream()):
            hold(len(chunk))
            body += chunk
            if len(body) > most:
                raise build_too_large_error(most, hint)
    except ClientDisconnect as gone:  # nobody reads the answer; it is no failure of the server
        raise HttpError(400, InputError("the body ends too early", received=f"{len(body):,} bytes")) from gone
    except TimeoutError as late:
        accepted = f"all of it within {BODY_SECONDS:g} seconds, or {SLOWEST:,} bytes a second"
        problem = InputError("the body does not come", received=f"{len(body):,} bytes", accepted=accepted)
        raise HttpError(408, problem) from late
    charge_requests(request, len(body) // CHARGED_BYTES)
    return bytes(body)


async def _in_time(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Each part of a body, if all of it comes fast enough: what came holds memory, which others want, too."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + BODY_SECONDS
    while True:
        async with asyncio.timeout_at(deadline):
            chunk = await anext(chunks, None)
        if chunk is None:
            return
        deadline += len(chunk) / SLOWEST
        yield chunk


def _refuse_encoded(encoding: str) -> None:
    """Bodies are taken as they are. What was compressed is a thousand times as long as it seems, and as bytes of an
    unknown kind it would be published compressed.
    """
    if encoding.strip().lower() not in ("", "identity"):
        hint = "send the body as it is, without Content-Encoding"
        what, received = "no encoding of a body is understood", encoding[:80]
        raise HttpError(415, EncodedBody(what, where="Content-Encoding", received=received, hint=hint))


def build_too_large_error(most: int, hint: str | None = None) -> HttpError:
    """What is answered to a body beyond the limit."""
    return HttpError(413, OverLimit("the body is too large", accepted=f"{most:,} bytes", hint=hint))


# Publications, and many subscriptions, on their way in: no more bytes at a time than memory is meant for.
#
# Each body has a limit. All bodies together have one, too: who comes when it is reached is asked to come back.


class UploadBudget:
    """The bodies that are held now, in one event loop."""

    def __init__(self, most: int) -> None:
        self._most, self._held = most, 0

    @asynccontextmanager
    async def read(self, request: Request, most: int) -> AsyncIterator[bytes]:
        """The body of a request; it counts until the end of the `with`."""
        held = 0

        def hold(size: int) -> None:
            nonlocal held
            if self._held + size > self._most:
                hint = "come back in a moment"
                raise HttpError(503, TidingsError("too much is on its way in already", hint=hint))
            self._held += size
            held += size

        try:
            yield await read_body(request, most, hold)
        finally:
            self._held -= held
