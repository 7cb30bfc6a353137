"""`HEAD` for every `GET` route: the same status and headers without a body (RFC 9110, section 9.3.2).

The server omits the body of the response by itself.
"""

from __future__ import annotations

from starlette.types import ASGIApp, Receive, Scope, Send

HEAD_SCOPE_KEY = "tidings.head"
"""Marks the scope of a `HEAD` request: streams end after their headers."""


class HeadRequestMiddleware:
    """Handles a `HEAD` request as a `GET` request."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["method"] == "HEAD":
            scope = {**scope, "method": "GET", HEAD_SCOPE_KEY: True}
        await self._app(scope, receive, send)
