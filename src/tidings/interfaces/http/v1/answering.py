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
from starlette.requests import HTTPConnection
from starlette.routing import Match
from starlette.types import Scope

from tidings.errors import IdTaken, InputError, TidingsError
from tidings.interfaces.http import answers, problems, writing
from tidings.interfaces.http.refused import Refused
from tidings.interfaces.http.same_origin import SAFE
from tidings.interfaces.http.v1.forms import Problem

MEANINGS = {
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


class Versioned(answers.Answering):
    """A route below `/v1`. Elsewhere an id that is taken is 422, as clients that are older know it. What changes
    something waits for its turn, so that reading does not wait for it. What it depends on (who asks) takes the request
    alone.
    """

    is_strict = True

    def __init__(self, path: str, endpoint: Callable[..., Any], **more: Any) -> None:
        is_safe = SAFE.issuperset(more.get("methods") or ("GET",))
        super().__init__(path, endpoint if is_safe else writing.in_turn(endpoint), **more)

    @cached_property
    def callers(self) -> dict[str, Dependency]:
        """What finds out who asks, by the names that the endpoint has for them."""
        return {str(each.name): cast(Dependency, each.call) for each in self.dependant.dependencies}

    def handler(self) -> answers.Handler:
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
        return status_of(problem)

    def check(self, request: Request) -> None:
        super().check(request)
        refuse_repeated_parameters(request)
        writing.begin(request.app)


class Action(Versioned):
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
        raise Refused(400, InputError("a parameter stands twice", where=twice[:80]))


def status_of(problem: TidingsError) -> int:
    """The status that fits an error."""
    return 409 if isinstance(problem, IdTaken) else answers.status_of(problem)


def wrong(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """What may be answered besides, for the description of a route."""
    return {
        status: {"description": MEANINGS[status], "content": {problems.MEDIA_TYPE: {"schema": _SCHEMA}}}
        for status in sorted({*statuses, 401, 403, 429, 503})
    }


_SCHEMA = {"$ref": f"#/components/schemas/{Problem.__name__}"}

line = json.JSONEncoder(separators=(",", ":")).encode
"""A value as a line of JSON."""
