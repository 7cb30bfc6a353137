"""Answers for machines: JSON, and what is wrong as Problem Details: the facts of the error, and a status that fits."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from contextvars import ContextVar
from functools import cached_property
from typing import Any

from fastapi import Request, Response, params
from fastapi.dependencies.utils import get_flat_params
from fastapi.exception_handlers import http_exception_handler
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, PlainTextResponse
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from starlette.routing import BaseRoute, Match
from starlette.types import Scope

from tidings.backbone.peer import Unreachable
from tidings.errors import (
    Absent,
    Gone,
    InputError,
    NotAllowed,
    Overloaded,
    SetupError,
    StoreError,
    TidingsError,
    TooOften,
)
from tidings.interfaces.http import problems
from tidings.interfaces.http.bodies import EncodedBody, Limited
from tidings.interfaces.http.parameters import (
    check_parameters,
    not_sent_as_json,
    parameter_problem,
    refuse_other_parameters,
)
from tidings.interfaces.http.refused import Refused
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
    (Overloaded, 503),
    (Unreachable, 503),
)
"""The status of an error: that of the first class it is of."""

HEADERS = {401: {"WWW-Authenticate": "Bearer"}, 503: {"Retry-After": "5"}}
"""What goes with a status."""

METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")

_asked: ContextVar[Request | None] = ContextVar("asked", default=None)
"""What is asked for now."""

Handler = Callable[[Request], Coroutine[Any, Any, Response]]


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
        check_parameters(request)

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
                problem, status = self._problem(error, asked)
                response = self.wrong(problem, status)
                response.headers.update(come_back(problem))
            response.headers.update(getattr(asked.state, "headers", {}))
            return response

        return answered

    def _problem(self, error: Exception, asked: Request) -> tuple[TidingsError, int]:
        """What is wrong, and the status that says so. FastAPI has its own for what goes wrong with a body."""
        if isinstance(error, HTTPException):
            if not isinstance(error.__cause__, Refused):
                raise error
            error = error.__cause__
        if isinstance(error, Refused):
            return error.problem, error.status
        if isinstance(error, RequestValidationError):
            if isinstance(error.body, bytes):  # FastAPI reads others
                return not_sent_as_json(error.body, asked.headers.get("content-type", "")), 415
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


async def nothing_there(request: Request, error: Exception) -> Response:
    """No route is at an address, or none that takes the method: Problem Details, wherever it is."""
    assert isinstance(error, HTTPException)
    if error.status_code not in (404, 405):
        return await http_exception_handler(request, error)
    _asked.set(request)
    if error.status_code == 404:
        hint = "/v1/openapi.json has all that there is for programs, /console is for people"
        absent = Absent("there is nothing at this address", hint=hint)
        return _for_sockets() if _is_for_sockets(request) else wrong(absent)
    allowed = _allowed(request)
    problem = InputError("not a method of this address", received=request.method[:20], accepted=allowed)
    response = wrong(problem, 405)
    response.headers["Allow"] = allowed
    return response


def _is_for_sockets(request: Request) -> bool:
    opened = {**request.scope, "type": "websocket"}
    return any(route.matches(opened)[0] is Match.FULL for route in request.app.routes)


def _for_sockets() -> Response:
    hint = "/v1/asyncapi.json says what goes over it"
    answer = wrong(InputError("this address is for WebSockets", hint=hint), 426)
    answer.headers["Upgrade"], answer.headers["Connection"] = "websocket", "Upgrade"
    return answer


async def went_wrong(request: Request, _: Exception) -> Response:
    """What nobody thought of, and the log has in full: it is no matter of whoever asks, but Problem Details all the
    same.
    """
    _asked.set(request)
    return wrong(TidingsError("something went wrong here", hint="the log of the service says what"), 500)


def _allowed(request: Request) -> str:
    """All methods of an address. Whoever raises the error knows those of one route only."""
    routes = request.app.routes
    found = [method for method in METHODS if _is_answered(routes, {**request.scope, "method": method})]
    return ", ".join(["HEAD", *found] if "GET" in found else found)


def _is_answered(routes: Sequence[BaseRoute], scope: Scope) -> bool:
    """Whether the first route that takes a request has its method."""
    taking = next((route for route in routes if route.matches(scope)[0] is Match.FULL), None)
    return scope["method"] in (getattr(taking, "methods", None) or ())


def status_of(problem: TidingsError) -> int:
    """The status that fits an error."""
    return next((number for kind, number in STATUSES if isinstance(problem, kind)), 500)
