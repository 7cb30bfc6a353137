"""What HTTP/1.1 asks of a server, and uvicorn with h11 leaves to whoever is behind it (RFC 9112).

3.2.2: a target may come with scheme and host, `GET http://example.org/healthz`, as for a proxy; the host counts then.
6.1: what has a `Transfer-Encoding` and a `Content-Length` may hide a second request from one of two readers, a proxy
and us: it is refused, and the connection ends.
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
    """Around the application, next to the server."""

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
    what, accepted = "the length of the body is said twice", "Content-Length or Transfer-Encoding"
    answer = problem_response(InputError(what, accepted=accepted), 400)
    answer.headers["connection"] = "close"
    return answer


def _own(scope: Scope) -> Scope:
    """The request as it would be without scheme and host in its target; others are as they came."""
    found = _WITH_HOST.fullmatch(scope["raw_path"])
    if found is None:
        return scope
    headers = [(name, value) for name, value in scope["headers"] if name != HOST]
    raw = found[2] or b"/"
    return {**scope, "raw_path": raw, "path": unquote(raw.decode()), "headers": [(HOST, found[1]), *headers]}
