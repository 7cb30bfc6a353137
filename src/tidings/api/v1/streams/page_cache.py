"""Pages that several readers ask for at the same time: read once, written once, kept for a moment.

Those who follow a stream are mostly at its end, all of one subscriber at the same cursor. The look-out reads what is
new for everybody in one go and puts it here, so that thousands who are woken find it without a question to the store.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from functools import partial
from typing import TypeVar

import anyio

from tidings.service.event_pages import EventPage, read_page
from tidings.store.store import Store

T = TypeVar("T")

LINES, PAGE_BYTES = 500, 1_000_000
"""The most of a page of a stream: a slow reader holds one while it is being sent."""

MAX_CACHE_BYTES = 32_000_000
MAX_CACHE_SECONDS = 5.0
"""No longer than that: most readers have come by then."""

THREADS = 4
"""How many read from the store at once for all streams; the threads of other requests are left to them."""

_Key = tuple[str, int]


class PageCache:
    """The pages of a store, by subscriber and cursor. For one event loop."""

    def __init__(
        self, store: Store, most_bytes: int = MAX_CACHE_BYTES, seconds: float = MAX_CACHE_SECONDS
    ) -> None:
        self._store, self._most_bytes, self._seconds = store, most_bytes, seconds
        self._kept: OrderedDict[_Key, tuple[EventPage, float]] = OrderedDict()
        self._bytes = 0
        self._under_way: dict[_Key, asyncio.Task[EventPage]] = {}
        self._threads = anyio.CapacityLimiter(THREADS)
        self.reads = 0
        """How often the store was asked for a page."""

    async def after(self, subscriber: str, cursor: int) -> EventPage:
        """The page after a cursor; several who ask for the same one share the answer."""
        key = subscriber, cursor
        found = self._kept.get(key)
        if found is not None and found[1] > asyncio.get_running_loop().time():
            return found[0]
        if key not in self._under_way:
            self._under_way[key] = reading = asyncio.create_task(self._read(*key))
            reading.add_done_callback(partial(self._done, key))
        # One of those who wait may go away; the others get their page.
        return await asyncio.shield(self._under_way[key])

    async def _read(self, subscriber: str, cursor: int) -> EventPage:
        self.reads += 1
        return await self._in_thread(
            partial(read_page, self._store, subscriber, cursor, LINES, most_bytes=PAGE_BYTES)
        )

    def _done(self, key: _Key, reading: asyncio.Task[EventPage]) -> None:
        del self._under_way[key]
        if not reading.cancelled() and reading.exception() is None:
            self.keep(*key, reading.result())

    def keep(self, subscriber: str, cursor: int, page: EventPage) -> None:
        """Keep a page for a moment. An empty one is not: the next may come any time. Nor one with something that not
        everybody may see: a grant may be revoked any time, too.
        """
        if page.cursor <= cursor or page.labelled:
            return
        self._drop((subscriber, cursor))
        until = asyncio.get_running_loop().time() + self._seconds
        self._kept[subscriber, cursor] = page, until
        self._bytes += page.size
        while self._bytes > self._most_bytes or self._is_over():
            self._drop(next(iter(self._kept)))

    def _is_over(self) -> bool:
        """Whether the oldest one is too old."""
        now = asyncio.get_running_loop().time()
        return bool(self._kept) and next(iter(self._kept.values()))[1] <= now

    def _drop(self, key: _Key) -> None:
        dropped = self._kept.pop(key, None)
        if dropped is not None:
            self._bytes -= dropped[0].size

    async def _in_thread(self, work: Callable[[], T]) -> T:
        """Ask the store in a thread."""
        return await anyio.to_thread.run_sync(work, limiter=self._threads)
