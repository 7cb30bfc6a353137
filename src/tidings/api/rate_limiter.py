"""Rate limiter: token buckets of callers, and how many requests an expensive one counts as."""

from __future__ import annotations

import math
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock

from starlette.requests import HTTPConnection

from tidings.core.text import plural
from tidings.errors import RateLimited

MAX_BUCKETS = 10_000

CHARGED_BYTES = 16_000
"""Bytes of a body that count as one more request."""

CHARGED_TEXT = 500
"""Bytes of bulk subscriptions that count as one more request; they compile in about a millisecond."""

CHARGED_PARTS = 50
"""Publications of a bulk request, or JSON-LD objects, that count as one more request."""


@dataclass(frozen=True, slots=True)
class RateLimitState:
    """Remaining requests of a caller, and seconds until it has one more."""

    requests: int
    seconds: int
    is_allowed: bool


class RateLimiter:
    """Token buckets of callers, by token or address, which refill continuously.

        RateLimiter(60_000, 2_000)        requests with one token, by the setting limits.api
        RateLimiter(30, 30)               pings from one address
        RateLimiter(10, 10)               failed logins from one address

    Only the most recent callers have a bucket. A caller whose bucket was evicted starts with a full one.
    """

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

    def take(self, caller: str) -> RateLimitState:
        """Take a request out of a caller's bucket, if there is one in it."""
        with self._lock:
            now = self._clock()
            level = self._level(caller, now)
            is_allowed = level >= 1
            level -= is_allowed
            self._buckets[caller] = level, now
            self._buckets.move_to_end(caller)
            if len(self._buckets) > self._most:
                self._buckets.popitem(last=False)
        return self._left(level, is_allowed)

    def charge(self, caller: str, requests: int) -> None:
        """Charge more than the bucket holds if need be: later requests wait until it is refilled."""
        with self._lock:
            now = self._clock()
            self._buckets[caller] = max(self._level(caller, now) - requests, -float(self._burst)), now

    def look(self, caller: str) -> RateLimitState:
        """Return the state of a caller's bucket without taking a request."""
        with self._lock:
            level = self._level(caller, self._clock())
        return self._left(level, level >= 1)

    def _level(self, caller: str, now: float) -> float:
        level, since = self._buckets.get(caller, (float(self._burst), now))
        passed = max(0.0, now - since)  # a wall clock may be set back
        return min(float(self._burst), level + passed * self._a_minute / 60)

    def _left(self, level: float, is_allowed: bool) -> RateLimitState:
        missing = max(1, math.floor(level) + 1) - level
        return RateLimitState(max(0, int(level)), math.ceil(missing * 60 / self._a_minute), is_allowed)

    def headers(self, left: RateLimitState) -> dict[str, str]:
        """Return the headers of each response (draft-ietf-httpapi-ratelimit-headers)."""
        policy = f'"token";q={self._a_minute};w=60'
        return {"RateLimit-Policy": policy, "RateLimit": f'"token";r={left.requests};t={left.seconds}'}

    def problem(self, left: RateLimitState) -> RateLimited:
        """Return the error for a caller with an empty bucket."""
        accepted = f"{plural(self._a_minute, 'request')} a minute with one token, {self._burst:,} at once"
        return RateLimited("too many requests", seconds=max(1, left.seconds), accepted=accepted)


def charge_requests(connection: HTTPConnection, requests: int) -> None:
    """Charge an expensive request as several: for its bytes, parts or refused lines."""
    rates: RateLimiter | None = getattr(connection.app.state, "rates", None)
    token: str | None = getattr(connection.state, "token", None)
    if rates is not None and token is not None and requests > 0:
        rates.charge(token, requests)
