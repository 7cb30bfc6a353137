"""Route classes that answer errors with Problem Details, the status of each error, and joining of routers."""

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
from tidings.api.parameters import (
    build_media_type_error,
    check_parameters,
    parameter_problem,
    refuse_other_parameters,
)
from tidings.api.problem_details import HttpError
from tidings.api.request_body import LimitedRequest, UnsupportedEncoding
from tidings.errors import (
    Gone,
    InputError,
    NotAllowed,
    NotFound,
    Overloaded,
    RateLimited,
    SetupError,
    StoreError,
    TidingsError,
)
from tidings.metadata.replication.peer import Unreachable
from tidings.objects.outbox.database import DatabaseUnavailable

STATUSES: tuple[tuple[type[TidingsError], int], ...] = (
    (NotAllowed, 403),
    (RateLimited, 429),
    (NotFound, 404),
    (Gone, 410),
    (DatabaseUnavailable, 503),
    (InputError, 422),
    (SetupError, 409),
    (StoreError, 503),
    (Overloaded, 503),
    (Unreachable, 503),
)
"""HTTP status by error class; the first class that fits counts."""

HEADERS = {401: {"WWW-Authenticate": "Bearer"}, 503: {"Retry-After": "5"}}
"""Headers by status."""

METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")

_current_request: ContextVar[Request | None] = ContextVar("current_request", default=None)

Handler = Callable[[Request], Coroutine[Any, Any, Response]]


class ProblemRoute(APIRoute):
    """A route that answers errors with Problem Details; subclasses override `wrong` for other formats.

    Unknown query parameters are ignored, as feed readers and browsers add some, unless the route is strict.
    """

    is_strict = False

    @cached_property
    def parameters(self) -> list[str]:
        """The names of its query parameters."""
        declared = get_flat_params(self.dependant)
        return sorted(field.alias for field in declared if isinstance(field.field_info, params.Query))

    def wrong(self, problem: TidingsError, status: int) -> Response:
        return problem_response(problem, status)

    def status(self, problem: TidingsError) -> int:
        return status_of(problem)

    def check(self, request: Request) -> None:
        """Refuse invalid addresses before the endpoint runs."""
        check_parameters(request)

    def handler(self) -> Handler:
        """Return the handler of requests without errors."""
        return super().get_route_handler()

    def get_route_handler(self) -> Handler:
        answer = self.handler()

        async def answered(request: Request) -> Response:
            limited = LimitedRequest(request.scope, request.receive)
            _current_request.set(limited)
            try:
                self.check(request)
                response = await answer(limited)
            except (HttpError, RequestValidationError, TidingsError, HTTPException) as error:
                problem, status = self._problem(error, limited)
                response = self.wrong(problem, status)
                response.headers.update(retry_after_headers(problem))
            response.headers.update(getattr(limited.state, "headers", {}))
            return response

        return answered

    def _problem(self, error: Exception, request: Request) -> tuple[TidingsError, int]:
        """Return the error and its status. FastAPI wraps errors of reading a body in its own."""
        if isinstance(error, HTTPException):
            if not isinstance(error.__cause__, HttpError):
                raise error
            error = error.__cause__
        if isinstance(error, HttpError):
            return error.problem, error.status
        if isinstance(error, RequestValidationError):
            if isinstance(error.body, bytes):  # not declared as JSON: FastAPI parses the others
                return build_media_type_error(error.body, request.headers.get("content-type", "")), 415
            is_body = error.errors()[0]["loc"][0] == "body"
            return parameter_problem(error, self._members()), 422 if is_body else 400
        if isinstance(error, TidingsError):
            return error, self.status(error)
        raise error

    def _members(self) -> list[str]:
        """Return the members that a body may have, if the route declares a model."""
        model = self.body_field.field_info.annotation if self.body_field else None
        return list(getattr(model, "model_fields", ()))


class PlainTextRoute(ProblemRoute):
    """A route that answers errors with a line of text, for hubs and content systems."""

    def wrong(self, problem: TidingsError, status: int) -> Response:
        return PlainTextResponse(f"{problem}\n", status)


