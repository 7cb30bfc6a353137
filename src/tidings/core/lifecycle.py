"""Lifecycle of resources and background work: closing, worker threads, pauses of the garbage collector."""

from __future__ import annotations

import gc
import logging
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread
from typing import Self

from tidings.errors import TidingsError


@contextmanager
def without_gc() -> Iterator[None]:
    """Pause the cyclic garbage collector for one batch; only the caller that paused it resumes it.

    A batch of documents allocates enough objects to trigger full collections, which took a sixth of its time with the
    modules of this program in memory. A batch has hardly any reference cycles; counting frees the rest.
    """
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


class Closeable(ABC):
    """A resource that `with` closes."""

    @abstractmethod
    def close(self) -> None:
        """Release the resource."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: object) -> None:
        self.close()


class Worker(ABC):
    """A thread that repeats `run_once` from the start of a `with` block to its end.

    A `TidingsError` is temporary, for example a store that cannot be reached: it is logged once, shown as `problem`,
    and the step is retried after a pause. Any other exception is a bug. It ends the thread with a traceback, and only a
    restart of the process helps.
    """

    join_seconds: float | None = None
    """Time that the end of the `with` block waits for the step in progress; without a limit by default."""

    def __init__(self, name: str, pause: float) -> None:
        self.error: TidingsError | None = None
        """The error of the last step, if it failed."""
        self.stopping = Event()
        self._pause = pause
        self._log = logging.getLogger(f"tidings.{name}")
        self._thread = Thread(target=self._run, name=name, daemon=True)

    @abstractmethod
    def run_once(self) -> None:
        """Do one step of the work; if there is nothing to do, wait with `self.stopping.wait`."""

    def interrupt(self) -> None:  # noqa: B027  a worker without long waits needs none
        """Cancel waits and requests in progress; called once, when the worker stops."""

    def close(self) -> None:  # noqa: B027  a worker may have nothing to close
        """Release resources, after the thread has ended."""

    def retry_seconds(self, failures: int) -> float:
        """Return the pause after this many failures in a row."""
        return self._pause

    @property
    def is_alive(self) -> bool:
        return self._thread.is_alive()

    @property
    def problem(self) -> str | None:
        """The problem that keeps the worker from working, or None."""
        if not self.is_alive:
            return f"{self._thread.name} has stopped because of an error; see the log"
        error = self.error
        return str(error) if error else None

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self.stopping.set()
        self.interrupt()
        self._thread.join(self.join_seconds)
        self.close()

    def _run(self) -> None:
        failures = 0
        while not self.stopping.is_set():
            try:
                self.run_once()
            except TidingsError as error:
                failures += 1
                self._record(error)
                self.stopping.wait(self.retry_seconds(failures))
            else:
                failures = 0
                self._record(None)

    def _record(self, error: TidingsError | None) -> None:
        """Log an error unless it is the same as before, and the recovery from one."""
        if self.stopping.is_set():
            return
        if error is not None and str(error) != str(self.error):
            self._log.warning("%s failed and is retried: %s", self._thread.name, error)
        elif error is None and self.error is not None:
            self._log.warning("%s works again", self._thread.name)
        self.error = error
