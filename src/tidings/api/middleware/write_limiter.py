"""Requests that write, or ask somebody else: a few at a time, so that those who read never wait for a thread.

Writers of one store are one after the other anyway, and whoever waits for a lock, for a leader that hangs, or for a
receiver that does not answer waits long.
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
"""How many may wait who only want to write in the store: each of them is short."""


class WriteLimiter:
    """Threads for writing, in one event loop, and a queue that is not endless."""

    def __init__(self, at_once: int = AT_ONCE, waiting: int = WAITING, what: str = "registrations") -> None:
        self._limiter, self._most, self._what = CapacityLimiter(at_once), waiting, what

    @property
    def waiting(self) -> int:
        """How many wait for their turn."""
        return self._limiter.statistics().tasks_waiting

    async def run(self, work: Callable[[], T]) -> T:
        """Do something in a thread, when it is its turn."""
        if self.waiting >= self._most:
            hint = "come back in a moment"
            raise HttpError(503, TidingsError(f"too many {self._what} wait already", hint=hint))
        return await to_thread.run_sync(work, limiter=self._limiter)


_current_limiter: ContextVar[WriteLimiter] = ContextVar("turns")
"""Those of the application that a request is for."""


def bind_write_limiter(app: FastAPI) -> None:
    """What is written while a request is answered is written in the application's turns."""
    if not hasattr(app.state, "writers"):
        app.state.writers = WriteLimiter(waiting=MAX_WAITING_WRITES, what="requests that write")
    _current_limiter.set(app.state.writers)


async def run_write(work: Callable[[], T]) -> T:
    """Write something, when it is the turn of the request that is answered now."""
    return await _current_limiter.get().run(work)


def limit_writes(endpoint: Callable[..., Any]) -> Callable[..., Any]:
    """An endpoint that writes, in its turn. One that is a coroutine sees to that itself."""
    if iscoroutinefunction(endpoint):
        return endpoint

    @wraps(endpoint)
    async def turned(*given: Any, **named: Any) -> Any:
        return await run_write(partial(endpoint, *given, **named))

    return turned