def problem_response(problem: TidingsError, status: int | None = None) -> Response:
    """Return the Problem Details of an error."""
    fitting = status or status_of(problem)
    headers = HEADERS.get(fitting, {}) | retry_after_headers(problem)
    if isinstance(problem, UnsupportedEncoding):
        headers["Accept-Encoding"] = "identity"
    request = _current_request.get()
    members = problem_details.problem_members(problem, fitting, request.url.path if request else None)
    return JSONResponse(members, fitting, headers, media_type=problem_details.MEDIA_TYPE)


def retry_after_headers(problem: TidingsError) -> dict[str, str]:
    """Return the `Retry-After` header of a rate limit error; nothing for other errors."""
    return {"Retry-After": str(problem.seconds)} if isinstance(problem, RateLimited) else {}


def refuse_unknown_parameters(request: Request) -> None:
    """Refuse unknown parameters on strict routes, so that a mistyped `?limt=5` is not silently ignored."""
    route = request.scope.get("route")
    if isinstance(route, ProblemRoute) and route.is_strict:
        refuse_other_parameters(request.query_params, route.parameters)


async def handle_not_found(request: Request, error: Exception) -> Response:
    """Answer 404 and 405 with Problem Details."""
    assert isinstance(error, HTTPException)
    if error.status_code not in (404, 405):
        return await http_exception_handler(request, error)
    _current_request.set(request)
    if error.status_code == 404:
        hint = "/v1/openapi.json describes the API, /console is the web console"
        absent = NotFound("there is nothing at this address", hint=hint)
        return _upgrade_required() if _is_websocket_path(request) else problem_response(absent)
    allowed = _allowed_methods(request)
    problem = InputError("method not allowed", received=request.method[:20], accepted=allowed)
    response = problem_response(problem, 405)
    response.headers["Allow"] = allowed
    return response


def _is_websocket_path(request: Request) -> bool:
    opened = {**request.scope, "type": "websocket"}
    return any(route.matches(opened)[0] is Match.FULL for route in request.app.routes)


def _upgrade_required() -> Response:
    hint = "/v1/asyncapi.json describes its messages"
    answer = problem_response(InputError("this address is for WebSockets", hint=hint), 426)
    answer.headers["Upgrade"], answer.headers["Connection"] = "websocket", "Upgrade"
    return answer


async def handle_server_error(request: Request, _: Exception) -> Response:
    """Answer an unexpected exception, which is logged in full, without its details."""
    _current_request.set(request)
    return problem_response(
        TidingsError("internal error", hint="the log of the service has the details"), 500
    )


def _allowed_methods(request: Request) -> str:
    """Return all methods of an address. The error itself has only those of one route."""
    routes = request.app.routes
    allowed = [method for method in METHODS if _has_method(routes, {**request.scope, "method": method})]
    return ", ".join(["HEAD", *allowed] if "GET" in allowed else allowed)


def _has_method(routes: Sequence[BaseRoute], scope: Scope) -> bool:
    """Return whether the first route that matches a request has its method."""
    matching = next((route for route in routes if route.matches(scope)[0] is Match.FULL), None)
    return scope["method"] in (getattr(matching, "methods", None) or ())


def status_of(problem: TidingsError) -> int:
    """Return the HTTP status of an error."""
    return next((number for kind, number in STATUSES if isinstance(problem, kind)), 500)


Lifespan = Callable[[Any], AbstractAsyncContextManager[Any]]


def join_routers(into: FastAPI | APIRouter, *routers: APIRouter) -> None:
    """Add the routes and lifespans of routers unchanged.

    `include_router` would build each route again with the additions of the outer router, and look up each request in a
    tree of routers. Our routers declare everything themselves, so a flat list is enough.
    """
    outer = into.router if isinstance(into, FastAPI) else into
    for router in routers:
        outer.routes.extend(router.routes)
        outer.lifespan_context = _combine_lifespans(outer.lifespan_context, router.lifespan_context)


def _combine_lifespans(first: Lifespan, second: Lifespan) -> Lifespan:
    @asynccontextmanager
    async def lifespan(app: Any) -> AsyncIterator[None]:
        async with first(app), second(app):
            yield

    return lifespan
