"""Answer for requests that are cancelled by a shutdown."""

from __future__ import annotations

import asyncio

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tidings.api.routes import problem_response
from tidings.errors import TidingsError


class CancellationMiddleware:
    """Answers 503 to a cancelled request that has no response yet; uvicorn would log a traceback instead."""

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
        except asyncio.CancelledError:  # only a shutdown cancels requests
            if not has_begun:
                hint = "try again in a moment"
                problem = TidingsError("the service is shutting down", hint=hint)
                await problem_response(problem, 503)(scope, receive, send)
