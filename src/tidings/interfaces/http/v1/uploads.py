"""Publications, and many subscriptions, on their way in: no more bytes at a time than memory is meant for.

Each body has a limit. All bodies together have one, too: who comes when it is reached is asked to come back.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import Request

from tidings.errors import TidingsError
from tidings.interfaces.http.bodies import body_of
from tidings.interfaces.http.refused import Refused


class Uploads:
    """The bodies that are held now, in one event loop."""

    def __init__(self, most: int) -> None:
        self._most, self._held = most, 0

    @asynccontextmanager
    async def read(self, request: Request, most: int) -> AsyncIterator[bytes]:
        """The body of a request; it counts until the end of the `with`."""
        held = 0

        def hold(size: int) -> None:
            nonlocal held
            if self._held + size > self._most:
                hint = "come back in a moment"
                raise Refused(503, TidingsError("too much is on its way in already", hint=hint))
            self._held += size
            held += size

        try:
            yield await body_of(request, most, hold)
        finally:
            self._held -= held
