"""Answers for machines: JSON, and what is wrong as Problem Details: the facts of the error, and a status that fits."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Sequence
from contextvars import ContextVar
from difflib import get_close_matches
from functools import cached_property
from typing import Any

from fastapi import Request, Response, params
from fastapi.dependencies.utils import get_flat_params
from fastapi.exception_handlers import http_exception_handler
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, PlainTextResponse
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.routing import Match

from tidings.backbone.peer import Unreachable
from tidings.errors import (
    Absent,
    DecodeProblem,
    Gone,
    InputError,
    NotAllowed,
    OverLimit,
    SetupError,
    StoreError,
    TidingsError,
    TooOften,
)
from tidings.expected import expected
from tidings.interfaces.http import problems
from tidings.objects.triggers.sites import Away
from tidings.publications.strict_json import parse_value

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

LARGEST_REQUEST = 1_000_000
"""Bytes of a request that a model is made of, where the application has no other limit."""

BODY_SECONDS = 30.0
"""How long a body may pause. A minute's pause is somebody who is gone, or means harm."""

METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")

_asked: ContextVar[Request | None] = ContextVar("asked", default=None)
"""What is asked for now."""

Handler = Callable[[Request], Coroutine[Any, Any, Response]]


class Refused(Exception):
    """A request that cannot be taken as it is, with the status that says so."""

    def __init__(self, status: int, problem: TidingsError) -> None:
        self.status, self.problem = status, problem
        super().__init__(str(problem))


class EncodedBody(InputError):
    """A body is compressed, or encoded otherwise."""


class Limited(Request):
    """A request whose body, where a model is made of it, has at most as many bytes as allowed, and is strict JSON."""

    async def body(self) -> bytes:
        if not hasattr(self, "_body"):
            limits = getattr(self.app.state, "limits", None)
            self._body = await body_of(self, limits.request if limits else LARGEST_REQUEST)
        return self._body

    async def json(self) -> Any:
        try:
            return parse_value(await self.body())
        except DecodeProblem as problem:
            raise Refused(400, problem) from problem


class Answering(APIRoute):
    """A route on which everything that goes wrong is an answer: Problem Details, or as `wrong` says.

    What it does not read of an address it lets pass, because readers and browsers add to them; unless it is strict.
    """

    is_strict = False

    @cached_property
    def parameters(self) -> list[str]:
        """The names that may stand in the query of its address."""
        found = get_flat_params(self.dependant)
        return sorted(one.alias for one in found if isinstance(one.field_info, params.Query))

    def wrong(self, problem: TidingsError, status: int) -> Response:
        return wrong(problem, status)

    def status(self, problem: TidingsError) -> int:
        return status_of(problem)

    def check(self, request: Request) -> None:
        """Refuse an address that cannot be meant, before anybody answers."""

    def handler(self) -> Handler:
        """What answers, as long as nothing goes wrong."""
        return super().get_route_handler()

    def get_route_handler(self) -> Handler:
        answer = self.handler()

        async def answered(request: Request) -> Response:
            asked = Limited(request.scope, request.receive)
            _asked.set(asked)
            try:
                self.check(request)
                response = await answer(asked)
            except (Refused, RequestValidationError, TidingsError, HTTPException) as error:
                problem, status = self._problem(error)
                response = self.wrong(problem, status)
                response.headers.update(come_back(problem))
            response.headers.update(getattr(asked.state, "headers", {}))
            return response

        return answered

    def _problem(self, error: Exception) -> tuple[TidingsError, int]:
        """What is wrong, and the status that says so. FastAPI has its own for what goes wrong with a body."""
        if isinstance(error, HTTPException):
            if not isinstance(error.__cause__, Refused):
                raise error
            error = error.__cause__
        if isinstance(error, Refused):
            return error.problem, error.status
        if isinstance(error, RequestValidationError):
            is_body = error.errors()[0]["loc"][0] == "body"
            return parameter_problem(error, self._members()), 422 if is_body else 400
        if isinstance(error, TidingsError):
            return error, self.status(error)
        raise error

    def _members(self) -> list[str]:
        """What a body may have in it, if the route makes a model of it."""
        model = self.body_field.field_info.annotation if self.body_field else None
        return list(getattr(model, "model_fields", ()))


class Plain(Answering):
    """The same for those who read a line of text at most: hubs and content systems."""

    def wrong(self, problem: TidingsError, status: int) -> Response:
        return PlainTextResponse(f"{problem}\n", status)


def wrong(problem: TidingsError, status: int | None = None) -> Response:
    """An error as an answer."""
    fitting = status or status_of(problem)
    headers = HEADERS.get(fitting, {}) | come_back(problem)
    if isinstance(problem, EncodedBody):
        headers["Accept-Encoding"] = "identity"
    asked = _asked.get()
    told = problems.details(problem, fitting, asked.url.path if asked else None)
    return JSONResponse(told, fitting, headers, media_type=problems.MEDIA_TYPE)


def come_back(problem: TidingsError) -> dict[str, str]:
    """When whoever came too often may come back, as a header."""
    return {"Retry-After": str(problem.seconds)} if isinstance(problem, TooOften) else {}


def refuse_unknown_parameters(request: Request) -> None:
    """A mistyped `?limt=5` would be answered as if nothing had been asked for: a strict route refuses it."""
    route = request.scope.get("route")
    if isinstance(route, Answering) and route.is_strict:
        refuse_other_parameters(request.query_params, route.parameters)


