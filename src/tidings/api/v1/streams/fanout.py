"""One look-out for everybody who follows notifications, however many they are.

A store tells nobody that another process has written to it. So while somebody follows, one task looks again and again:
one question for the last numbers of all subscribers that are followed, one for what is new, and those whom it concerns
are woken. Each follower has a cursor and nothing else; it takes page after page, at its own speed, and a slow one holds
up nobody. Tokens are looked at again, too: whoever has lost theirs is told nothing more.
"""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from enum import Enum
from functools import partial
from itertools import groupby
from types import TracebackType
from typing import Self, TypeVar

import anyio

from tidings.api.http_error import HttpError
from tidings.api.v1.streams.page_cache import LINES, PAGE_BYTES, PageCache
from tidings.errors import StoreError
from tidings.service.event_pages import EventPage, limit_bytes, render_lines
from tidings.store.store import Store

# Somebody who follows notifications: a cursor, and page after page from it on, at the speed of whoever reads them.


_follower_log = logging.getLogger("tidings.notifications")


class StreamEnd(Enum):
    """Why a stream ends, though its reader is still there."""

    SERVER = "the server ends"
    TOKEN = "the token is not good any more"
    STORE = "the store cannot be read now"
    GONE = "the reader is gone"


class Follower:
    """Somebody who follows a subscriber's notifications from a cursor on. Used in a `with`."""

    def __init__(
        self, look_out: NotificationFanout, subscriber: str, token: str, cursor: int, last: int
    ) -> None:
        self._look_out, self.subscriber, self.token, self.cursor = look_out, subscriber, token, cursor
        self.over: StreamEnd | None = None
        self._woken = asyncio.Event()
        self._has_looked = cursor >= last
        self._sending: asyncio.Timeout | None = None

    def __enter__(self) -> Self:
        self._look_out.add(self)
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self._look_out.remove(self)

    async def next(self, seconds: float) -> EventPage | None:
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

    async def _read(self) -> EventPage | None:
        """The page after the cursor, which moves. A store that cannot be read ends it: its reader comes back."""
        try:
            page = await self._look_out.pages.after(self.subscriber, self.cursor)
        except StoreError as problem:
            _follower_log.warning("a stream of notifications ends: %s", problem)
            self.end(StreamEnd.STORE)
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

    def end(self, why: StreamEnd) -> None:
        """It is over. A reader that takes nothing is not waited for."""
        self.over = self.over or why
        self.wake()
        if self._sending is not None and not self._sending.expired():
            self._sending.reschedule(asyncio.get_running_loop().time())


T = TypeVar("T")

_log = logging.getLogger("tidings.notifications")

POLL_SECONDS = 0.1
LONGEST_PAUSE = 5.0
TOKEN_SECONDS = 2.0
SHARE, LATE_SECONDS = 4, 0.5
"""A look that takes long is followed by a pause that is as many times as long, and at most that: others want to work,
too, and nobody wants to wait.
"""

TOGETHER = 500
"""How many subscribers get their news together, before the next ones do."""

FRESH, FRESH_LINES, FRESH_BYTES = 10, 1_000, 4_000_000
"""How many new notifications of each are brought in any case, and how many and how much for all of them."""

MAX_FOLLOWERS = 20_000
"""How many may follow at the same time in one process; the machine's limit of open files is mostly lower."""


