"""Deliveries in line for a thread: as many at once as there are threads, and to one place no more than it may have.

Some may wait, so that a thread that is done goes on while it is written down what became of others. A place that is
slow holds up nobody but itself; what waits too long, because all threads are held up, is left to others.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from threading import Condition, Thread
from time import monotonic
from typing import Any, TypeVar

from tidings.core.closeable import Closeable

T = TypeVar("T")


@dataclass(eq=False, slots=True)
class _Job:
    place: str
    call: Callable[[], Any]
    future: Future[Any] = field(default_factory=Future)
    since: float = field(default_factory=monotonic)

    def run(self) -> None:
        try:
            result = self.call()
        except BaseException as error:  # noqa: BLE001  whoever waits for it is told
            self.future.set_exception(error)
        else:
            self.future.set_result(result)


class HostPool(Closeable):
    """Threads, and what waits for them."""

    def __init__(self, threads: int, per_place: int) -> None:
        self._most, self._per_place = threads, per_place
        self._threads: list[Thread] = []
        self._waiting: deque[_Job] = deque()
        self._running: Counter[str] = Counter()
        self._idle = 0
        self._changed = Condition()
        self._closed = False

    def submit(self, place: str, call: Callable[[], T]) -> Future[T]:
        """Have something done at a place, as soon as there is room."""
        job = _Job(place, call)
        with self._changed:
            self._waiting.append(job)
            if len(self._waiting) > self._idle and len(self._threads) < self._most:
                self._threads.append(Thread(target=self._work, name="delivery", daemon=True))
                self._threads[-1].start()
            self._changed.notify()
        return job.future

    def drop(self, patience: float) -> int:
        """Cancel what has been waiting for longer than that; how much it was."""
        oldest = monotonic() - patience
        with self._changed:
            late = [job for job in self._waiting if job.since < oldest]
            self._drop(late)
        return len(late)

    def close(self) -> None:
        """Cancel what waits, and wait for what is under way."""
        with self._changed:
            self._drop(list(self._waiting))
            self._closed = True
            self._changed.notify_all()
        for thread in self._threads:
            thread.join()

    def _drop(self, jobs: Sequence[_Job]) -> None:
        for job in jobs:
            self._waiting.remove(job)
            job.future.cancel()
            job.future.set_running_or_notify_cancel()

    def _work(self) -> None:
        while (job := self._next()) is not None:
            job.run()
            with self._changed:
                self._running[job.place] -= 1
                if not self._running[job.place]:
                    del self._running[job.place]

    def _next(self) -> _Job | None:
        """The first in line whose place has room."""
        with self._changed:
            while not self._closed:
                for job in self._waiting:
                    if self._running[job.place] < self._per_place:
                        self._waiting.remove(job)
                        job.future.set_running_or_notify_cancel()
                        self._running[job.place] += 1
                        return job
                self._idle += 1
                self._changed.wait()
                self._idle -= 1
            return None
