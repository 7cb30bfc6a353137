"""Requests that wait for news: each until there is some, or its time is over.

A store tells nobody that another process has written to it. So while somebody waits, one look-out for all of them reads
a mark again and again, a counter or two, and wakes those who have seen another one. What this process writes itself is
noticed at once.
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
"""How many may wait at the same time; who comes then is answered at once."""


class LongPoll:
    """What is waited for, in one event loop."""

    def __init__(self, mark: Callable[[], Hashable], look: float = LOOK_SECONDS, most: int = MOST) -> None:
        self._mark, self._look, self._most = mark, look, most
        self._waiting: dict[asyncio.Future[None], Hashable] = {}
        self._nudged = asyncio.Event()
        self._look_out: asyncio.Task[None] | None = None
        self._is_over = False

    async def found(self, look: Callable[[], T], is_news: Callable[[T], bool], seconds: float) -> T:
        """What a look finds: the first that is news, or the last one when the time is over or the server ends.

        The mark is read before the look: so what comes between the two is not missed.
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
        """Wait until there is another mark than the one that was seen, the time is over, or the server ends."""
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting[turn] = seen
        self._watch()
        try:
            with suppress(TimeoutError):
                await asyncio.wait_for(turn, seconds)
        finally:
            del self._waiting[turn]

    def nudge(self) -> None:
        """Say that there may be something new."""
        self._nudged.set()

    def end(self) -> None:
        """Nobody waits any more."""
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
        """What went wrong for the look-out went wrong for all who wait."""
        problem = None if look_out.cancelled() else look_out.exception()
        for turn in self._waiting:
            if problem is not None and not turn.done():
                turn.set_exception(problem)
