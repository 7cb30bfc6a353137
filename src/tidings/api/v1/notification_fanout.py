"""Short-lived cache of notification pages, which several streams of a subscriber read at the same time.

Most streams are at the end, all of one subscriber at the same cursor. The fan-out reads new pages for everyone with
one query and puts them here, so that thousands of woken streams need no query of their own.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict, defaultdict
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from enum import Enum
from functools import partial
from itertools import groupby
from types import TracebackType
from typing import Self, TypeVar

import anyio

from tidings.api.problem_details import HttpError
from tidings.errors import StoreError
from tidings.service.event_pages import EventPage, limit_bytes, read_page, render_lines
from tidings.store.store import Store

T = TypeVar("T")

_log = logging.getLogger("tidings.notifications")

POLL_SECONDS = 0.1
LONGEST_PAUSE = 5.0
TOKEN_SECONDS = 2.0
SHARE, LATE_SECONDS = 4, 0.5
"""A slow poll is followed by a pause `SHARE` times as long, at most `LATE_SECONDS`: polling leaves the store to others,
and notifications still arrive soon.
"""

BATCH_SUBSCRIBERS = 500
"""Subscribers whose new notifications are read and distributed together."""

FRESH, FRESH_LINES, FRESH_BYTES = 10, 1_000, 4_000_000
"""New notifications read in any case for each subscriber, and the limits for all of them together."""

MAX_FOLLOWERS = 20_000
"""Streams at the same time in one process; the limit of open files is mostly lower."""

LINES, PAGE_BYTES = 500, 1_000_000
"""Largest page of a stream: a slow client holds one in memory while it is being sent."""

MAX_CACHE_BYTES = 32_000_000
MAX_CACHE_SECONDS = 5.0
"""Most readers have read a page by then."""

THREADS = 4
"""Threads that read from the store for all streams. Other requests have their own."""

_Key = tuple[str, int]


class PageCache:
    """Short-lived cache of pages by subscriber and cursor, for one event loop.

    Most streams are at the end, all of one subscriber at the same cursor. The fan-out reads new pages for everyone
    with one query and puts them here, so that thousands of woken streams need no query of their own.
    """

    def __init__(
        self, store: Store, most_bytes: int = MAX_CACHE_BYTES, seconds: float = MAX_CACHE_SECONDS
    ) -> None:
        self._store, self._most_bytes, self._seconds = store, most_bytes, seconds
        self._cached: OrderedDict[_Key, tuple[EventPage, float]] = OrderedDict()
        self._bytes = 0
        self._reads_in_progress: dict[_Key, asyncio.Task[EventPage]] = {}
        self._threads = anyio.CapacityLimiter(THREADS)
        self.reads = 0
        """Number of pages read from the store."""

    async def read_after(self, subscriber: str, cursor: int) -> EventPage:
        """Return the page after a cursor. Concurrent requests for the same page share one read."""
        key = subscriber, cursor
        cached = self._cached.get(key)
        if cached is not None and cached[1] > asyncio.get_running_loop().time():
            return cached[0]
        if key not in self._reads_in_progress:
            self._reads_in_progress[key] = reading = asyncio.create_task(self._read(*key))
            reading.add_done_callback(partial(self._keep_page, key))
        # A waiting stream may be cancelled; the others still get their page.
        return await asyncio.shield(self._reads_in_progress[key])

    async def _read(self, subscriber: str, cursor: int) -> EventPage:
        self.reads += 1
        read = partial(read_page, self._store, subscriber, cursor, LINES, most_bytes=PAGE_BYTES)
        return await anyio.to_thread.run_sync(read, limiter=self._threads)

    def _keep_page(self, key: _Key, reading: asyncio.Task[EventPage]) -> None:
        del self._reads_in_progress[key]
        if not reading.cancelled() and reading.exception() is None:
            self.keep(*key, reading.result())

    def keep(self, subscriber: str, cursor: int, page: EventPage) -> None:
        """Cache a page, unless it is empty or labelled.

        The next notification may be written at any time, and so may a grant of an audience label be revoked.
        """
        if page.cursor <= cursor or page.labelled:
            return
        self._drop((subscriber, cursor))
        until = asyncio.get_running_loop().time() + self._seconds
        self._cached[subscriber, cursor] = page, until
        self._bytes += page.size
        while self._bytes > self._most_bytes or self._has_expired():
            self._drop(next(iter(self._cached)))

    def _has_expired(self) -> bool:
        """Return whether the oldest page has expired."""
        now = asyncio.get_running_loop().time()
        return bool(self._cached) and next(iter(self._cached.values()))[1] <= now

    def _drop(self, key: _Key) -> None:
        dropped = self._cached.pop(key, None)
        if dropped is not None:
            self._bytes -= dropped[0].size


class StreamEnd(Enum):
    """Why a stream ends."""

    SERVER = "the server shuts down"
    TOKEN = "the token is no longer valid"
    STORE = "the store cannot be read now"
    GONE = "the client disconnected"


class Follower:
    """The stream of a subscriber's notifications from a cursor on; a context manager."""

    def __init__(
        self, fanout: NotificationFanout, subscriber: str, token: str, cursor: int, last: int
    ) -> None:
        self._fanout, self.subscriber, self.token, self.cursor = fanout, subscriber, token, cursor
        self.over: StreamEnd | None = None
        self._woken = asyncio.Event()
        self._has_read = cursor >= last
        self._sending: asyncio.Timeout | None = None

    def __enter__(self) -> Self:
        self._fanout.add(self)
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self._fanout.remove(self)

    async def next(self, seconds: float) -> EventPage | None:
        """Return the next page; `None` if there was none in that time, or if the stream has ended."""
        loop = asyncio.get_running_loop()
        until = loop.time() + seconds
        while self.over is None:
            self._woken.clear()  # before reading: a wake-up during the read causes another one
            if self._may_have_more() and (page := await self._read()) is not None:
                return page
            if until <= loop.time():
                return None
            await self._wait(until)
        return None

    async def _read(self) -> EventPage | None:
        """Read the page after the cursor and advance. If the store fails, the stream ends, and clients reconnect."""
        try:
            page = await self._fanout.pages.read_after(self.subscriber, self.cursor)
        except StoreError as problem:
            _log.warning("a notification stream ends: %s", problem)
            self.end(StreamEnd.STORE)
            return None
        self._has_read = True
        if page.cursor <= self.cursor:
            return None
        self.cursor = page.cursor
        return page

    def _may_have_more(self) -> bool:
        """Return whether to read: at first judging by the cursor, later by the fan-out's numbers."""
        last = self._fanout.last.get(self.subscriber)
        return last > self.cursor if last is not None else not self._has_read

    async def _wait(self, until: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout_at(until):
                await self._woken.wait()

    @asynccontextmanager
    async def sending(self, seconds: float) -> AsyncIterator[None]:
        """Limit the time of a send. It raises TimeoutError earlier if the stream ends meanwhile."""
        try:
            async with asyncio.timeout(seconds) as self._sending:
                yield
        finally:
            self._sending = None

    def wake(self) -> None:
        self._woken.set()

    def end(self, reason: StreamEnd) -> None:
        """End the stream, without waiting for a client that reads nothing."""
        self.over = self.over or reason
        self.wake()
        if self._sending is not None and not self._sending.expired():
            self._sending.reschedule(asyncio.get_running_loop().time())


class NotificationFanout:
    """Polls the store for all followers of a process, in one event loop."""

    def __init__(self, store: Store, interval: float = POLL_SECONDS, most: int = MAX_FOLLOWERS) -> None:
        self._store, self._interval, self._most = store, interval, most
        self.pages = PageCache(store)
        self.last: dict[str, int] = {}
        """The latest number of each subscriber with a stream, after the first poll."""
        self.polls = 0
        self._thread = anyio.CapacityLimiter(1)
        self._followers: defaultdict[str, set[Follower]] = defaultdict(set)
        self._count = 0
        self._task: asyncio.Task[None] | None = None
        self._tokens_at = 0.0
        self._is_over = False

    @property
    def count(self) -> int:
        """Number of open streams."""
        return self._count

    def check_capacity(self) -> None:
        """Refuse another stream if there are too many."""
        if self._count >= self._most:
            accepted = f"{self._most:,} at once"
            raise HttpError(503, StoreError("too many notification streams", accepted=accepted))

    def follow(self, subscriber: str, token: str, cursor: int, last: int) -> Follower:
        """Return a follower, which receives notifications inside its `with`.

        `last` is the latest number now: most clients reconnect when there is nothing new, and need no read.
        """
        return Follower(self, subscriber, token, cursor, last)

    def add(self, follower: Follower) -> None:
        self._followers[follower.subscriber].add(follower)
        self._count += 1
        if self._is_over:
            follower.end(StreamEnd.SERVER)
        elif self._task is None or self._task.done():
            self._task = asyncio.create_task(self._watch())
            self._task.add_done_callback(self._end_streams)

    def remove(self, follower: Follower) -> None:
        followers = self._followers[follower.subscriber]
        followers.discard(follower)
        self._count -= 1
        if not followers:
            del self._followers[follower.subscriber]
            self.last.pop(follower.subscriber, None)

    def end(self) -> None:
        """End all streams, and those that begin from now on. Called in the event loop."""
        self._is_over = True
        for follower in self._all_followers():
            follower.end(StreamEnd.SERVER)

    def _all_followers(self) -> list[Follower]:
        return [follower for group in self._followers.values() for follower in group]

    async def _watch(self) -> None:
        """Poll while there are streams. Failures of the store are retried: streams stay open and miss nothing."""
        clock, pause = asyncio.get_running_loop().time, self._interval
        while self._followers and not self._is_over:
            began = clock()
            try:
                await self.poll()
                pause = max(self._interval, min(SHARE * (clock() - began), LATE_SECONDS))
            except StoreError as problem:
                pause = min(2 * pause, LONGEST_PAUSE)
                _log.warning("polling for notifications failed, retry in %.1f s: %s", pause, problem)
            await asyncio.sleep(pause)

    def _end_streams(self, task: asyncio.Task[None]) -> None:
        """End all streams if polling failed for good: clients reconnect, which starts another task."""
        if not task.cancelled() and (problem := task.exception()) is not None:
            _log.error("polling for notifications failed", exc_info=problem)
            for follower in self._all_followers():
                follower.end(StreamEnd.SERVER)

    async def poll(self) -> None:
        """Read the latest numbers of all subscribers, distribute new notifications, and check tokens now and then."""
        self.polls += 1
        await self._check_tokens()
        now = await self._in_thread(partial(self._read_last, list(self._followers)))
        grown = {name: last for name, last in now.items() if last > self.last.get(name, -1)}
        names = list(grown)
        for start in range(0, len(names), BATCH_SUBSCRIBERS):
            await self._distribute({name: grown[name] for name in names[start : start + BATCH_SUBSCRIBERS]})

    def _read_last(self, names: list[str]) -> dict[str, int]:
        """Return the latest numbers. Deferred notifications that are due are released first, without the stream."""
        self._store.notifications.hand_over()
        return dict.fromkeys(names, 0) | self._store.heads.last(names)

    async def _distribute(self, grown: Mapping[str, int]) -> None:
        """Put new notifications into the cache, and wake the followers concerned."""
        cursors = {name: self.last[name] for name in grown if name in self.last}
        pages = await self._in_thread(partial(self._read_new, cursors, grown)) if cursors else {}
        for name, page in pages.items():
            self.pages.keep(name, cursors[name], page)
        for name, last in grown.items():
            if name in self._followers:
                self.last[name] = last
                for follower in self._followers[name]:
                    follower.wake()

    def _read_new(self, cursors: Mapping[str, int], now: Mapping[str, int]) -> dict[str, EventPage]:
        """Read the first new page of each subscriber, with one query. Followers read the rest themselves."""
        per_subscriber = min(LINES, max(FRESH, FRESH_LINES // len(cursors)))
        positions = [
            (name, number)
            for name, last in cursors.items()
            for number in range(last + 1, min(now[name], last + per_subscriber) + 1)
        ]
        lines = limit_bytes(render_lines(self._store, self._store.heads.read(positions)), FRESH_BYTES)
        by_name = groupby(lines, key=lambda line: line.subscriber)
        pages = {name: tuple(limit_bytes(group, PAGE_BYTES)) for name, group in by_name}
        return {name: EventPage(page, page[-1].sequence) for name, page in pages.items()}

    async def _in_thread(self, work: Callable[[], T]) -> T:
        """Query the store in a thread of its own, so that followers far behind do not delay the others."""
        return await anyio.to_thread.run_sync(work, limiter=self._thread)

    async def _check_tokens(self) -> None:
        now = asyncio.get_running_loop().time()
        if now < self._tokens_at:
            return
        self._tokens_at = now + TOKEN_SECONDS
        followers = self._all_followers()
        tokens = {follower.token for follower in followers}
        valid = await self._in_thread(partial(self._store.tokens.find_valid, tokens))
        for follower in followers:
            if follower.token not in valid:
                follower.end(StreamEnd.TOKEN)
