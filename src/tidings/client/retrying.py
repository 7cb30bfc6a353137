"""When to ask again, and after how long."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

AGAIN = frozenset({429, 502, 503, 504})
"""Answers that say: not now. Most of what a client asks for may be asked for twice: what it makes has an id."""

NOT_TAKEN = frozenset({429, 503})
"""Those of the service itself, which has done nothing; a proxy's may stand for an answer that was lost."""


@dataclass(frozen=True, slots=True)
class Patience:
    """How often something is tried, and how long a pause is at first and at most, in seconds.

    Pauses double, and are drawn at random up to that: a thousand clients of a server that was away do not come back
    at the same moment.
    """

    attempts: int = 6
    first: float = 0.25
    longest: float = 30.0
    longest_asked_for: float = 300.0
    """A server that asks for more patience than that is told so: it is an error."""

    def pause(
        self, failures: int, asked_for: float | None = None, draw: Callable[[], float] = random.random
    ) -> float:
        """The pause after so many failures; never shorter than what the server asked for."""
        ceiling = min(self.longest, self.first * 2.0 ** min(failures - 1, 30))
        return max(asked_for or 0.0, ceiling * (0.5 + draw() / 2))

    def is_over(self, failures: int, asked_for: float | None = None) -> bool:
        return failures >= self.attempts or (asked_for or 0.0) > self.longest_asked_for
