"""What the routes of the API have in common: an id that is taken is a conflict, a parameter that nobody reads is
refused, and what may go wrong is described.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Awaitable, Callable
from functools import cached_property
from typing import Any, cast
from urllib.parse import quote

from fastapi import Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.requests import HTTPConnection
from starlette.routing import Match
from starlette.types import Scope

from tidings.api import problem_details, routes
from tidings.api.http_error import HttpError
from tidings.api.middleware import write_limiter
from tidings.api.middleware.csrf import SAFE_METHODS
from tidings.api.routes import Handler
from tidings.api.v1.schemas import Problem
from tidings.errors import IdTaken, InputError, TidingsError

STATUS_DESCRIPTIONS = {
    400: "The request cannot be read",
    401: "A token is needed",
    403: "The token is for something else",
    404: "It is not there, or is somebody else's",
    408: "The body does not come",
    409: "The id stands for something else, or something is not installed",
    413: "The body is too large",
    415: "Nothing of this media type is taken, nor what is compressed",
    422: "The request cannot be taken: `pointer` and `place` say why",
    429: "Too many requests: `Retry-After` says when to come back",
    503: "The store cannot be used, or too many wait",
}

Dependency = Callable[[Request], Awaitable[Any]]


class VersionedRoute(routes.ProblemRoute):
    """A route below `/v1`. Elsewhere an id that is taken is 422, as clients that are older know it. What changes
    something waits for its turn, so that reading does not wait for it. What it depends on (who asks) takes the request
    alone.
    """

    is_strict = True

    def __init__(self, path: str, endpoint: Callable[..., Any], **more: Any) -> None:
        is_safe = SAFE_METHODS.issuperset(more.get("methods") or ("GET",))
        super().__init__(path, endpoint if is_safe else write_limiter.limit_writes(endpoint), **more)

    @cached_property
    def callers(self) -> dict[str, Dependency]:
        """What finds out who asks, by the names that the endpoint has for them."""
        return {str(each.name): cast(Dependency, each.call) for each in self.dependant.dependencies}

    def handler(self) -> routes.Handler:
        """FastAPI reads a body before it looks who sends it: whoever may not would be told what is wrong with it, and
        have it waited for. So that is done before, and by FastAPI again: a body may be long on its way.
        """
        answer, callers = super().handler(), tuple(self.callers.values()) if self.body_field else ()

        async def let_in(request: Request) -> Response:
            for caller in callers:
                await caller(request)
            return await answer(request)

        return let_in if callers else answer

    def status(self, problem: TidingsError) -> int:
        return v1_status_of(problem)

    def check(self, request: Request) -> None:
        super().check(request)
        refuse_repeated_parameters(request)
        write_limiter.bind_write_limiter(request.app)


class ActionRoute(VersionedRoute):
    """A route whose path ends in a word where an id could stand. It refuses all methods but its own.

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


def refuse_repeated_parameters(request: HTTPConnection) -> None:
    """Refuse an address with a parameter twice: servers read the last one, and proxies may read the first."""
    named = Counter(name for name, _ in request.query_params.multi_items())
    twice = next((name for name, times in named.items() if times > 1), None)
    if twice is not None:
        raise HttpError(400, InputError("a parameter stands twice", where=twice[:80]))


def v1_status_of(problem: TidingsError) -> int:
    """The status that fits an error."""
    return 409 if isinstance(problem, IdTaken) else routes.status_of(problem)


def problem_descriptions(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """What may be answered besides, for the description of a route."""
    return {
        status: {
            "description": STATUS_DESCRIPTIONS[status],
            "content": {problem_details.MEDIA_TYPE: {"schema": _SCHEMA}},
        }
        for status in sorted({*statuses, 401, 403, 429, 503})
    }


_SCHEMA = {"$ref": f"#/components/schemas/{Problem.__name__}"}

encode_json_line = json.JSONEncoder(separators=(",", ":")).encode
"""A value as a line of JSON."""


# Routes that fill in their parameters themselves.
#
# FastAPI looks at each parameter and each dependency anew with every request, whether it was sent or not. For a small
# publication that takes longer than all that is done with it.


class FastRoute(VersionedRoute):
    """A route whose endpoint takes the request, what is declared of its query and headers, and what dependencies make
    of the request alone. It is declared, described and refused as any other.
    """

    def handler(self) -> Handler:
        declared, endpoint = self.dependant, self.endpoint
        assert not (declared.path_params or declared.cookie_params or declared.body_params), "not for these"
        callers = self.callers

        async def answer(request: Request) -> Response:
            values: dict[str, Any] = {name: await call(request) for name, call in callers.items()}
            values |= _read_parameters("query", declared.query_params, request.query_params)
            values |= _read_parameters("header", declared.header_params, request.headers)
            found: Response = await endpoint(request, **values)
            return found

        return answer


def _read_parameters(place: str, declared: Any, given: Any) -> dict[str, Any]:
    """The values of those parameters that were sent; the others are as they are by default."""
    values: dict[str, Any] = {}
    for field in declared:
        if (text := given.get(field.alias)) is not None:
            values[field.name], wrong = field.validate(text, values, loc=(place, field.alias))
            if wrong:
                raise RequestValidationError(wrong)
    return values
