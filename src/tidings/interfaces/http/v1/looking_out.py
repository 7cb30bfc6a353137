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
from collections.abc import Callable, Mapping
from functools import partial
from itertools import groupby
from typing import TypeVar

import anyio

from tidings.errors import StoreError
from tidings.interfaces.http.refused import Refused
from tidings.interfaces.http.v1.follower import Follower, Over
from tidings.interfaces.http.v1.kept_pages import LINES, PAGE_BYTES, KeptPages
from tidings.service.event_pages import Page, as_many_as_fit, written
from tidings.store import Store

T = TypeVar("T")

_log = logging.getLogger("tidings.notifications")

LOOK_SECONDS = 0.1
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

MOST = 20_000
"""How many may follow at the same time in one process; the machine's limit of open files is mostly lower."""


class LookOut:
    """Looks out for all followers of a process, in one event loop."""

    def __init__(self, store: Store, look: float = LOOK_SECONDS, most: int = MOST) -> None:
        self._store, self._look, self._most = store, look, most
        self.pages = KeptPages(store)
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
            raise Refused(503, StoreError("too many follow notifications here", accepted=accepted))

    def follow(self, subscriber: str, token: str, cursor: int, last: int) -> Follower:
        """A follower, who is one of those who are looked out for inside its `with`; `last` is the last number when it
        came. Most come back when there is nothing new, and need not look.
        """
        return Follower(self, subscriber, token, cursor, last)

    def add(self, follower: Follower) -> None:
        self._followers[follower.subscriber].add(follower)
        self._count += 1
        if self._is_over:
            follower.end(Over.SERVER)
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
            follower.end(Over.SERVER)

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
                follower.end(Over.SERVER)

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
        return dict.fromkeys(names, 0) | self._store.news.last(names)

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

    def _new(self, before: Mapping[str, int], now: Mapping[str, int]) -> dict[str, Page]:
        """The first page of each; the store is asked once for all of them. What is too much for that is left to those
        who want it.
        """
        each = min(LINES, max(FRESH, FRESH_LINES // len(before)))
        wanted = [
            (name, number)
            for name, last in before.items()
            for number in range(last + 1, min(now[name], last + each) + 1)
        ]
        lines = as_many_as_fit(written(self._store, self._store.news.told(wanted)), FRESH_BYTES)
        by_name = groupby(lines, key=lambda line: line.subscriber)
        pages = {name: tuple(as_many_as_fit(those, PAGE_BYTES)) for name, those in by_name}
        return {name: Page(those, those[-1].sequence) for name, those in pages.items()}

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
                follower.end(Over.TOKEN)
