"""Bodies of requests: as many bytes as allowed, in time, as they are, and strict JSON where a model is made of them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

from fastapi import Request
from starlette.requests import ClientDisconnect

from tidings.errors import DecodeProblem, InputError, OverLimit
from tidings.interfaces.http.rates import CHARGED_BYTES, charge
from tidings.interfaces.http.refused import Refused
from tidings.publications.strict_json import MOST_VALUES, has_more_values, parse_value, values_problem
from tidings.service.offering import ONE_A_LINE, unsaid_lines
from tidings.storable import check_members

LARGEST_REQUEST = 1_000_000
"""Bytes of a request that a model is made of, where the application has no other limit."""

BODY_SECONDS = 30.0
"""How long a body may take, whatever its size. A minute's pause is somebody who is gone, or means harm."""

SLOWEST = 8_000
"""Bytes in a second: a body that comes as fast may take longer. A byte every few seconds would hold memory for days."""


class EncodedBody(InputError):
    """A body is compressed, or encoded otherwise."""


class Limited(Request):
    """A request whose body, where a model is made of it, has at most as many bytes as allowed, and is strict JSON."""

    async def body(self) -> bytes:
        if not hasattr(self, "_body"):
            limits = getattr(self.app.state, "limits", None)
            most = limits.request if limits else LARGEST_REQUEST
            self._body = await body_of(self, most, hint=ONE_A_LINE)
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
            hint = problem.hint or unsaid_lines(await self.body())
            raise Refused(400, problem.hinted(hint) if hint else problem) from problem
        try:
            check_members(value)
        except InputError as problem:
            raise Refused(422, problem) from problem
        return value


async def body_of(
    request: Request, most: int, hold: Callable[[int], None] = lambda size: None, hint: str | None = None
) -> bytes:
    """The body; if it is too large it is refused, with the hint, and no more of it is read then. `hold` hears of each
    part of it before the next one is read.
    """
    _refuse_encoded(request.headers.get("content-encoding", ""))
    announced = request.headers.get("content-length", "")
    if announced.isdecimal() and int(announced[:20]) > most:
        raise too_large(most, hint)
    body = bytearray()  # a list of many small parts would take far more memory than was announced to `hold`
    try:
        async for chunk in _in_time(request.stream()):
            hold(len(chunk))
            body += chunk
            if len(body) > most:
                raise too_large(most, hint)
    except ClientDisconnect as gone:  # nobody reads the answer; it is no failure of the server
        raise Refused(400, InputError("the body ends too early", received=f"{len(body):,} bytes")) from gone
    except TimeoutError as late:
        accepted = f"all of it within {BODY_SECONDS:g} seconds, or {SLOWEST:,} bytes a second"
        problem = InputError("the body does not come", received=f"{len(body):,} bytes", accepted=accepted)
        raise Refused(408, problem) from late
    charge(request, len(body) // CHARGED_BYTES)
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
        raise Refused(415, EncodedBody(what, where="Content-Encoding", received=received, hint=hint))


def too_large(most: int, hint: str | None = None) -> Refused:
    """What is answered to a body beyond the limit."""
    return Refused(413, OverLimit("the body is too large", accepted=f"{most:,} bytes", hint=hint))
