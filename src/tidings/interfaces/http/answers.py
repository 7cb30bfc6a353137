"""Answers for machines: JSON, and what is wrong as Problem Details: the facts of the error, and a status that fits."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from contextvars import ContextVar
from typing import Any

from fastapi import Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, PlainTextResponse
from fastapi.routing import APIRoute
from starlette.requests import ClientDisconnect

from tidings.backbone.peer import Unreachable
from tidings.errors import (
    Absent,
    Gone,
    InputError,
    NotAllowed,
    OverLimit,
    SetupError,
    StoreError,
    TidingsError,
    TooOften,
)
from tidings.interfaces.http import problems
from tidings.objects.triggers.sites import Away

STATUSES: tuple[tuple[type[TidingsError], int], ...] = (
    (NotAllowed, 403),
    (TooOften, 429),
    (Absent, 404),
    (Gone, 410),
    (Away, 503),
    (InputError, 422),
    (SetupError, 409),
    (StoreError, 503),
    (Unreachable, 503),
)
"""The status of an error: that of the first class it is of."""

HEADERS = {401: {"WWW-Authenticate": "Bearer"}, 503: {"Retry-After": "5"}}
"""What goes with a status."""

_instance: ContextVar[str | None] = ContextVar("instance", default=None)
"""What is asked for now: the path of the request."""

_Handler = Callable[[Request], Coroutine[Any, Any, Response]]


class Refused(Exception):
    """A request that cannot be taken as it is, with the status that says so."""

    def __init__(self, status: int, problem: TidingsError) -> None:
        self.status, self.problem = status, problem
        super().__init__(str(problem))


class Answering(APIRoute):
    """A route on which everything that goes wrong is an answer: Problem Details, or as `wrong` says."""

    def wrong(self, problem: TidingsError, status: int) -> Response:
        return wrong(problem, status)

    def status(self, problem: TidingsError) -> int:
        return status_of(problem)

    def get_route_handler(self) -> _Handler:
        answer = super().get_route_handler()

        async def answered(request: Request) -> Response:
            _instance.set(request.url.path)
            try:
                return await answer(request)
            except Refused as refused:
                return self.wrong(refused.problem, refused.status)
            except RequestValidationError as error:
                return self.wrong(parameter_problem(error), 400)
            except TidingsError as problem:
                return self.wrong(problem, self.status(problem))

        return answered


class Plain(Answering):
    """The same for those who read a line of text at most: hubs and content systems."""

    def wrong(self, problem: TidingsError, status: int) -> Response:
        return PlainTextResponse(f"{problem}\n", status)


def wrong(problem: TidingsError, status: int | None = None) -> Response:
    """An error as an answer."""
    fitting = status or status_of(problem)
    headers = dict(HEADERS.get(fitting, {}))
    if isinstance(problem, TooOften):
        headers["Retry-After"] = str(problem.seconds)
    told = problems.details(problem, fitting, _instance.get())
    return JSONResponse(told, fitting, headers, media_type=problems.MEDIA_TYPE)


def status_of(problem: TidingsError) -> int:
    """The status that fits an error."""
    return next((number for kind, number in STATUSES if isinstance(problem, kind)), 500)


async def body_of(request: Request, most: int) -> bytes:
    """The body; if it is too large it is refused, and no more of it is read then."""
    announced = request.headers.get("content-length", "")
    if announced.isdecimal() and int(announced[:20]) > most:
        raise too_large(most)
    parts, size = [], 0
    try:
        async for chunk in request.stream():
            parts.append(chunk)
            size += len(chunk)
            if size > most:
                raise too_large(most)
    except ClientDisconnect as gone:  # nobody reads the answer; it is no failure of the server
        raise Refused(400, InputError("the body ends too early", received=f"{size:,} bytes")) from gone
    return b"".join(parts)


def too_large(most: int) -> Refused:
    """What is answered to a body beyond the limit."""
    return Refused(413, OverLimit("the body is too large", accepted=f"{most:,} bytes"))


def parameter_problem(error: RequestValidationError) -> InputError:
    """The first parameter that is wrong."""
    first = error.errors()[0]
    given = first.get("input")
    received = str(given)[:200] if isinstance(given, str | int | float) else None
    where = str(first["loc"][-1])
    return InputError(
        "a parameter that cannot be used", where=where, received=received, accepted=first["msg"]
    )
