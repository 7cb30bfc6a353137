"""One call, tried again where that helps: what both clients do with each answer."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Generic, TypeVar

import httpx

from tidings.client.answers import problem_of, read_answer, silent, value_of
from tidings.client.calls import Call
from tidings.client.retrying import AGAIN, NOT_TAKEN, Patience
from tidings.web.retry_after import retry_after

T = TypeVar("T")

CONNECT_SECONDS = 10.0


class Attempts(Generic[T]):
    """The attempts of one call. A client asks it after each one whether to pause and try again, or what came of it."""

    def __init__(self, call: Call[T], patience: Patience) -> None:
        self._call, self._patience, self._failures = call, patience, 0

    def failed(self, where: str, error: httpx.TransportError) -> float:
        """The pause after an attempt without an answer, or the error. What must not be done twice is tried again only
        if it cannot have arrived.
        """
        self._failures += 1
        has_arrived = not isinstance(error, httpx.ConnectError | httpx.ConnectTimeout | httpx.PoolTimeout)
        if self._patience.is_over(self._failures) or (self._call.once and has_arrived):
            raise silent(where, error) from error
        return self._patience.pause(self._failures)

    def refused(self, response: httpx.Response) -> float | None:
        """The pause after an answer that says: not now. Nothing, if it says something else or often enough."""
        if response.status_code not in AGAIN or (self._call.once and response.status_code not in NOT_TAKEN):
            return None
        self._failures += 1
        wanted = retry_after(response.headers, datetime.now(UTC))
        if self._patience.is_over(self._failures, wanted):
            return None
        return self._patience.pause(self._failures, wanted)

    def outcome(self, response: httpx.Response) -> T:
        """The value of an answer, or the error that it tells. What is gone after it was asked for twice was removed by
        the first, whose answer was lost.
        """
        is_removed = self._call.method == "DELETE" and response.status_code == 404 and self._failures > 0
        if not response.is_success and not is_removed:
            raise problem_of(response, self._call.text)
        return read_answer(response, self._call.read, None if is_removed else value_of(response))


def request_of(client: httpx.Client | httpx.AsyncClient, call: Call[Any]) -> httpx.Request:
    return client.build_request(
        call.method,
        call.path,
        params=dict(call.params) if call.params else None,
        json=call.json,
        content=call.content,
        headers=dict(call.headers or {}),
        timeout=httpx.Timeout(call.seconds, connect=CONNECT_SECONDS),
    )
