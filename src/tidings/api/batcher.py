"""Those who come while something is under way share the next one: a commit, or a look into the store, costs about as
much for one as for many.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

import anyio

from tidings.api.http_error import HttpError
from tidings.errors import TidingsError

T = TypeVar("T")
R = TypeVar("R")

TOGETHER, WAITING = 1_000, 20_000
"""How many have it done together, and how many may wait for the next time."""


class Batcher(Generic[T, R]):
    """`work` does something with several, and gives an outcome for each."""

    def __init__(
        self,
        work: Callable[[Sequence[T]], Sequence[R]],
        what: str,
        together: int = TOGETHER,
        waiting: int = WAITING,
    ) -> None:
        self._work, self._what, self._together, self._most = work, what, together, waiting
        self._thread = anyio.CapacityLimiter(1)  # one of its own: no other request holds it up
        self._waiting: deque[tuple[T, asyncio.Future[R]]] = deque()
        self._task: asyncio.Task[None] | None = None

    async def add(self, one: T) -> R:
        """Do it with the others that come now. The outcome comes even if nobody waits for it any more."""
        if len(self._waiting) >= self._most:
            hint = "come back in a moment"
            raise HttpError(503, TidingsError(f"too many {self._what} wait already", hint=hint))
        outcome: asyncio.Future[R] = asyncio.get_running_loop().create_future()
        self._waiting.append((one, outcome))
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._go())
        return await outcome

    async def _go(self) -> None:
        while self._waiting:
            taken = [self._waiting.popleft() for _ in range(min(len(self._waiting), self._together))]
            try:
                several = [one for one, _ in taken]
                outcomes = await anyio.to_thread.run_sync(self._work, several, limiter=self._thread)
            except Exception as problem:  # noqa: BLE001 - whatever it is, each of those who wait is told
                for _, waits in taken:
                    if not waits.done():
                        waits.set_exception(problem)
                continue
            for (_, waits), outcome in zip(taken, outcomes, strict=True):
                if not waits.done():
                    waits.set_result(outcome)
