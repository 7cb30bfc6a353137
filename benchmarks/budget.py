"""Time limits for engines."""

from __future__ import annotations

import math
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NamedTuple

from benchmarks.rows import duration


class TooLong(Exception):
    """An engine exceeded its time limit. It is not tried again with more subscriptions."""


class Budget(NamedTuple):
    """Wall-clock seconds: for a peer to load all subscriptions, and for one run of matching.

    An engine gets as many events as it can match in one run. It is stopped if it has not matched the first few
    within ten times that duration.
    """

    build: float = 60.0
    run: float = 1.0
    overhead: float = math.inf
    """A peer whose calls have a larger overhead, besides matching, is left out."""


@contextmanager
def at_most(seconds: float, step: str) -> Iterator[None]:
    """Raise TooLong when the block takes longer.

    The limit is a signal. It interrupts Python code, waiting for another process, and compiled code that checks for
    signals (DuckDB does, and raises an error of its own); other compiled code runs to its end first.
    """
    if math.isinf(seconds):
        yield
        return
    error, signals = TooLong(f"{step} took more than {duration(seconds)}"), []

    def stop(signum: int, frame: FrameType | None) -> None:
        signals.append(signum)
        raise error

    with _alarm(seconds, stop):
        try:
            yield
        except Exception:
            if signals:
                raise error from None
            raise


@contextmanager
def _alarm(seconds: float, stop: Callable[[int, FrameType | None], None]) -> Iterator[None]:
    """Call `stop` after some seconds, and restore a previous timer afterwards."""
    began, handler = time.monotonic(), signal.signal(signal.SIGALRM, stop)
    outer, interval = signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, handler)
        if outer:
            signal.setitimer(signal.ITIMER_REAL, max(1e-3, outer - (time.monotonic() - began)), interval)
