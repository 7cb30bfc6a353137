"""Retries with backoff and jitter, shared by both clients."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Generic, TypeVar

import httpx

from tidings.client.calls import Call
from tidings.client.responses import build_no_answer, parse_problem, parse_response
from tidings.operations.retry_after import parse_retry_after

T = TypeVar("T")

CONNECT_SECONDS = 10.0

RETRY_STATUSES = frozenset({429, 502, 503, 504})
"""Responses after which a call is repeated. Most calls may be: what they create has an id chosen by the client."""

UNPROCESSED_STATUSES = frozenset({429, 503})
"""Those of the service itself, which has done nothing. After a 502 or 504 of a proxy the call may have succeeded."""


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often a call is tried, and the delays between attempts in seconds.

    Delays double up to `max_delay`, and half of each is random: a thousand clients of a server that was away do not
    all return at the same moment. A server that asks for more than `max_retry_after` is an error.
    """

    attempts: int = 6
    initial_delay: float = 0.25
    max_delay: float = 30.0
    max_retry_after: float = 300.0

    def delay(
        self, failures: int, retry_after: float | None = None, draw: Callable[[], float] = random.random
    ) -> float:
        """Return the delay after so many failures; never shorter than the server asked for."""
        ceiling = min(self.max_delay, self.initial_delay * 2.0 ** min(failures - 1, 30))
        return max(retry_after or 0.0, ceiling * (0.5 + draw() / 2))

    def is_exhausted(self, failures: int, retry_after: float | None = None) -> bool:
        return failures >= self.attempts or (retry_after or 0.0) > self.max_retry_after


class Attempts(Generic[T]):
    """The attempts of one call. After each, a client asks whether to wait and repeat it, or for the result."""

    def __init__(self, call: Call[T], policy: RetryPolicy) -> None:
        self._call, self._policy, self._failures = call, policy, 0

    def retry_failure(self, where: str, error: httpx.TransportError) -> float:
        """Return the delay after an attempt without a response, or raise.

        A call that must not be repeated is tried again only if it cannot have arrived.
        """
        self._failures += 1
        may_have_arrived = not isinstance(
            error, httpx.ConnectError | httpx.ConnectTimeout | httpx.PoolTimeout
        )
        if self._policy.is_exhausted(self._failures) or (self._call.once and may_have_arrived):
            raise build_no_answer(where, error) from error
        return self._policy.delay(self._failures)

    def retry_response(self, response: httpx.Response) -> float | None:
        """Return the delay after a response that asks to come back later; `None` if the response is final."""
        retried = UNPROCESSED_STATUSES if self._call.once else RETRY_STATUSES
        if response.status_code not in retried:
            return None
        self._failures += 1
        retry_after = parse_retry_after(response.headers, datetime.now(UTC))
        if self._policy.is_exhausted(self._failures, retry_after):
            return None
        return self._policy.delay(self._failures, retry_after)

    def parse(self, response: httpx.Response) -> T:
        """Return the parsed response, or raise its error.

        A 404 for a repeated DELETE means that an earlier attempt succeeded and its response was lost.
        """
        is_removed = self._call.method == "DELETE" and response.status_code == 404 and self._failures > 0
        if is_removed:
            return self._call.parse(None)
        if not response.is_success:
            raise parse_problem(response, self._call.text)
        return parse_response(response, self._call.parse)


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