class NotificationFanout:
    """Looks out for all followers of a process, in one event loop."""

    def __init__(self, store: Store, look: float = POLL_SECONDS, most: int = MAX_FOLLOWERS) -> None:
        self._store, self._look, self._most = store, look, most
        self.pages = PageCache(store)
        self.last: dict[str, int] = {}
        """The last number of each subscriber that is followed, once it was looked at."""
        self.looks = 0
        self._thread = anyio.CapacityLimiter(1)
        self._followers: defaultdict[str, set[Follower]] = defaultdict(set)
        self._count = 0
        self._task: asyncio.Task[None] | None = None
        self._tokens_at = 0.0
        self._is_over = False

    @property
    def count(self) -> int:
        """How many follow."""
        return self._count

    def check_room(self) -> None:
        """Refuse whoever comes when there are too many already."""
        if self._count >= self._most:
            accepted = f"{self._most:,} at once"
            raise HttpError(503, StoreError("too many follow notifications here", accepted=accepted))

    def follow(self, subscriber: str, token: str, cursor: int, last: int) -> Follower:
        """A follower, who is one of those who are looked out for inside its `with`; `last` is the last number when it
        came. Most come back when there is nothing new, and need not look.
        """
        return Follower(self, subscriber, token, cursor, last)

    def add(self, follower: Follower) -> None:
        self._followers[follower.subscriber].add(follower)
        self._count += 1
        if self._is_over:
            follower.end(StreamEnd.SERVER)
        elif self._task is None or self._task.done():
            self._task = asyncio.create_task(self._watch())
            self._task.add_done_callback(self._ended)

    def remove(self, follower: Follower) -> None:
        those = self._followers[follower.subscriber]
        those.discard(follower)
        self._count -= 1
        if not those:
            del self._followers[follower.subscriber]
            self.last.pop(follower.subscriber, None)

    def end(self) -> None:
        """Everybody's stream ends, and everybody's who comes from now on. Called in the event loop."""
        self._is_over = True
        for follower in self._everybody():
            follower.end(StreamEnd.SERVER)

    def _everybody(self) -> list[Follower]:
        return [follower for those in self._followers.values() for follower in those]

    async def _watch(self) -> None:
        """Look as long as somebody follows. A store that cannot be read now may be so again in a moment: nobody misses
        anything meanwhile, and nobody has to come back.
        """
        clock, pause = asyncio.get_running_loop().time, self._look
        while self._followers and not self._is_over:
            began = clock()
            try:
                await self.look()
                pause = max(self._look, min(SHARE * (clock() - began), LATE_SECONDS))
            except StoreError as problem:
                pause = min(2 * pause, LONGEST_PAUSE)
                _log.warning("looking for notifications, again in %.1f s: %s", pause, problem)
            await asyncio.sleep(pause)

    def _ended(self, task: asyncio.Task[None]) -> None:
        """Nobody is left waiting for a look-out that is none any more: they come back, and get another one."""
        if not task.cancelled() and (problem := task.exception()) is not None:
            _log.error("looking for notifications went wrong", exc_info=problem)
            for follower in self._everybody():
                follower.end(StreamEnd.SERVER)

    async def look(self) -> None:
        """One look: for the numbers of everybody, for what is new, and now and then for tokens."""
        self.looks += 1
        await self._look_at_tokens()
        now = await self._in_thread(partial(self._last, list(self._followers)))
        grown = {name: last for name, last in now.items() if last > self.last.get(name, -1)}
        names = list(grown)
        for start in range(0, len(names), TOGETHER):
            some = {name: grown[name] for name in names[start : start + TOGETHER]}
            await self._bring(some)

    def _last(self, names: list[str]) -> dict[str, int]:
        """What is due is handed over first: no stream has to run for that."""
        self._store.notifications.hand_over()
        return dict.fromkeys(names, 0) | self._store.heads.last(names)

    async def _bring(self, grown: Mapping[str, int]) -> None:
        """Put what is new where followers find it, and wake those who have not seen it."""
        before = {name: self.last[name] for name in grown if name in self.last}
        found = await self._in_thread(partial(self._new, before, grown)) if before else {}
        for name, page in found.items():
            self.pages.keep(name, before[name], page)
        for name, last in grown.items():
            if name in self._followers:
                self.last[name] = last
                for follower in self._followers[name]:
                    follower.wake()

    def _new(self, before: Mapping[str, int], now: Mapping[str, int]) -> dict[str, EventPage]:
        """The first page of each; the store is asked once for all of them. What is too much for that is left to those
        who want it.
        """
        each = min(LINES, max(FRESH, FRESH_LINES // len(before)))
        wanted = [
            (name, number)
            for name, last in before.items()
            for number in range(last + 1, min(now[name], last + each) + 1)
        ]
        lines = limit_bytes(render_lines(self._store, self._store.heads.told(wanted)), FRESH_BYTES)
        by_name = groupby(lines, key=lambda line: line.subscriber)
        pages = {name: tuple(limit_bytes(those, PAGE_BYTES)) for name, those in by_name}
        return {name: EventPage(those, those[-1].sequence) for name, those in pages.items()}

    async def _in_thread(self, work: Callable[[], T]) -> T:
        """Ask the store in a thread of its own: many who are far behind would make all others wait."""
        return await anyio.to_thread.run_sync(work, limiter=self._thread)

    async def _look_at_tokens(self) -> None:
        now = asyncio.get_running_loop().time()
        if now < self._tokens_at:
            return
        self._tokens_at = now + TOKEN_SECONDS
        followers = self._everybody()
        good = await self._in_thread(
            partial(self._store.tokens.good, {follower.token for follower in followers})
        )
        for follower in followers:
            if follower.token not in good:
                follower.end(StreamEnd.TOKEN)
