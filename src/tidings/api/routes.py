"""Answers for machines: JSON, and what is wrong as Problem Details: the facts of the error, and a status that fits."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from contextvars import ContextVar
from functools import cached_property
from typing import Any

from fastapi import APIRouter, FastAPI, Request, Response, params
from fastapi.dependencies.utils import get_flat_params
from fastapi.exception_handlers import http_exception_handler
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, PlainTextResponse
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from starlette.routing import BaseRoute, Match
from starlette.types import Scope

from tidings.api import problem_details
from tidings.api.http_error import HttpError
from tidings.api.parameters import (
    build_media_type_error,
    check_parameters,
    parameter_problem,
    refuse_other_parameters,
)
from tidings.api.request_body import EncodedBody, LimitedRequest
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
from tidings.metadata.replication.peer import Unreachable
from tidings.objects.outbox.database import Away

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

_current_request: ContextVar[Request | None] = ContextVar("asked", default=None)
"""What is asked for now."""

Handler = Callable[[Request], Coroutine[Any, Any, Response]]


class ProblemRoute(APIRoute):
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
        return problem_response(problem, status)

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
            asked = LimitedRequest(request.scope, request.receive)
            _current_request.set(asked)
            try:
                self.check(request)
                response = await answer(asked)
            except (HttpError, RequestValidationError, TidingsError, HTTPException) as error:
                problem, status = self._problem(error, asked)
                response = self.wrong(problem, status)
                response.headers.update(retry_after_headers(problem))
            response.headers.update(getattr(asked.state, "headers", {}))
            return response

        return answered

    def _problem(self, error: Exception, asked: Request) -> tuple[TidingsError, int]:
        """What is wrong, and the status that says so. FastAPI has its own for what goes wrong with a body."""
        if isinstance(error, HTTPException):
            if not isinstance(error.__cause__, HttpError):
                raise error
            error = error.__cause__
        if isinstance(error, HttpError):
            return error.problem, error.status
        if isinstance(error, RequestValidationError):
            if isinstance(error.body, bytes):  # FastAPI reads others
                return build_media_type_error(error.body, asked.headers.get("content-type", "")), 415
            is_body = error.errors()[0]["loc"][0] == "body"
            return parameter_problem(error, self._members()), 422 if is_body else 400
        if isinstance(error, TidingsError):
            return error, self.status(error)
        raise error

    def _members(self) -> list[str]:
        """What a body may have in it, if the route makes a model of it."""
        model = self.body_field.field_info.annotation if self.body_field else None
        return list(getattr(model, "model_fields", ()))


class PlainTextRoute(ProblemRoute):
    """The same for those who read a line of text at most: hubs and content systems."""

    def wrong(self, problem: TidingsError, status: int) -> Response:
        return PlainTextResponse(f"{problem}\n", status)


def problem_response(problem: TidingsError, status: int | None = None) -> Response:
    """An error as an answer."""
    fitting = status or status_of(problem)
    headers = HEADERS.get(fitting, {}) | retry_after_headers(problem)
    if isinstance(problem, EncodedBody):
        headers["Accept-Encoding"] = "identity"
    asked = _current_request.get()
    told = problem_details.problem_members(problem, fitting, asked.url.path if asked else None)
    return JSONResponse(told, fitting, headers, media_type=problem_details.MEDIA_TYPE)


def retry_after_headers(problem: TidingsError) -> dict[str, str]:
    """When whoever came too often may come back, as a header."""
    return {"Retry-After": str(problem.seconds)} if isinstance(problem, TooOften) else {}


def refuse_unknown_parameters(request: Request) -> None:
    """A mistyped `?limt=5` would be answered as if nothing had been asked for: a strict route refuses it."""
    route = request.scope.get("route")
    if isinstance(route, ProblemRoute) and route.is_strict:
        refuse_other_parameters(request.query_params, route.parameters)


async def handle_not_found(request: Request, error: Exception) -> Response:
    """No route is at an address, or none that takes the method: Problem Details, wherever it is."""
    assert isinstance(error, HTTPException)
    if error.status_code not in (404, 405):
        return await http_exception_handler(request, error)
    _current_request.set(request)
    if error.status_code == 404:
        hint = "/v1/openapi.json has all that there is for programs, /console is for people"
        absent = Absent("there is nothing at this address", hint=hint)
        return _for_sockets() if _is_for_sockets(request) else problem_response(absent)
    allowed = _allowed(request)
    problem = InputError("not a method of this address", received=request.method[:20], accepted=allowed)
    response = problem_response(problem, 405)
    response.headers["Allow"] = allowed
    return response


def _is_for_sockets(request: Request) -> bool:
    opened = {**request.scope, "type": "websocket"}
    return any(route.matches(opened)[0] is Match.FULL for route in request.app.routes)


def _for_sockets() -> Response:
    hint = "/v1/asyncapi.json says what goes over it"
    answer = problem_response(InputError("this address is for WebSockets", hint=hint), 426)
    answer.headers["Upgrade"], answer.headers["Connection"] = "websocket", "Upgrade"
    return answer


async def handle_server_error(request: Request, _: Exception) -> Response:
    """What nobody thought of, and the log has in full: it is no matter of whoever asks, but Problem Details all the
    same.
    """
    _current_request.set(request)
    return problem_response(
        TidingsError("something went wrong here", hint="the log of the service says what"), 500
    )


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


# Routes of one router taken into another as they are.


Lifespan = Callable[[Any], AbstractAsyncContextManager[Any]]


def join_routers(into: FastAPI | APIRouter, *routers: APIRouter) -> None:
    """Take over the routes of routers that say everything themselves, where they are and what they depend on, and what
    works beside them.

    `include_router` would work out each route once more, with what the outer router adds, and each request would be
    looked up in a tree of routers: nothing is added here, and the tree is a list.
    """
    outer = into.router if isinstance(into, FastAPI) else into
    for each in routers:
        outer.routes.extend(each.routes)
        outer.lifespan_context = _combine_lifespans(outer.lifespan_context, each.lifespan_context)


def _combine_lifespans(first: Lifespan, second: Lifespan) -> Lifespan:
    @asynccontextmanager
    async def lifespan(app: Any) -> AsyncIterator[None]:
        async with first(app), second(app):
            yield

    return lifespan
