"""How long an engine may take, and stopping one that takes longer."""

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
    """An engine did not end in time. At more subscriptions it is not tried again."""


class Budget(NamedTuple):
    """Wall-clock seconds: for a peer to take all subscriptions, and for one run of matching.

    An engine is given as many events as it gets through in a run; one that has not matched the first few in ten
    times a run is stopped.
    """

    build: float = 60.0
    run: float = 1.0
    overhead: float = math.inf
    """A peer whose calls cost more than this besides matching is left out."""


@contextmanager
def at_most(seconds: float, what: str) -> Iterator[None]:
    """Raise TooLong when the block takes longer.

    By a signal: it ends Python code, waiting for another process, and compiled code that asks for signals (DuckDB
    does, and raises an error of its own); other compiled code ends by itself first.
    """
    if math.isinf(seconds):
        yield
        return
    late, rang = TooLong(f"{what} took more than {duration(seconds)}"), []

    def stop(signum: int, frame: FrameType | None) -> None:
        rang.append(signum)
        raise late

    with _alarm(seconds, stop):
        try:
            yield
        except Exception:
            if rang:
                raise late from None
            raise


@contextmanager
def _alarm(seconds: float, stop: Callable[[int, FrameType | None], None]) -> Iterator[None]:
    """Call `stop` after so many seconds, and let a timer that ran before go on afterwards."""
    began, handler = time.monotonic(), signal.signal(signal.SIGALRM, stop)
    outer, interval = signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, handler)
        if outer:
            signal.setitimer(signal.ITIMER_REAL, max(1e-3, outer - (time.monotonic() - began)), interval)
