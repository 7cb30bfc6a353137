"""Thread pool with a limit per host, so that a slow host does not occupy all threads.

More jobs than threads may be submitted: a thread continues with the next job while the outcomes of others are recorded.
Jobs that have waited too long can be cancelled, and other processes can do them.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from threading import Condition, Thread
from time import monotonic
from typing import Any, TypeVar

from tidings.core.lifecycle import Closeable

T = TypeVar("T")


@dataclass(eq=False, slots=True)
class _Job:
    host: str
    call: Callable[[], Any]
    future: Future[Any] = field(default_factory=Future)
    since: float = field(default_factory=monotonic)

    def run(self) -> None:
        try:
            result = self.call()
        except BaseException as error:  # noqa: BLE001  raised where the result is read
            self.future.set_exception(error)
        else:
            self.future.set_result(result)


class HostPool(Closeable):
    """A pool of at most `threads` threads; at most `per_host` of them work for one host."""

    def __init__(self, threads: int, per_host: int) -> None:
        self._max_threads, self._per_host = threads, per_host
        self._threads: list[Thread] = []
        self._waiting: deque[_Job] = deque()
        self._running: Counter[str] = Counter()
        self._idle = 0
        self._changed = Condition()
        self._closed = False

    def submit(self, host: str, call: Callable[[], T]) -> Future[T]:
        """Run a call as soon as a thread and its host are free."""
        job = _Job(host, call)
        with self._changed:
            self._waiting.append(job)
            if len(self._waiting) > self._idle and len(self._threads) < self._max_threads:
                self._threads.append(Thread(target=self._work, name="delivery", daemon=True))
                self._threads[-1].start()
            self._changed.notify()
        return job.future

    def cancel_waiting(self, seconds: float) -> int:
        """Cancel jobs that have waited longer than this; return how many."""
        oldest = monotonic() - seconds
        with self._changed:
            late = [job for job in self._waiting if job.since < oldest]
            self._cancel(late)
        return len(late)

    def close(self) -> None:
        """Cancel waiting jobs, and wait for running ones."""
        with self._changed:
            self._cancel(list(self._waiting))
            self._closed = True
            self._changed.notify_all()
        for thread in self._threads:
            thread.join()

    def _cancel(self, jobs: Sequence[_Job]) -> None:
        for job in jobs:
            self._waiting.remove(job)
            job.future.cancel()
            job.future.set_running_or_notify_cancel()

    def _work(self) -> None:
        while (job := self._next()) is not None:
            job.run()
            with self._changed:
                self._running[job.host] -= 1
                if not self._running[job.host]:
                    del self._running[job.host]

    def _next(self) -> _Job | None:
        """Return the first waiting job whose host has a free slot."""
        with self._changed:
            while not self._closed:
                for job in self._waiting:
                    if self._running[job.host] < self._per_host:
                        self._waiting.remove(job)
                        job.future.set_running_or_notify_cancel()
                        self._running[job.host] += 1
                        return job
                self._idle += 1
                self._changed.wait()
                self._idle -= 1
            return None
