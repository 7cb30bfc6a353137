"""Publications on their way in: no more bytes at a time than memory is meant for, and one commit for many.

Each body has a limit. All bodies together have one, too: who comes when it is reached is asked to come back.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Generic, TypeVar

from fastapi import Request
from fastapi.concurrency import run_in_threadpool

from tidings.errors import TidingsError
from tidings.interfaces.http.answers import Refused, body_of

T = TypeVar("T")
R = TypeVar("R")

TOGETHER, WAITING = 1_000, 20_000
"""How many publications one transaction takes, and how many may wait for the next one."""


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


class Gathering(Generic[T, R]):
    """Those who come while a transaction is under way share the next one: a commit costs as much for one as for many.

    `work` does something with several, and gives an outcome for each.
    """

    def __init__(
        self, work: Callable[[Sequence[T]], Sequence[R]], together: int = TOGETHER, waiting: int = WAITING
    ) -> None:
        self._work, self._together, self._most = work, together, waiting
        self._waiting: deque[tuple[T, asyncio.Future[R]]] = deque()
        self._task: asyncio.Task[None] | None = None

    async def add(self, one: T) -> R:
        """Do it with the others that come now. The outcome comes even if nobody waits for it any more."""
        if len(self._waiting) >= self._most:
            hint = "come back in a moment"
            raise Refused(503, TidingsError("too many publications wait already", hint=hint))
        outcome: asyncio.Future[R] = asyncio.get_running_loop().create_future()
        self._waiting.append((one, outcome))
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._go())
        return await outcome

    async def _go(self) -> None:
        while self._waiting:
            taken = [self._waiting.popleft() for _ in range(min(len(self._waiting), self._together))]
            try:
                outcomes = await run_in_threadpool(self._work, [one for one, _ in taken])
            except Exception as problem:  # noqa: BLE001 - whatever it is, each of those who wait is told
                for _, waits in taken:
                    if not waits.done():
                        waits.set_exception(problem)
                continue
            for (_, waits), outcome in zip(taken, outcomes, strict=True):
                if not waits.done():
                    waits.set_result(outcome)
