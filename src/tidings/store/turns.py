"""Turns of those who write: first come, first served.

SQLite lets one write at a time. Whoever finds it taken looks again after a pause of up to a tenth of a second, and
behind many who write a little, one after the other, hardly ever finds it free. So those of one process stand in a queue
before they ask, however often they have opened the file.
"""

from __future__ import annotations

from collections import deque
from threading import Lock
from weakref import WeakValueDictionary


class Turns:
    """So many may write at once. A turn that ends goes to whoever waits longest: nobody can slip in between."""

    def __init__(self, at_once: int) -> None:
        self._free = at_once
        self._lock = Lock()
        self._waiting: deque[Lock] = deque()

    @property
    def waiting(self) -> int:
        """How many wait for their turn."""
        return len(self._waiting)

    def begin(self, seconds: float) -> bool:
        """Wait for a turn, so long at most; false if there was none."""
        gate = Lock()
        gate.acquire()
        try:
            with self._lock:
                if self._free:
                    self._free -= 1
                    return True
                self._waiting.append(gate)
            return gate.acquire(timeout=seconds) or not self._gave_up(gate)
        except BaseException:  # Ctrl-C while it waits: a turn that is given to nobody would never end
            if not self._gave_up(gate) and not gate.locked():
                self.end()
            raise

    def end(self) -> None:
        with self._lock:
            if self._waiting:
                self._waiting.popleft().release()
            else:
                self._free += 1

    def _gave_up(self, gate: Lock) -> bool:
        """Wait no longer; false if it was given a turn just now."""
        with self._lock:
            if gate not in self._waiting:
                return False
            self._waiting.remove(gate)
            return True


_of_files: WeakValueDictionary[str, Turns] = WeakValueDictionary()
_lock = Lock()


def of_file(path: str) -> Turns:
    """Those of all in this process who write to a file."""
    with _lock:
        return _of_files.setdefault(path, Turns(1))
