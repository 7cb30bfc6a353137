"""Requirements of HTTP/1.1 (RFC 9112) that uvicorn with h11 leaves to the application.

Section 3.2.2: the target may be absolute, as in `GET http://example.org/healthz`; its host replaces the header.
Section 6.1: a request with both `Transfer-Encoding` and `Content-Length` may smuggle a second request past a proxy; it
is refused, and the connection is closed.
"""

from __future__ import annotations

import re
from urllib.parse import unquote

from starlette.types import ASGIApp, Receive, Scope, Send

from tidings.api.routes import problem_response
from tidings.errors import InputError

LENGTH, CODING, HOST = b"content-length", b"transfer-encoding", b"host"
_WITH_HOST = re.compile(rb"https?://([^/?#@]+)(/.*)?", re.IGNORECASE)


class RequestGuard:
    """Middleware next to the server."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            if _has_two_lengths(scope):
                await _refusal()(scope, receive, send)
                return
            if not scope["raw_path"].startswith(b"/"):
                scope = _own(scope)
        await self._app(scope, receive, send)


def _has_two_lengths(scope: Scope) -> bool:
    named = [name for name, _ in scope["headers"] if name in (LENGTH, CODING)]
    return LENGTH in named and CODING in named


def _refusal() -> ASGIApp:
    what, accepted = "the length of the body is given twice", "Content-Length or Transfer-Encoding"
    answer = problem_response(InputError(what, accepted=accepted), 400)
    answer.headers["connection"] = "close"
    return answer


def _own(scope: Scope) -> Scope:
    """Return the scope of an absolute target as that of a relative one; other scopes unchanged."""
    found = _WITH_HOST.fullmatch(scope["raw_path"])
    if found is None:
        return scope
    headers = [(name, value) for name, value in scope["headers"] if name != HOST]
    raw = found[2] or b"/"
    return {**scope, "raw_path": raw, "path": unquote(raw.decode()), "headers": [(HOST, found[1]), *headers]}
