"""Default security headers: browsers run nothing in a response that does not say otherwise.

A metadata schema is returned as it was loaded, and RDF/XML may contain an XHTML `<script>` in a literal, which browsers
would run in the origin of the console. Pages and feeds have policies of their own.
"""

from __future__ import annotations

from starlette.types import ASGIApp, Message, Receive, Scope, Send

HEADERS = {
    b"x-content-type-options": b"nosniff",
    b"content-security-policy": (
        b"default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
}
"""Headers of responses that do not set them."""


class SecurityHeaders:
    """Outermost middleware: it also covers the responses to failures of the application."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def sent(message: Message) -> None:
            if message["type"] == "http.response.start":
                given = list(message.get("headers", ()))
                names = {name.lower() for name, _ in given}
                missing = [each for each in HEADERS.items() if each[0] not in names]
                message = {**message, "headers": [*given, *missing]}
            await send(message)

        await self._app(scope, receive, sent)
