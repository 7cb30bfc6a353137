"""Long polling: requests that wait for new data."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable
from contextlib import suppress
from typing import TypeVar

from fastapi.concurrency import run_in_threadpool

T = TypeVar("T")

POLL_SECONDS = 0.2
MAX_LONG_POLLS = 1_000
"""Requests that may wait at the same time; further ones are answered at once."""


class LongPoll:
    """Requests of one event loop that wait until there is something new, or their time is over.

    The store does not signal writes of other processes. While requests wait, one task for all of them polls a mark (a
    counter or two) and wakes those that have seen another one. Writes of this process are noticed at once.
    """

    def __init__(
        self, mark: Callable[[], Hashable], interval: float = POLL_SECONDS, most: int = MAX_LONG_POLLS
    ) -> None:
        self._mark, self._interval, self._most = mark, interval, most
        self._waiting: dict[asyncio.Future[None], Hashable] = {}
        self._nudged = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._is_over = False

    async def wait_for(self, read: Callable[[], T], is_news: Callable[[T], bool], seconds: float) -> T:
        """Call `read` until its result is news; return the last result when the time is over or the server stops.

        The mark is read before `read` is called, so that nothing between the two is missed.
        """
        clock = asyncio.get_running_loop().time
        until = clock() + seconds
        while True:
            mark = await run_in_threadpool(self._mark)
            result = await run_in_threadpool(read)
            left = until - clock()
            if is_news(result) or left <= 0 or self._is_over or len(self._waiting) >= self._most:
                return result
            await self._wait_for_change(mark, left)

    async def _wait_for_change(self, mark: Hashable, seconds: float) -> None:
        """Wait until the mark differs from this one, the time is over, or the server stops."""
        woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting[woken] = mark
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._poll())
            self._task.add_done_callback(self._fail)
        try:
            with suppress(TimeoutError):
                await asyncio.wait_for(woken, seconds)
        finally:
            del self._waiting[woken]

    def poll_soon(self) -> None:
        """Poll now: there may be something new."""
        self._nudged.set()

    def end(self) -> None:
        """Answer all waiting requests."""
        self._is_over = True
        for woken in self._waiting:
            if not woken.done():
                woken.set_result(None)

    async def _poll(self) -> None:
        while self._waiting:
            self._nudged.clear()
            now = await run_in_threadpool(self._mark)
            for woken, mark in self._waiting.items():
                if mark != now and not woken.done():
                    woken.set_result(None)
            with suppress(TimeoutError):
                await asyncio.wait_for(self._nudged.wait(), self._interval)

    def _fail(self, task: asyncio.Task[None]) -> None:
        """Raise the error of the polling task in all waiting requests."""
        problem = None if task.cancelled() else task.exception()
        for woken in self._waiting:
            if problem is not None and not woken.done():
                woken.set_exception(problem)
