"""Limit of concurrent writes: threads of their own and a bounded queue."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from functools import partial, wraps
from inspect import iscoroutinefunction
from typing import Any, TypeVar

import anyio
from fastapi import FastAPI

from tidings.api.problem_details import HttpError
from tidings.errors import TidingsError

T = TypeVar("T")

WRITE_THREADS, WRITE_QUEUE = 8, 200
MAX_WAITING_WRITES = 20_000
"""Waiting requests that only write to the store: each is short."""


def build_overload_error(plural: str) -> HttpError:
    """Build the answer for a request that cannot even wait."""
    return HttpError(503, TidingsError(f"too many {plural} are waiting", hint="try again in a moment"))


class WriteLimiter:
    """Threads for requests that write or call other servers, and a bounded queue, for one event loop.

    A store has one writer at a time anyway, and waiting for a lock, a hanging leader or a slow receiver takes long.
    With threads of their own, writes never keep reads waiting.
    """

    def __init__(
        self, threads: int = WRITE_THREADS, max_queue: int = WRITE_QUEUE, label: str = "registrations"
    ) -> None:
        self._limiter, self._max_queue, self._label = anyio.CapacityLimiter(threads), max_queue, label

    @property
    def waiting(self) -> int:
        """Number of waiting requests."""
        return self._limiter.statistics().tasks_waiting

    async def run(self, work: Callable[[], T]) -> T:
        """Run a function in a thread when one is free; raise 503 if too many wait."""
        if self.waiting >= self._max_queue:
            raise build_overload_error(self._label)
        return await anyio.to_thread.run_sync(work, limiter=self._limiter)


_current_limiter: ContextVar[WriteLimiter] = ContextVar("write_limiter")


def bind_write_limiter(app: FastAPI) -> None:
    """Use the application's limiter for the writes of the current request."""
    if not hasattr(app.state, "writers"):
        app.state.writers = WriteLimiter(max_queue=MAX_WAITING_WRITES, label="requests that write")
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
