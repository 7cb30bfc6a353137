"""Concurrency limit for requests that write or call other servers, so that reads never wait for a thread.

A store has one writer at a time anyway, and waiting for a lock, a hanging leader or a slow receiver takes long.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from functools import partial, wraps
from inspect import iscoroutinefunction
from typing import Any, TypeVar

from anyio import CapacityLimiter, to_thread
from fastapi import FastAPI

from tidings.api.http_error import HttpError
from tidings.errors import TidingsError

T = TypeVar("T")

AT_ONCE, WAITING = 8, 200
MAX_WAITING_WRITES = 20_000
"""Waiting requests that only write to the store: each is short."""


class WriteLimiter:
    """Threads for writing, and a bounded queue, for one event loop."""

    def __init__(self, at_once: int = AT_ONCE, waiting: int = WAITING, what: str = "registrations") -> None:
        self._limiter, self._most, self._what = CapacityLimiter(at_once), waiting, what

    @property
    def waiting(self) -> int:
        """How many requests wait."""
        return self._limiter.statistics().tasks_waiting

    async def run(self, work: Callable[[], T]) -> T:
        """Run a function in a thread when one is free; raise 503 if too many wait."""
        if self.waiting >= self._most:
            hint = "try again in a moment"
            raise HttpError(503, TidingsError(f"too many {self._what} are waiting", hint=hint))
        return await to_thread.run_sync(work, limiter=self._limiter)


_current_limiter: ContextVar[WriteLimiter] = ContextVar("write_limiter")


def bind_write_limiter(app: FastAPI) -> None:
    """Use the application's limiter for the writes of the current request."""
    if not hasattr(app.state, "writers"):
        app.state.writers = WriteLimiter(waiting=MAX_WAITING_WRITES, what="requests that write")
    _current_limiter.set(app.state.writers)


async def run_write(work: Callable[[], T]) -> T:
    """Run a write of the current request under its limiter."""
    return await _current_limiter.get().run(work)


def limit_writes(endpoint: Callable[..., Any]) -> Callable[..., Any]:
    """Return an endpoint that runs under the limiter. Coroutines call `run_write` themselves."""
    if iscoroutinefunction(endpoint):
        return endpoint

    @wraps(endpoint)
    async def limited(*given: Any, **named: Any) -> Any:
        return await run_write(partial(endpoint, *given, **named))

    return limited
