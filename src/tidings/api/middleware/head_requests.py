"""`HEAD` wherever `GET` is: the same status and headers, and nothing behind them (RFC 9110, 9.3.2). Who watches over a
service asks it so.

The server leaves the body of such an answer out by itself; it only has to be made.
"""

from __future__ import annotations

from starlette.types import ASGIApp, Receive, Scope, Send

HEAD_SCOPE_KEY = "tidings.head"
"""In the scope of a request that was a `HEAD`: what would go on and on ends after its headers."""


class HeadRequestMiddleware:
    """Around the application: a request for the head of something is one for the thing itself."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["method"] == "HEAD":
            scope = {**scope, "method": "GET", HEAD_SCOPE_KEY: True}
        await self._app(scope, receive, send)
