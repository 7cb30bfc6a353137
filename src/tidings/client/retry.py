"""One call, tried again where that helps: what both clients do with each answer."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Generic, TypeVar

import httpx

from tidings.client.calls import Call
from tidings.client.responses import build_no_answer, parse_problem, parse_value, read_response
from tidings.operations.retry_after import parse_retry_after

# When to ask again, and after how long.


RETRY_STATUSES = frozenset({429, 502, 503, 504})
"""Answers that say: not now. Most of what a client asks for may be asked for twice: what it makes has an id."""

UNPROCESSED_STATUSES = frozenset({429, 503})
"""Those of the service itself, which has done nothing; a proxy's may stand for an answer that was lost."""


@dataclass(frozen=True, slots=True)
class RetryPolicy:
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


T = TypeVar("T")

CONNECT_SECONDS = 10.0


class Attempts(Generic[T]):
    """The attempts of one call. A client asks it after each one whether to pause and try again, or what came of it."""

    def __init__(self, call: Call[T], patience: RetryPolicy) -> None:
        self._call, self._patience, self._failures = call, patience, 0

    def failed(self, where: str, error: httpx.TransportError) -> float:
        """The pause after an attempt without an answer, or the error. What must not be done twice is tried again only
        if it cannot have arrived.
        """
        self._failures += 1
        has_arrived = not isinstance(error, httpx.ConnectError | httpx.ConnectTimeout | httpx.PoolTimeout)
        if self._patience.is_over(self._failures) or (self._call.once and has_arrived):
            raise build_no_answer(where, error) from error
        return self._patience.pause(self._failures)

    def refused(self, response: httpx.Response) -> float | None:
        """The pause after an answer that says: not now. Nothing, if it says something else or often enough."""
        if response.status_code not in RETRY_STATUSES or (
            self._call.once and response.status_code not in UNPROCESSED_STATUSES
        ):
            return None
        self._failures += 1
        wanted = parse_retry_after(response.headers, datetime.now(UTC))
        if self._patience.is_over(self._failures, wanted):
            return None
        return self._patience.pause(self._failures, wanted)

    def outcome(self, response: httpx.Response) -> T:
        """The value of an answer, or the error that it tells. What is gone after it was asked for twice was removed by
        the first, whose answer was lost.
        """
        is_removed = self._call.method == "DELETE" and response.status_code == 404 and self._failures > 0
        if not response.is_success and not is_removed:
            raise parse_problem(response, self._call.text)
        return read_response(response, self._call.read, None if is_removed else parse_value(response))


def build_http_request(client: httpx.Client | httpx.AsyncClient, call: Call[Any]) -> httpx.Request:
    return client.build_request(
        call.method,
        call.path,
        params=dict(call.params) if call.params else None,
        json=call.json,
        content=call.content,
        headers=dict(call.headers or {}),
        timeout=httpx.Timeout(call.seconds, connect=CONNECT_SECONDS),
    )
