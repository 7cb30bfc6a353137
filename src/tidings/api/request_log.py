"""Request log, metrics and traces, by route and never by path: the path of a feed is a secret."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from contextlib import ExitStack
from time import perf_counter
from typing import Any
from uuid import uuid4

from fastapi import Request

from tidings.operations import logs, traces
from tidings.operations.metrics import Metrics

REQUEST_ID = b"x-request-id"
NO_ROUTE = "(none)"
QUIET = ("/healthz", "/readyz", "/metrics")
"""Probes, which are requested every few seconds, are not logged."""
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")

_GOOD_ID = re.compile(rb"[A-Za-z0-9_.-]{1,64}")
_NOTED = "tidings.noted"

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

_log = logs.get_logger("tidings.requests")


SUBJECTS = {
    "/v1/publications/{id": "publication",
    "/v1/subscriptions/{id": "subscription",
    "/v1/destinations/{id": "destination",
}
"""Prefixes of routes about something with an id, and its field in the log."""


def note_request_ids(request: Request, **ids: str) -> None:
    """Add ids to the log of a request: `publication`, `subscription`, `destination` ..."""
    request.scope.setdefault(_NOTED, {}).update(ids)


class RequestLogMiddleware:
    """Middleware that counts, logs and traces requests."""

    def __init__(self, app: App, metrics: Metrics) -> None:
        self._app, self._metrics = app, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            with self._metrics.clients.labels("websocket").track_inprogress(), _context(scope):
                await self._app(scope, receive, send)
        elif scope["type"] == "http":
            await self._call_logged(scope, receive, send)
        else:
            await self._app(scope, receive, send)

    async def _call_logged(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope[_NOTED] = {}
        began, answer = perf_counter(), ResponseRecord(send, self._metrics)
        with _context(scope) as id, _span(scope), answer:
            answer.id = id
            try:
                await self._app(scope, receive, answer)
            finally:
                self._count(scope, answer.status, perf_counter() - began)

    def _count(self, scope: Scope, status: int, seconds: float) -> None:
        route = getattr(scope.get("route"), "path", NO_ROUTE)
        method = scope["method"] if scope["method"] in METHODS else "OTHER"
        self._metrics.requests.labels(method, route, str(status)).inc()
        self._metrics.request_seconds.labels(route).observe(seconds)
        if route not in QUIET:
            _trace(route, status, scope[_NOTED])
            milliseconds = round(seconds * 1_000, 1)
            _log.info(
                "request",
                method=method,
                route=route,
                status=status,
                milliseconds=milliseconds,
                **_subject(scope, route),
                **scope[_NOTED],
            )


def _subject(scope: Scope, route: str) -> dict[str, str]:
    """Return the id in the path, for routes in `SUBJECTS` only: the parameter of a feed's route is its address."""
    named = next((name for below, name in SUBJECTS.items() if route.startswith(below)), None)
    return {named: scope["path_params"]["id"]} if named else {}


class ResponseRecord(ExitStack):
    """Passes a response on and remembers its status; a stream counts as a connected client."""

    status = 500
    id = b""

    def __init__(self, send: Send, metrics: Metrics) -> None:
        super().__init__()
        self._send, self._metrics = send, metrics

    async def __call__(self, message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            headers = [*message.get("headers", ()), (REQUEST_ID, self.id)]
            message = {**message, "headers": headers}
            if any(name == b"content-type" and b"text/event-stream" in value for name, value in headers):
                self.enter_context(self._metrics.clients.labels("sse").track_inprogress())
        await self._send(message)


class _context(ExitStack):
    """Binds the id of a request, which a proxy may have set, to everything logged while it is handled."""

    def __init__(self, scope: Scope) -> None:
        super().__init__()
        received = next((value for name, value in scope["headers"] if name == REQUEST_ID), b"")
        self._id = received if _GOOD_ID.fullmatch(received) else uuid4().hex[:16].encode()

    def __enter__(self) -> bytes:  # type: ignore[override]
        self.enter_context(logs.bind_fields(request=self._id.decode()))
        return self._id


def _span(scope: Scope) -> Any:
    """Start a span that continues the caller's trace, if there is one."""
    if not traces.is_tracing() or scope["path"] in QUIET:
        return ExitStack()
    parent = next(
        (value.decode("latin-1") for name, value in scope["headers"] if name == b"traceparent"), None
    )
    name = "publish" if scope["method"] == "POST" and "publications" in scope["path"] else "request"
    return traces.start_span(
        name, parent=parent, attributes={"http.request.method": scope["method"]}, kind="server"
    )


def _trace(route: str, status: int, noted: Mapping[str, str]) -> None:
    """Add the outcome to the span. A refused request has not failed: the caller was wrong."""
    ids = {f"tidings.{name}": id for name, id in noted.items()}
    traces.annotate_span(
        {"http.route": route, "http.response.status_code": status} | ids, failed=status >= 500
    )
