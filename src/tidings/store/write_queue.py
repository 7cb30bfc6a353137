"""Fair queue of writers within a process.

SQLite allows one writer at a time. A writer that finds the lock taken polls with pauses of up to a tenth of a second,
and starves behind many short writers. So the writers of a process queue before they ask for the lock, for all
connections to the file together.
"""

from __future__ import annotations

from threading import Lock
from time import monotonic
from weakref import WeakValueDictionary, ref

LOOK_AGAIN = 1.0
"""Seconds after which waiting writers check the queue themselves: a writer may be gone without leaving it."""


class WriteTicket:
    """A place in the queue for as long as it is referenced; the first places may write.

    Ctrl-C may come between any two steps, even while a place is taken or given up. So the queue has weak references:
    a ticket without an owner disappears from it.
    """

    def __init__(self) -> None:
        self.gate = Lock()
        self.gate.acquire()


class WriteQueue:
    """A first-in, first-out queue in which `at_once` writers may write."""

    def __init__(self, at_once: int) -> None:
        self._at_once = at_once
        self._lock = Lock()
        self._queue: list[ref[WriteTicket]] = []

    @property
    def waiting(self) -> int:
        """Number of waiting writers."""
        with self._lock:
            return max(0, len(self._list_tickets()) - self._at_once)

    def begin(self, seconds: float) -> WriteTicket | None:
        """Wait until this writer may write; return None after a timeout."""
        turn, until = WriteTicket(), monotonic() + seconds
        try:
            with self._lock:
                self._queue.append(ref(turn))
            while not self._has_come(turn):
                left = until - monotonic()
                if left <= 0:
                    self.end(turn)
                    return None
                turn.gate.acquire(timeout=min(left, LOOK_AGAIN))
        except BaseException:  # Ctrl-C: the traceback would keep the ticket alive
            self.end(turn)
            raise
        return turn

    def end(self, turn: WriteTicket) -> None:
        """Leave the queue."""
        with self._lock:
            tickets = [ticket for ticket in self._list_tickets() if ticket is not turn]
            self._queue = [ref(ticket) for ticket in tickets]
            for ticket in tickets[: self._at_once]:
                if ticket.gate.locked():
                    ticket.gate.release()

    def _has_come(self, turn: WriteTicket) -> bool:
        with self._lock:
            return turn in self._list_tickets()[: self._at_once]

    def _list_tickets(self) -> list[WriteTicket]:
        """Return the tickets that still exist, in order."""
        return [turn for each in self._queue if (turn := each()) is not None]


_of_files: WeakValueDictionary[str, WriteQueue] = WeakValueDictionary()
_lock = Lock()


def queue_of_file(path: str) -> WriteQueue:
    """Return the queue of all writers of this process to a file."""
    with _lock:
        return _of_files.setdefault(path, WriteQueue(1))
