"""How often each token may ask: a bucket of requests that fills up again all the time.

Those who came last are remembered. Whoever is forgotten, because many others came since, has a full bucket again.
"""

from __future__ import annotations

import math
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from tidings.counts import plural
from tidings.errors import TooOften


@dataclass(frozen=True, slots=True)
class Left:
    """What a caller has left: requests, and seconds until there is one more than now, or one at all."""

    requests: int
    seconds: int
    is_allowed: bool


class Rates:
    """The buckets of all tokens, in one event loop."""

    def __init__(
        self, a_minute: int, burst: int, most: int, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._a_minute, self._burst, self._most, self._clock = a_minute, burst, most, clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, who: str) -> Left:
        """Take a request out of somebody's bucket, if there is one in it."""
        now, a_second = self._clock(), self._a_minute / 60
        level, since = self._buckets.pop(who, (float(self._burst), now))
        level = min(float(self._burst), level + (now - since) * a_second)
        is_allowed = level >= 1
        level -= is_allowed
        self._buckets[who] = level, now
        if len(self._buckets) > self._most:
            self._buckets.popitem(last=False)
        return Left(int(level), math.ceil((math.floor(level) + 1 - level) / a_second), is_allowed)

    def headers(self, left: Left) -> dict[str, str]:
        """What is answered with each request (draft-ietf-httpapi-ratelimit-headers)."""
        policy = f'"token";q={self._a_minute};w=60'
        return {"RateLimit-Policy": policy, "RateLimit": f'"token";r={left.requests};t={left.seconds}'}

    def problem(self, left: Left) -> TooOften:
        """What is said to whoever has none left."""
        accepted = f"{plural(self._a_minute, 'request')} a minute with one token, {self._burst:,} at once"
        return TooOften("too many requests", seconds=max(1, left.seconds), accepted=accepted)
