"""Concurrency of requests: batching of equal work, a limit for writes, and long polling."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from contextlib import suppress
from contextvars import ContextVar
from functools import partial, wraps
from inspect import iscoroutinefunction
from typing import Any, Generic, TypeVar

import anyio
from fastapi import FastAPI
from fastapi.concurrency import run_in_threadpool

from tidings.api.problem_details import HttpError
from tidings.errors import TidingsError

T = TypeVar("T")
R = TypeVar("R")

MAX_BATCH, MAX_BATCH_QUEUE = 1_000, 20_000
"""Largest batch, and how many requests may wait for the next one."""

WRITE_THREADS, WRITE_QUEUE = 8, 200
MAX_WAITING_WRITES = 20_000
"""Waiting requests that only write to the store: each is short."""

POLL_SECONDS = 0.2
MAX_LONG_POLLS = 1_000
"""Requests that may wait at the same time; further ones are answered at once."""


def _build_overload_error(what: str) -> HttpError:
    return HttpError(503, TidingsError(f"too many {what} are waiting", hint="try again in a moment"))


class Batcher(Generic[T, R]):
    """Groups requests that arrive while a batch is being processed into the next batch.

    A commit, or a query of the store, costs about as much for many as for one. `process` returns an outcome for each
    item of a batch.
    """

    def __init__(
        self,
        process: Callable[[Sequence[T]], Sequence[R]],
        what: str,
        max_batch: int = MAX_BATCH,
        max_queue: int = MAX_BATCH_QUEUE,
    ) -> None:
        self._process, self._what, self._max_batch, self._max_queue = process, what, max_batch, max_queue
        self._thread = anyio.CapacityLimiter(1)  # a thread of its own, so that other requests do not delay it
        self._queue: deque[tuple[T, asyncio.Future[R]]] = deque()
        self._task: asyncio.Task[None] | None = None

    async def add(self, item: T) -> R:
        """Process an item with the next batch and return its outcome. A cancelled caller does not stop the batch."""
        if len(self._queue) >= self._max_queue:
            raise _build_overload_error(self._what)
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


class WriteLimiter:
    """Threads for requests that write or call other servers, and a bounded queue, for one event loop.

    A store has one writer at a time anyway, and waiting for a lock, a hanging leader or a slow receiver takes long.
    With threads of their own, writes never keep reads waiting.
    """

    def __init__(
        self, threads: int = WRITE_THREADS, max_queue: int = WRITE_QUEUE, what: str = "registrations"
    ) -> None:
        self._limiter, self._max_queue, self._what = anyio.CapacityLimiter(threads), max_queue, what

    @property
    def waiting(self) -> int:
        """How many requests wait."""
        return self._limiter.statistics().tasks_waiting

    async def run(self, work: Callable[[], T]) -> T:
        """Run a function in a thread when one is free; raise 503 if too many wait."""
        if self.waiting >= self._max_queue:
            raise _build_overload_error(self._what)
        return await anyio.to_thread.run_sync(work, limiter=self._limiter)


_current_limiter: ContextVar[WriteLimiter] = ContextVar("write_limiter")


def bind_write_limiter(app: FastAPI) -> None:
    """Use the application's limiter for the writes of the current request."""
    if not hasattr(app.state, "writers"):
        app.state.writers = WriteLimiter(max_queue=MAX_WAITING_WRITES, what="requests that write")
    _current_limiter.set(app.state.writers)


async def run_write(work: Callable[[], T]) -> T:
    """Run a write of the current request under its limiter."""
    return await _current_limiter.get().run(work)


def limit_writes(endpoint: Callable[..., Any]) -> Callable[..., Any]:
    """Return an endpoint that runs under the limiter. Coroutines call `run_write` themselves."""
    if iscoroutinefunction(endpoint):
        return endpoint

    @wraps(endpoint)
    async def limited(*args: Any, **named: Any) -> Any:
        return await run_write(partial(endpoint, *args, **named))

    return limited


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

    def nudge(self) -> None:
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
