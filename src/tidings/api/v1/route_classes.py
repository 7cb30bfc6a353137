"""Route classes below `/v1`: strict parameters, write limiting, and the errors in the OpenAPI document."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from functools import cached_property
from typing import Any, cast
from urllib.parse import quote

from fastapi import Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.routing import Match
from starlette.types import Scope

from tidings.api import problem_details, routes, write_limiter
from tidings.api.csrf import SAFE_METHODS
from tidings.api.parameters import refuse_repeated_parameters
from tidings.api.routes import Handler
from tidings.api.v1.schemas import Problem
from tidings.errors import IdConflict, TidingsError

STATUS_DESCRIPTIONS = {
    400: "Malformed request",
    401: "Missing or invalid token",
    403: "The token lacks the scope",
    404: "It does not exist, or belongs to another subscriber",
    408: "The body was not received in time",
    409: "The id is already used for something else, or a component is not installed",
    413: "The body is too large",
    415: "Unsupported media type or compression",
    422: "Invalid request: `pointer` and `place` say where",
    429: "Too many requests: retry after `Retry-After`",
    503: "The store is unavailable, or too many requests wait",
}

Dependency = Callable[[Request], Awaitable[Any]]


class VersionedRoute(routes.ProblemRoute):
    """A route below `/v1`.

    A used id is answered with 409; elsewhere with 422, which older clients expect. Endpoints that write run under the
    write limiter. Dependencies, which authenticate the caller, take nothing but the request.
    """

    is_strict = True

    def __init__(self, path: str, endpoint: Callable[..., Any], **options: Any) -> None:
        is_safe = SAFE_METHODS.issuperset(options.get("methods") or ("GET",))
        super().__init__(path, endpoint if is_safe else write_limiter.limit_writes(endpoint), **options)

    @cached_property
    def callers(self) -> dict[str, Dependency]:
        """The dependencies that authenticate the caller, by parameter name."""
        return {
            str(dependency.name): cast(Dependency, dependency.call)
            for dependency in self.dependant.dependencies
        }

    def handler(self) -> Handler:
        """Authenticate before the body is read; FastAPI does it after.

        Callers without a token would otherwise occupy memory and learn the problems of their body. FastAPI checks
        again afterwards: reading a body may take long.
        """
        answer, callers = super().handler(), tuple(self.callers.values()) if self.body_field else ()

        async def authenticate(request: Request) -> Response:
            for caller in callers:
                await caller(request)
            return await answer(request)

        return authenticate if callers else answer

    def status(self, problem: TidingsError) -> int:
        return v1_status_of(problem)

    def check(self, request: Request) -> None:
        super().check(request)
        refuse_repeated_parameters(request)
        write_limiter.bind_write_limiter(request.app)


class ActionRoute(VersionedRoute):
    """A route whose path ends in an action, where an id could be as well. It refuses all methods but its own.

    `/v1/subscriptions/a/pause` pauses `a`; the subscription `a/pause` is at `/v1/subscriptions/a%2Fpause`.
    """

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        match, child_scope = super().matches(scope)
        written = scope.get("raw_path") or quote(scope["path"]).encode()
        if match is Match.NONE or not written.endswith(self._ending):
            return Match.NONE, {}
        return Match.FULL, child_scope  # `handle` answers 405 for other methods

    @cached_property
    def _ending(self) -> bytes:
        return f"/{self.path.rpartition('/')[2]}".encode()


def v1_status_of(problem: TidingsError) -> int:
    """Return the HTTP status of an error below `/v1`."""
    return 409 if isinstance(problem, IdConflict) else routes.status_of(problem)


def problem_descriptions(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return the error responses of a route, for the OpenAPI document."""
    return {
        status: {
            "description": STATUS_DESCRIPTIONS[status],
            "content": {problem_details.MEDIA_TYPE: {"schema": _SCHEMA}},
        }
        for status in sorted({*statuses, 401, 403, 429, 503})
    }


_SCHEMA = {"$ref": f"#/components/schemas/{Problem.__name__}"}

encode_json_line = json.JSONEncoder(separators=(",", ":")).encode
"""Encodes a value as a line of JSON."""


class FastRoute(VersionedRoute):
    """A route that reads its query and header parameters itself.

    FastAPI resolves each parameter and dependency for every request, sent or not. For a small publication that takes
    longer than everything else. Declaration, description and errors are the same as on other routes.
    """

    def handler(self) -> Handler:
        declared, endpoint = self.dependant, self.endpoint
        assert not (declared.path_params or declared.cookie_params or declared.body_params), "not for these"
        callers = self.callers

        async def answer(request: Request) -> Response:
            values: dict[str, Any] = {name: await call(request) for name, call in callers.items()}
            values |= _read_parameters("query", declared.query_params, request.query_params)
            values |= _read_parameters("header", declared.header_params, request.headers)
            response: Response = await endpoint(request, **values)
            return response

        return answer


def _read_parameters(place: str, declared: Any, received: Any) -> dict[str, Any]:
    """Return the values of the parameters that were sent; the others have their defaults."""
    values: dict[str, Any] = {}
    for field in declared:
        if (text := received.get(field.alias)) is not None:
            values[field.name], wrong = field.validate(text, values, loc=(place, field.alias))
            if wrong:
                raise RequestValidationError(wrong)
    return values
