"""A request that is still under way when the service has waited long enough for it to end."""

from __future__ import annotations

import asyncio

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tidings.api.routes import problem_response
from tidings.errors import TidingsError


class CancellationMiddleware:
    """Around the application: who is cut off before anything was answered is told so. It is nobody's fault, and the
    server would draw how it came to be.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        has_begun = scope["type"] != "http"

        async def sent(message: Message) -> None:
            nonlocal has_begun
            has_begun = True
            await send(message)

        try:
            await self._app(scope, receive, sent)
        except asyncio.CancelledError:  # by the server, which ends: nothing else cancels a request
            if not has_begun:
                hint = "send it again in a moment"
                problem = TidingsError("the service ends, and this took too long", hint=hint)
                await problem_response(problem, 503)(scope, receive, send)
