"""How often somebody may try to log in: a token cannot be guessed, and nobody should keep the store busy trying."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from threading import Lock
from time import monotonic

FAILURES, SECONDS = 10, 60.0
"""So many failures within so many seconds; then the next one waits."""

REMEMBERED = 10_000
"""Addresses; whoever has been quiet longest is forgotten first."""


class Attempts:
    """Failures by address, as this process has seen them."""

    def __init__(self, clock: Callable[[], float] = monotonic, most: int = REMEMBERED) -> None:
        self._clock, self._most = clock, most
        self._failed: OrderedDict[str, list[float]] = OrderedDict()
        self._lock = Lock()

    def wait(self, address: str) -> float:
        """Seconds until this address may try again; 0 if it may now."""
        with self._lock:
            failed = self._recent(address)
            return 0.0 if len(failed) < FAILURES else SECONDS - (self._clock() - failed[0])

    def failed(self, address: str) -> None:
        """Note a failure."""
        with self._lock:
            self._failed[address] = [*self._recent(address), self._clock()][-FAILURES:]
            self._failed.move_to_end(address)
            if len(self._failed) > self._most:
                self._failed.popitem(last=False)

    def _recent(self, address: str) -> list[float]:
        since = self._clock() - SECONDS
        return [moment for moment in self._failed.get(address, ()) if moment > since]
