"""Group commit: requests that arrive together are processed in one batch, in one transaction."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

import anyio

from tidings.api.write_limiter import build_overload_error

T = TypeVar("T")
R = TypeVar("R")

MAX_BATCH, MAX_BATCH_QUEUE = 1_000, 20_000
"""Largest batch, and how many requests may wait for the next one."""


class Batcher(Generic[T, R]):
    """Groups requests that arrive while a batch is being processed into the next batch.

    A commit, or a query of the store, costs about as much for many as for one. `process` returns an outcome for each
    item of a batch.
    """

    def __init__(
        self,
        process: Callable[[Sequence[T]], Sequence[R]],
        title: str,
        max_batch: int = MAX_BATCH,
        max_queue: int = MAX_BATCH_QUEUE,
    ) -> None:
        self._process, self._title, self._max_batch, self._max_queue = process, title, max_batch, max_queue
        self._thread = anyio.CapacityLimiter(1)  # a thread of its own, so that other requests do not delay it
        self._queue: deque[tuple[T, asyncio.Future[R]]] = deque()
        self._task: asyncio.Task[None] | None = None

    async def add(self, item: T) -> R:
        """Process an item with the next batch and return its outcome. A cancelled caller does not stop the batch."""
        if len(self._queue) >= self._max_queue:
            raise build_overload_error(self._title)
        outcome: asyncio.Future[R] = asyncio.get_running_loop().create_future()
        self._queue.append((item, outcome))
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._run())
        return await outcome

    async def _run(self) -> None:
        while self._queue:
            batch = [self._queue.popleft() for _ in range(min(len(self._queue), self._max_batch))]
            try:
                items = [item for item, _ in batch]
                outcomes = await anyio.to_thread.run_sync(self._process, items, limiter=self._thread)
            except Exception as problem:  # noqa: BLE001 - raised in every waiting request
                for _, future in batch:
                    if not future.done():
                        future.set_exception(problem)
                continue
            for (_, future), outcome in zip(batch, outcomes, strict=True):
                if not future.done():
                    future.set_result(outcome)
