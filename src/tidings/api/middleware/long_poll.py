"""Long polling: requests that wait until there is something new, or their time is over.

The store does not signal writes of other processes. While requests wait, one task for all of them polls a mark (a
counter or two) and wakes those that have seen another one. Writes of this process are noticed at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable
from contextlib import suppress
from typing import TypeVar

from fastapi.concurrency import run_in_threadpool

T = TypeVar("T")

LOOK_SECONDS = 0.2
MOST = 1_000
"""Requests that may wait at the same time; further ones are answered at once."""


class LongPoll:
    """The waiting requests of one event loop."""

    def __init__(self, mark: Callable[[], Hashable], look: float = LOOK_SECONDS, most: int = MOST) -> None:
        self._mark, self._look, self._most = mark, look, most
        self._waiting: dict[asyncio.Future[None], Hashable] = {}
        self._nudged = asyncio.Event()
        self._look_out: asyncio.Task[None] | None = None
        self._is_over = False

    async def found(self, look: Callable[[], T], is_news: Callable[[T], bool], seconds: float) -> T:
        """Call `look` until its result is news; return the last result when the time is over or the server stops.

        The mark is read before `look`, so that nothing between the two is missed.
        """
        clock = asyncio.get_running_loop().time
        until = clock() + seconds
        while True:
            seen = await run_in_threadpool(self._mark)
            what = await run_in_threadpool(look)
            left = until - clock()
            if is_news(what) or left <= 0 or self._is_over or len(self._waiting) >= self._most:
                return what
            await self._other_than(seen, left)

    async def _other_than(self, seen: Hashable, seconds: float) -> None:
        """Wait until the mark differs from the one seen, the time is over, or the server stops."""
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting[turn] = seen
        self._watch()
        try:
            with suppress(TimeoutError):
                await asyncio.wait_for(turn, seconds)
        finally:
            del self._waiting[turn]

    def nudge(self) -> None:
        """Poll now: there may be something new."""
        self._nudged.set()

    def end(self) -> None:
        """Answer all waiting requests."""
        self._is_over = True
        for turn in self._waiting:
            if not turn.done():
                turn.set_result(None)

    def _watch(self) -> None:
        if self._look_out is None or self._look_out.done():
            self._look_out = asyncio.create_task(self._watching())
            self._look_out.add_done_callback(self._failed)

    async def _watching(self) -> None:
        while self._waiting:
            self._nudged.clear()
            now = await run_in_threadpool(self._mark)
            for turn, seen in self._waiting.items():
                if seen != now and not turn.done():
                    turn.set_result(None)
            with suppress(TimeoutError):
                await asyncio.wait_for(self._nudged.wait(), self._look)

    def _failed(self, look_out: asyncio.Task[None]) -> None:
        """Raise the error of the polling task in all waiting requests."""
        problem = None if look_out.cancelled() else look_out.exception()
        for turn in self._waiting:
            if problem is not None and not turn.done():
                turn.set_exception(problem)
