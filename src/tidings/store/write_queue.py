"""Turns of those who write: first come, first served.

SQLite lets one write at a time. Whoever finds it taken looks again after a pause of up to a tenth of a second, and
behind many who write a little, one after the other, hardly ever finds it free. So those of one process stand in a queue
before they ask, however often they have opened the file.
"""

from __future__ import annotations

from threading import Lock
from time import monotonic
from weakref import WeakValueDictionary, ref

LOOK_AGAIN = 1.0
"""Seconds after which those who wait look themselves: whoever had the turn may be gone without a word."""


class WriteTicket:
    """A place in the queue, as long as somebody has it: the first ones may write.

    Ctrl-C may come between any two steps, also between taking a turn and noting that, or in the midst of ending it. So
    there is nothing to note: what nobody has any more stands in no queue.
    """

    def __init__(self) -> None:
        self.gate = Lock()
        self.gate.acquire()


class WriteQueue:
    """So many may write at once. A turn that ends goes to whoever waits longest: nobody can slip in between."""

    def __init__(self, at_once: int) -> None:
        self._at_once = at_once
        self._lock = Lock()
        self._queue: list[ref[WriteTicket]] = []

    @property
    def waiting(self) -> int:
        """How many wait for their turn."""
        with self._lock:
            return max(0, len(self._standing()) - self._at_once)

    def begin(self, seconds: float) -> WriteTicket | None:
        """Wait for a turn, so long at most; none if there was none."""
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
        except BaseException:  # Ctrl-C while it waits: its place would be kept as long as the traceback is
            self.end(turn)
            raise
        return turn

    def end(self, turn: WriteTicket) -> None:
        """Leave the queue, wherever in it."""
        with self._lock:
            rest = [each for each in self._standing() if each is not turn]
            self._queue = [ref(each) for each in rest]
            for each in rest[: self._at_once]:
                if each.gate.locked():
                    each.gate.release()

    def _has_come(self, turn: WriteTicket) -> bool:
        with self._lock:
            return turn in self._standing()[: self._at_once]

    def _standing(self) -> list[WriteTicket]:
        """Those who are there yet, in order."""
        return [turn for each in self._queue if (turn := each()) is not None]


_of_files: WeakValueDictionary[str, WriteQueue] = WeakValueDictionary()
_lock = Lock()


def queue_of_file(path: str) -> WriteQueue:
    """Those of all in this process who write to a file."""
    with _lock:
        return _of_files.setdefault(path, WriteQueue(1))