def refuse_other_parameters(given: Iterable[str], known: Sequence[str]) -> None:
    """Refuse the first parameter that is none of those that there are."""
    for name in given:
        if name not in known:
            raise Refused(400, _no_such("parameter", name, known))


async def nothing_there(request: Request, error: Exception) -> Response:
    """No route is at an address, or none that takes the method: Problem Details below `/v1`, as on all routes there."""
    assert isinstance(error, HTTPException)
    if error.status_code == 405:
        error.headers = {"Allow": _allowed(request)}
    is_api = f"{request.url.path}/".startswith("/v1/")
    if not is_api or error.status_code not in (404, 405):
        return await http_exception_handler(request, error)
    _asked.set(request)
    if error.status_code == 404:
        return wrong(
            Absent("there is nothing at this address", hint="/v1/openapi.json has all that there is")
        )
    allowed = _allowed(request)
    problem = InputError("not a method of this address", received=request.method[:20], accepted=allowed)
    response = wrong(problem, 405)
    response.headers["Allow"] = allowed
    return response


async def went_wrong(request: Request, _: Exception) -> Response:
    """What nobody thought of, and the log has in full: it is no matter of whoever asks, but Problem Details all the
    same.
    """
    _asked.set(request)
    return wrong(TidingsError("something went wrong here", hint="the log of the service says what"), 500)


def _allowed(request: Request) -> str:
    """All methods of an address. Whoever raises the error knows those of one route only."""
    routes = request.app.routes
    found = [
        method
        for method in METHODS
        if any(route.matches({**request.scope, "method": method})[0] is Match.FULL for route in routes)
    ]
    return ", ".join(["HEAD", *found] if "GET" in found else found)


def status_of(problem: TidingsError) -> int:
    """The status that fits an error."""
    return next((number for kind, number in STATUSES if isinstance(problem, kind)), 500)


async def body_of(request: Request, most: int, hold: Callable[[int], None] = lambda size: None) -> bytes:
    """The body; if it is too large it is refused, and no more of it is read then. `hold` hears of each part of it
    before the next one is read.
    """
    _refuse_encoded(request.headers.get("content-encoding", ""))
    announced = request.headers.get("content-length", "")
    if announced.isdecimal() and int(announced[:20]) > most:
        raise too_large(most)
    parts, size = [], 0
    try:
        async for chunk in _in_time(request.stream()):
            hold(len(chunk))
            parts.append(chunk)
            size += len(chunk)
            if size > most:
                raise too_large(most)
    except ClientDisconnect as gone:  # nobody reads the answer; it is no failure of the server
        raise Refused(400, InputError("the body ends too early", received=f"{size:,} bytes")) from gone
    except TimeoutError as late:
        accepted = f"its next bytes within {BODY_SECONDS:g} seconds"
        problem = InputError("the body does not come", received=f"{size:,} bytes", accepted=accepted)
        raise Refused(408, problem) from late
    return b"".join(parts)


async def _in_time(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Each part of a body, if it comes soon after the one before: what came holds memory, which others want, too."""
    while True:
        async with asyncio.timeout(BODY_SECONDS):
            chunk = await anext(chunks, None)
        if chunk is None:
            return
        yield chunk


def _refuse_encoded(encoding: str) -> None:
    """Bodies are taken as they are. What was compressed is a thousand times as long as it seems, and as bytes of an
    unknown kind it would be published compressed.
    """
    if encoding.strip().lower() not in ("", "identity"):
        hint = "send the body as it is, without Content-Encoding"
        what, received = "no encoding of a body is understood", encoding[:80]
        raise Refused(415, EncodedBody(what, where="Content-Encoding", received=received, hint=hint))


def too_large(most: int) -> Refused:
    """What is answered to a body beyond the limit."""
    return Refused(413, OverLimit("the body is too large", accepted=f"{most:,} bytes"))


def parameter_problem(error: RequestValidationError, members: Sequence[str] = ()) -> InputError:
    """The first parameter, or member of the body, that is wrong. The body may have these `members`.

    A name that is not known comes first: what is missing may be what was meant by it.
    """
    found = error.errors()
    first = next((one for one in found if one["type"] == "extra_forbidden"), found[0])
    given, (place, *names) = first.get("input"), first["loc"]
    received = str(given)[:200] if isinstance(given, str | int | float) else None
    name, is_missing = str(names[-1] if names else place), first["type"] == "missing"
    if place != "body":
        if is_missing:
            return InputError("a parameter is missing", where=name)
        what = "a parameter that cannot be used"
        return InputError(what, where=name, received=received, accepted=expected(first))
    if not names:
        problem = InputError("the body cannot be used", accepted="a JSON object")
        problem.hint = "Content-Type: application/json"
        return problem
    if first["type"] == "extra_forbidden":
        problem = _no_such("member", name, members if len(names) == 1 else ())
    elif is_missing:
        problem = InputError(f"'{name}' is missing")
    else:
        problem = InputError(f"'{name}' cannot be this", received=received, accepted=expected(first))
    problem.pointer = "".join(f"/{str(each).replace('~', '~0').replace('/', '~1')}" for each in names)
    return problem


def _no_such(what: str, name: str, known: Sequence[str]) -> InputError:
    close = get_close_matches(name[:200], known, n=1)
    hint = f"did you mean '{close[0]}'?" if close else None
    return InputError(f"there is no {what} '{name[:200]}'", accepted=", ".join(known) or None, hint=hint)
