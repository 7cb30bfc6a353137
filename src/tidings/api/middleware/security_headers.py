"""Headers that keep a browser from running what somebody else wrote.

A schema of metadata is answered as it was loaded, and RDF/XML may have a `<script>` of XHTML in a literal: browsers run
it, in the origin of the console. Pages and feeds have policies of their own; every other answer gets this one.
"""

from __future__ import annotations

from starlette.types import ASGIApp, Message, Receive, Scope, Send

HEADERS = {
    b"x-content-type-options": b"nosniff",
    b"content-security-policy": (
        b"default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
}
"""What an answer has unless it says otherwise."""


class SecurityHeaders:
    """Around the application, and what answers for it when it fails."""

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
