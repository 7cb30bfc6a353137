"""Deadlines of requests, enforced by one thread for all of them.

Socket timeouts apply to each read: a server that sends one byte per read, even in the headers, could block a thread for
days. A timer per request would be a thread per request.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Condition, Thread
from time import monotonic

from tidings.core.lifecycle import Closeable
from tidings.operations.egress_policy import FetchProblem

CHECK_SECONDS = 0.25
"""Tolerance after the deadline of a request."""


class DeadlineGuard:
    """A request in progress: its current socket, and whether it was ended."""

    def __init__(self, until: float) -> None:
        self.until, self.ended = until, False
        self._socket: socket.socket | None = None

    def hold(self, current: socket.socket) -> None:
        """Set the socket of the request; TLS replaces it."""
        self._socket = current
        if self.ended:  # while it was connecting
            self.end()

    def end(self) -> None:
        self.ended = True
        if self._socket is not None:
            with suppress(OSError):  # it has just ended by itself
                self._socket.shutdown(socket.SHUT_RDWR)


class Deadlines(Closeable):
    """Ends requests at their deadlines."""

    def __init__(self) -> None:
        self._running: set[DeadlineGuard] = set()
        self._changed = Condition()
        self._closed = self._ended = False
        self._thread: Thread | None = None

    @contextmanager
    def limit(self, seconds: float, url: str) -> Iterator[DeadlineGuard]:
        """End a request after some seconds; its errors then state that."""
        guard = DeadlineGuard(monotonic() + seconds)
        self._begin(guard)
        try:
            yield guard
        except Exception as error:
            if guard.ended:
                raise _describe_end(guard, seconds, url) from error
            raise
        finally:
            with self._changed:
                self._running.discard(guard)

    def end(self) -> None:
        """End all requests in progress; further ones end at once."""
        with self._changed:
            self._ended = True
            for guard in self._running:
                guard.end()

    def close(self) -> None:
        with self._changed:
            self._closed = True
            self._changed.notify()
        if self._thread is not None:
            self._thread.join()

    def _begin(self, guard: DeadlineGuard) -> None:
        with self._changed:
            if self._thread is None:
                self._thread = Thread(target=self._watch, name="deadlines", daemon=True)
                self._thread.start()
            if not self._running:
                self._changed.notify()
            self._running.add(guard)
            if self._ended:
                guard.end()

    def _watch(self) -> None:
        with self._changed:
            while not self._closed:
                self._changed.wait(CHECK_SECONDS if self._running else None)
                now = monotonic()
                for guard in self._running:
                    if guard.until <= now and not guard.ended:
                        guard.end()


def _describe_end(guard: DeadlineGuard, seconds: float, url: str) -> FetchProblem:
    if monotonic() < guard.until:
        return FetchProblem("the request was cancelled", where=url)
    return FetchProblem("the response takes too long", where=url, accepted=f"{seconds:g} seconds")
