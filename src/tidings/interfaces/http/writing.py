"""Requests that write: a few at a time, so that those who read never wait for a thread.

Writers of one store are one after the other anyway, and whoever hands on to a leader that hangs waits long.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from anyio import CapacityLimiter, to_thread

from tidings.errors import TidingsError
from tidings.interfaces.http.answers import Refused

T = TypeVar("T")

AT_ONCE, WAITING = 8, 200


class Writers:
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
            raise Refused(503, TidingsError(f"too many {self._what} wait already", hint=hint))
        return await to_thread.run_sync(work, limiter=self._limiter)
