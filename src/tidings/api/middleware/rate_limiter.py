"""How often somebody may do something: a bucket of requests that fills up again all the time.

    Rates(60_000, 2_000)        requests with a token: what limits.api says
    Rates(30, 30)               pings from an address
    Rates(10, 10)               attempts to log in that failed, from an address

Those who came last are remembered. Whoever is forgotten, because many others came since, has a full bucket again.
"""

from __future__ import annotations

import math
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock

from starlette.requests import HTTPConnection

from tidings.core.text import plural
from tidings.errors import TooOften

MAX_BUCKETS = 10_000

CHARGED_BYTES = 16_000
"""A body counts as one more request for each of so many bytes."""

CHARGED_TEXT = 500
"""Subscriptions of many count as one more request for each of so many bytes, which compile in about a millisecond."""

CHARGED_PARTS = 50
"""Publications of many, and the objects of JSON-LD, count as one more request for each of so many."""


@dataclass(frozen=True, slots=True)
class RateLimitState:
    """What a caller has left: requests, and seconds until there is one more than now, or one at all."""

    requests: int
    seconds: int
    is_allowed: bool


class RateLimiter:
    """The buckets of all who came, by what tells them apart: a token, an address."""

    def __init__(
        self,
        a_minute: int,
        burst: int,
        most: int = MAX_BUCKETS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._a_minute, self._burst, self._most, self._clock = a_minute, burst, most, clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()
        self._lock = Lock()

    def take(self, who: str) -> RateLimitState:
        """Take a request out of somebody's bucket, if there is one in it."""
        with self._lock:
            now = self._clock()
            level = self._level(who, now)
            is_allowed = level >= 1
            level -= is_allowed
            self._buckets[who] = level, now
            self._buckets.move_to_end(who)
            if len(self._buckets) > self._most:
                self._buckets.popitem(last=False)
        return self._left(level, is_allowed)

    def charge(self, who: str, requests: int) -> None:
        """Charge more than the bucket holds if need be: later requests wait until it is refilled."""
        with self._lock:
            now = self._clock()
            self._buckets[who] = max(self._level(who, now) - requests, -float(self._burst)), now

    def look(self, who: str) -> RateLimitState:
        """What somebody has, and take nothing."""
        with self._lock:
            level = self._level(who, self._clock())
        return self._left(level, level >= 1)

    def _level(self, who: str, now: float) -> float:
        level, since = self._buckets.get(who, (float(self._burst), now))
        passed = max(0.0, now - since)  # a wall clock may be set back
        return min(float(self._burst), level + passed * self._a_minute / 60)

    def _left(self, level: float, is_allowed: bool) -> RateLimitState:
        more = max(1, math.floor(level) + 1) - level
        return RateLimitState(max(0, int(level)), math.ceil(more * 60 / self._a_minute), is_allowed)

    def headers(self, left: RateLimitState) -> dict[str, str]:
        """What is answered with each request (draft-ietf-httpapi-ratelimit-headers)."""
        policy = f'"token";q={self._a_minute};w=60'
        return {"RateLimit-Policy": policy, "RateLimit": f'"token";r={left.requests};t={left.seconds}'}

    def problem(self, left: RateLimitState) -> TooOften:
        """What is said to whoever has none left."""
        accepted = f"{plural(self._a_minute, 'request')} a minute with one token, {self._burst:,} at once"
        return TooOften("too many requests", seconds=max(1, left.seconds), accepted=accepted)


def charge_requests(connection: HTTPConnection, requests: int) -> None:
    """Count the work of a request as that of so many more with its token: bytes, parts, or lines that are refused."""
    rates: RateLimiter | None = getattr(connection.app.state, "rates", None)
    token: str | None = getattr(connection.state, "token", None)
    if rates is not None and token is not None and requests > 0:
        rates.charge(token, requests)
