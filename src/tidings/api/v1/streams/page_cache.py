"""Short-lived cache of notification pages, which several streams of a subscriber read at the same time.

Most streams are at the end, all of one subscriber at the same cursor. The fan-out reads what is new for everyone with
one query and puts it here, so that thousands of woken streams need no query of their own.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from functools import partial

import anyio

from tidings.service.event_pages import EventPage, read_page
from tidings.store.store import Store

LINES, PAGE_BYTES = 500, 1_000_000
"""Largest page of a stream: a slow client holds one in memory while it is being sent."""

MAX_CACHE_BYTES = 32_000_000
MAX_CACHE_SECONDS = 5.0
"""Most readers have read a page by then."""

THREADS = 4
"""Threads that read from the store for all streams. Other requests have their own."""

_Key = tuple[str, int]


class PageCache:
    """Pages by subscriber and cursor, for one event loop."""

    def __init__(
        self, store: Store, most_bytes: int = MAX_CACHE_BYTES, seconds: float = MAX_CACHE_SECONDS
    ) -> None:
        self._store, self._most_bytes, self._seconds = store, most_bytes, seconds
        self._cached: OrderedDict[_Key, tuple[EventPage, float]] = OrderedDict()
        self._bytes = 0
        self._reads_in_progress: dict[_Key, asyncio.Task[EventPage]] = {}
        self._threads = anyio.CapacityLimiter(THREADS)
        self.reads = 0
        """How many pages were read from the store."""

    async def after(self, subscriber: str, cursor: int) -> EventPage:
        """Return the page after a cursor. Concurrent requests for the same page share one read."""
        key = subscriber, cursor
        cached = self._cached.get(key)
        if cached is not None and cached[1] > asyncio.get_running_loop().time():
            return cached[0]
        if key not in self._reads_in_progress:
            self._reads_in_progress[key] = reading = asyncio.create_task(self._read(*key))
            reading.add_done_callback(partial(self._done, key))
        # A waiting stream may be cancelled; the others still get their page.
        return await asyncio.shield(self._reads_in_progress[key])

    async def _read(self, subscriber: str, cursor: int) -> EventPage:
        self.reads += 1
        read = partial(read_page, self._store, subscriber, cursor, LINES, most_bytes=PAGE_BYTES)
        return await anyio.to_thread.run_sync(read, limiter=self._threads)

    def _done(self, key: _Key, reading: asyncio.Task[EventPage]) -> None:
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
