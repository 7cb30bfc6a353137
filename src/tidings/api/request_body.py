"""Bodies of requests: limits of size, time and memory, and strict JSON where a model is built from the body."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from fastapi import Request
from starlette.requests import ClientDisconnect

from tidings.api.problem_details import HttpError
from tidings.api.rate_limiter import CHARGED_BYTES, charge_requests
from tidings.core.arguments import check_members
from tidings.errors import DecodeProblem, InputError, LimitExceeded, TidingsError
from tidings.parsers.strict_json import (
    MOST_VALUES,
    has_more_values,
    looks_like_json_lines,
    parse_value,
    values_problem,
)

JSON_LINES_HINT = "send several as JSON Lines, one on each line, with Content-Type: application/x-ndjson"

MAX_REQUEST_BYTES = 1_000_000
"""Bytes of a request that a model is built from, where the application has no other limit."""

BODY_SECONDS = 30.0
"""Time limit for any body. A client that pauses for a minute has disconnected, or is an attacker."""

MIN_BYTES_PER_SECOND = 8_000
"""A body that arrives at this rate may take longer. One byte every few seconds would hold memory for days."""

FORM = "application/x-www-form-urlencoded"


class UnsupportedEncoding(InputError):
    """A body is compressed, or encoded otherwise."""


class LimitedRequest(Request):
    """A request whose body, where a model is built from it, is limited in size and has to be strict JSON."""

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


def hint_json_lines(body: bytes) -> str | None:
    """Return a hint for a client that sends JSON Lines under another media type."""
    return f"this looks like JSON Lines; {JSON_LINES_HINT}" if looks_like_json_lines(body) else None


async def read_body(
    request: Request, most: int, reserve: Callable[[int], None] = lambda size: None, hint: str | None = None
) -> bytes:
    """Read a body up to a size limit; a larger one is refused with the hint, and not read further.

    `reserve` is called with the size of each chunk before the next one is read.
    """
    _refuse_encoded(request.headers.get("content-encoding", ""))
    announced = request.headers.get("content-length", "")
    if announced.isdecimal() and int(announced[:20]) > most:
        raise build_too_large_error(most, hint)
    body = bytearray()  # a list of many small chunks would take far more memory than was reserved
    try:
        async for chunk in _limit_time(request.stream()):
            reserve(len(chunk))
            body += chunk
            if len(body) > most:
                raise build_too_large_error(most, hint)
    except ClientDisconnect as error:  # not a failure of the server; the response is not read
        problem = InputError("the body is incomplete", received=f"{len(body):,} bytes")
        raise HttpError(400, problem) from error
    except TimeoutError as error:
        accepted = f"within {BODY_SECONDS:g} seconds, or {MIN_BYTES_PER_SECOND:,} bytes a second"
        problem = InputError(
            "the body arrives too slowly", received=f"{len(body):,} bytes", accepted=accepted
        )
        raise HttpError(408, problem) from error
    charge_requests(request, len(body) // CHARGED_BYTES)
    return bytes(body)


async def _limit_time(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Yield the chunks of a body, and raise TimeoutError if they arrive too slowly: they occupy shared memory."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + BODY_SECONDS
    while True:
        async with asyncio.timeout_at(deadline):
            chunk = await anext(chunks, None)
        if chunk is None:
            return
        deadline += len(chunk) / MIN_BYTES_PER_SECOND
        yield chunk


def _refuse_encoded(encoding: str) -> None:
    """Refuse compressed bodies: a small one may expand a thousandfold, or be published compressed."""
    if encoding.strip().lower() not in ("", "identity"):
        hint = "send the body uncompressed, without Content-Encoding"
        message, received = "encoded bodies are not supported", encoding[:80]
        raise HttpError(
            415, UnsupportedEncoding(message, where="Content-Encoding", received=received, hint=hint)
        )


def build_too_large_error(most: int, hint: str | None = None) -> HttpError:
    """Return the error about a body beyond the limit."""
    return HttpError(413, LimitExceeded("the body is too large", accepted=f"{most:,} bytes", hint=hint))


class UploadBudget:
    """Memory for the bodies of publications and bulk subscriptions that are being received, in one event loop.

    Each body has a limit of its own. Beyond the limit for all of them together, requests are answered with 503.
    """

    def __init__(self, most: int) -> None:
        self._most, self._reserved = most, 0

    @asynccontextmanager
    async def read(self, request: Request, most: int) -> AsyncIterator[bytes]:
        """Read the body of a request; it counts until the end of the `with`."""
        size = 0

        def reserve(chunk: int) -> None:
            nonlocal size
            if self._reserved + chunk > self._most:
                hint = "try again in a moment"
                raise HttpError(503, TidingsError("too many uploads at the same time", hint=hint))
            self._reserved += chunk
            size += chunk

        try:
            yield await read_body(request, most, reserve)
        finally:
            self._reserved -= size
