"""ASGI middleware: security headers, request framing, HEAD requests, and requests cancelled by a shutdown."""

from __future__ import annotations

import asyncio
import re
from urllib.parse import unquote

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tidings.api.routes import problem_response
from tidings.errors import InputError, TidingsError

HEADERS = {
    b"x-content-type-options": b"nosniff",
    b"content-security-policy": (
        b"default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
}
"""Headers of responses that do not set them."""

LENGTH, CODING, HOST = b"content-length", b"transfer-encoding", b"host"
_ABSOLUTE_TARGET = re.compile(rb"https?://([^/?#@]+)(/.*)?", re.IGNORECASE)

HEAD_SCOPE_KEY = "tidings.head"
"""Marks the scope of a `HEAD` request: streams end after their headers."""


class SecurityHeaders:
    """Default security headers: browsers run nothing in a response unless its headers allow it.

    A metadata schema is returned as it was loaded, and RDF/XML may contain an XHTML `<script>` in a literal, which
    browsers would run in the origin of the console. Pages and feeds have policies of their own. As the outermost
    middleware it also covers the responses to failures of the application.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = list(message.get("headers", ()))
                names = {name.lower() for name, _ in headers}
                missing = [(name, value) for name, value in HEADERS.items() if name not in names]
                message = {**message, "headers": [*headers, *missing]}
            await send(message)

        await self._app(scope, receive, send_with_headers if scope["type"] == "http" else send)


class RequestGuard:
    """Requirements of HTTP/1.1 (RFC 9112) that uvicorn with h11 leaves to the application.

    Section 3.2.2: the target may be absolute, as in `GET http://example.org/healthz`; its host replaces the header.
    Section 6.1: a request with both `Transfer-Encoding` and `Content-Length` may smuggle a second request past a proxy;
    it is refused, and the connection is closed.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            if {LENGTH, CODING} <= {name for name, _ in scope["headers"]}:
                await _build_two_lengths_response()(scope, receive, send)
                return
            if not scope["raw_path"].startswith(b"/"):
                scope = _resolve_absolute_target(scope)
        await self._app(scope, receive, send)


def _build_two_lengths_response() -> ASGIApp:
    message, accepted = "the length of the body is given twice", "Content-Length or Transfer-Encoding"
    response = problem_response(InputError(message, accepted=accepted), 400)
    response.headers["connection"] = "close"
    return response


def _resolve_absolute_target(scope: Scope) -> Scope:
    """Return the scope of an absolute target as that of a relative one; other scopes unchanged."""
    target = _ABSOLUTE_TARGET.fullmatch(scope["raw_path"])
    if target is None:
        return scope
    headers = [(name, value) for name, value in scope["headers"] if name != HOST]
    raw = target[2] or b"/"
    return {**scope, "raw_path": raw, "path": unquote(raw.decode()), "headers": [(HOST, target[1]), *headers]}


class HeadRequestMiddleware:
    """`HEAD` for every `GET` route: the same status and headers without a body (RFC 9110, section 9.3.2).

    The server omits the body of the response by itself.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["method"] == "HEAD":
            scope = {**scope, "method": "GET", HEAD_SCOPE_KEY: True}
        await self._app(scope, receive, send)


class CancellationMiddleware:
    """Answers 503 to a cancelled request that has no response yet; uvicorn would log a traceback instead."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        has_begun = scope["type"] != "http"

        async def send_and_note(message: Message) -> None:
            nonlocal has_begun
            has_begun = True
            await send(message)

        try:
            await self._app(scope, receive, send_and_note)
        except asyncio.CancelledError:  # only a shutdown cancels requests
            if not has_begun:
                problem = TidingsError("the service is shutting down", hint="try again in a moment")
                await problem_response(problem, 503)(scope, receive, send)
