"""Somebody who follows notifications: a cursor, and page after page from it on, at the speed of whoever reads them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from enum import Enum
from types import TracebackType
from typing import TYPE_CHECKING, Self

from tidings.errors import StoreError
from tidings.service.event_pages import Page

if TYPE_CHECKING:
    from tidings.interfaces.http.v1.looking_out import LookOut

_log = logging.getLogger("tidings.notifications")


class Over(Enum):
    """Why a stream ends, though its reader is still there."""

    SERVER = "the server ends"
    TOKEN = "the token is not good any more"
    STORE = "the store cannot be read now"
    GONE = "the reader is gone"


class Follower:
    """Somebody who follows a subscriber's notifications from a cursor on. Used in a `with`."""

    def __init__(self, look_out: LookOut, subscriber: str, token: str, cursor: int, last: int) -> None:
        self._look_out, self.subscriber, self.token, self.cursor = look_out, subscriber, token, cursor
        self.over: Over | None = None
        self._woken = asyncio.Event()
        self._has_looked = cursor >= last
        self._sending: asyncio.Timeout | None = None

    def __enter__(self) -> Self:
        self._look_out.add(self)
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self._look_out.remove(self)

    async def next(self, seconds: float) -> Page | None:
        """The next page; nothing if none came in that time, or if it is over."""
        loop = asyncio.get_running_loop()
        until = loop.time() + seconds
        while self.over is None:
            self._woken.clear()  # before the look: whoever is woken during it looks again
            if self._may_have_more() and (page := await self._read()) is not None:
                return page
            if until <= loop.time():
                return None
            await self._wait(until)
        return None

    async def _read(self) -> Page | None:
        """The page after the cursor, which moves. A store that cannot be read ends it: its reader comes back."""
        try:
            page = await self._look_out.pages.after(self.subscriber, self.cursor)
        except StoreError as problem:
            _log.warning("a stream of notifications ends: %s", problem)
            self.end(Over.STORE)
            return None
        self._has_looked = True
        if page.cursor <= self.cursor:
            return None
        self.cursor = page.cursor
        return page

    def _may_have_more(self) -> bool:
        """At first it knows for itself whether there is something; then the look-out does."""
        last = self._look_out.last.get(self.subscriber)
        return last > self.cursor if last is not None else not self._has_looked

    async def _wait(self, until: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout_at(until):
                await self._woken.wait()

    @asynccontextmanager
    async def sending(self, seconds: float) -> AsyncIterator[None]:
        """Sending may take so long, and less if it is over meanwhile; then it is a TimeoutError."""
        try:
            async with asyncio.timeout(seconds) as self._sending:
                yield
        finally:
            self._sending = None

    def wake(self) -> None:
        self._woken.set()

    def end(self, why: Over) -> None:
        """It is over. A reader that takes nothing is not waited for."""
        self.over = self.over or why
        self.wake()
        if self._sending is not None and not self._sending.expired():
            self._sending.reschedule(asyncio.get_running_loop().time())
