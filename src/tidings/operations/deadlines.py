"""Limits of time for requests as a whole, kept by one thread for all of them.

Timeouts of sockets are for each read: one byte in each, in the headers already, would do to hold a thread for days. A
timer for each request would be a thread for each.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Condition, Thread
from time import monotonic

from tidings.core.closeable import Closeable
from tidings.operations.egress_policy import FetchProblem

CHECK_SECONDS = 0.25
"""How much too late the end of a request may come."""


class DeadlineGuard:
    """A request under way: the socket it has now, and whether it was ended."""

    def __init__(self, until: float) -> None:
        self.until, self.ended = until, False
        self._socket: socket.socket | None = None

    def hold(self, found: socket.socket) -> None:
        """Take the socket that the request has from now on: with TLS it is another one than before."""
        self._socket = found
        if self.ended:  # while it was connecting
            self.end()

    def end(self) -> None:
        self.ended = True
        if self._socket is not None:
            with suppress(OSError):  # it ended by itself just now
                self._socket.shutdown(socket.SHUT_RDWR)


class Deadlines(Closeable):
    """Ends requests whose time is over."""

    def __init__(self) -> None:
        self._running: set[DeadlineGuard] = set()
        self._changed = Condition()
        self._closed = False
        self._thread: Thread | None = None

    @contextmanager
    def within(self, seconds: float, url: str) -> Iterator[DeadlineGuard]:
        """A request that is ended when its time is over, and fails then, however complete its answer looks."""
        held = DeadlineGuard(monotonic() + seconds)
        self._begin(held)
        try:
            yield held
        except Exception as raised:
            if held.ended:
                raise _too_long(url, seconds) from raised
            raise
        finally:
            with self._changed:
                self._running.discard(held)
        if held.ended:
            raise _too_long(url, seconds)

    def end(self) -> None:
        """End all that are under way."""
        with self._changed:
            for held in self._running:
                held.end()

    def close(self) -> None:
        with self._changed:
            self._closed = True
            self._changed.notify()
        if self._thread is not None:
            self._thread.join()

    def _begin(self, held: DeadlineGuard) -> None:
        with self._changed:
            if self._thread is None:
                self._thread = Thread(target=self._watch, name="deadlines", daemon=True)
                self._thread.start()
            if not self._running:
                self._changed.notify()
            self._running.add(held)

    def _watch(self) -> None:
        with self._changed:
            while not self._closed:
                self._changed.wait(CHECK_SECONDS if self._running else None)
                now = monotonic()
                for held in self._running:
                    if held.until <= now and not held.ended:
                        held.end()


def _too_long(url: str, seconds: float) -> FetchProblem:
    return FetchProblem("the answer takes too long", where=url, accepted=f"{seconds:g} seconds")
