"""All routes of the application, read from the application itself.

A new route is tested without further work. A route that is public on purpose is listed in `OPEN` with the reason.
All others answer 401 without a token, and 401 or 403 with a token of another scope.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

import httpx
from starlette.routing import Mount

OPEN = {
    "/": "says where the console is, and nothing else",
    "/healthz": "load balancers and supervisors ask it",
    "/readyz": "the same",
    "/v1/openapi.json": "a description of the interface, the same everywhere",
    "/v1/asyncapi.json": "the same for streams",
    "/problems": "what errors mean, the same everywhere",
    "/feeds/{name}": "its address is the secret",
    "/feeds/{token}/archive/{number}": "its address is the secret",
    "/opml/{token}": "its address is the secret",
    "/hub": "anyone with the address of a feed may follow it; callbacks are verified",
    "/RPC2": "content systems ping without a token; its other methods want one (test_pings.py)",
    "/websub/{word}": "hubs call back; the word is the secret",
    "/console/login": "the login form",
    "/console/logout": "forgets the cookie",
    "/console/static/{name}": "scripts and styles, the same everywhere",
    "/console/{rest:path}": "there is no such page",
}
"""Routes without a token, and why."""


ANY_TOKEN = {
    "/console": "redirects to the first page that the scope of the token allows",
    "/console/browse": "any token may see the shape of publications and metadata",
    "/console/browse/schema": "the same",
    "/console/browse/taxonomies": "the same",
    "/console/browse/references": "the same",
    "/console/browse/metadata": "the same",
    "/console/browse/metadata/class/{name}": "the same",
    "/console/browse/metadata/resource": "the same",
    "/console/browse/model": "the same",
    "/console/browse/rules": "the same",
}
"""Routes that accept a token of any scope, and why."""


PARAMETER = re.compile(r"{(\w+)(?::\w+)?}")


REFUSED = (401, 403)


@dataclass(frozen=True)
class Route:
    """A method and a path with parameters; the names of its query parameters, if restricted; and its media type,
    where another route has the same path.
    """

    method: str
    path: str
    names: frozenset[str] | None = None
    takes: str | None = None
    is_json: bool = False
    """Whether its body is parsed into a model."""

    def at(self, *values: str) -> str:
        """Return the path with these parameters; the last one also fills the rest."""
        remaining = [*values, *[values[-1]] * 9] if values else []
        return PARAMETER.sub(lambda _: remaining.pop(0), self.path)

    def query(self, values: dict[str, str]) -> str:
        """Return those of the parameters that the route accepts, as a query string."""
        return urlencode(
            {name: value for name, value in values.items() if self.names is None or name in self.names}
        )


def walk(routes: Sequence[Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield each route with its whole path, including those of included routers."""
    for route in routes:
        if hasattr(route, "original_router"):
            yield from walk(route.original_router.routes, prefix + route.include_context.prefix)
        elif isinstance(route, Mount):
            yield from (
                walk(route.routes or [], prefix + route.path)
                if route.routes
                else [(prefix + route.path + "/{rest:path}", route)]
            )
        else:
            yield prefix + route.path, route


def methods_of(route: Any) -> list[str]:
    return sorted(getattr(route, "methods", None) or ())


def names_of(route: Any) -> frozenset[str] | None:
    return frozenset(route.parameters) if getattr(route, "is_strict", False) else None


def is_json(route: Any) -> bool:
    return getattr(route, "is_strict", False) and getattr(route, "body_field", None) is not None


def ask(client: httpx.Client, route: Route, path: str, **more: Any) -> httpx.Response:
    """Send a request and return the answer. Event streams have no end, so they are not read."""
    if route.takes:
        more["headers"] = {"Content-Type": route.takes} | more.get("headers", {})
    with client.stream(route.method, path, **more) as answer:
        if "event-stream" not in answer.headers.get("content-type", ""):
            answer.read()
        return answer


def leads_to_login(answer: httpx.Response) -> bool:
    """Whether a page redirects to the login page."""
    return answer.status_code == 303 and answer.headers["location"].startswith("/console/login")
