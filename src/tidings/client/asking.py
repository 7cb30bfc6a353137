"""One call, tried again where that helps: what both clients do with each answer."""

from __future__ import annotations

from typing import Any, TypeVar

import httpx

from tidings.client.answers import problem_of, silent, value_of
from tidings.client.calls import Call
from tidings.client.retrying import AGAIN, Patience, retry_after

T = TypeVar("T")

CONNECT_SECONDS = 10.0


class Attempts:
    """The attempts of one call. A client asks it after each one whether to pause and try again, or what came of it."""

    def __init__(self, patience: Patience) -> None:
        self._patience, self._failures = patience, 0

    def failed(self, where: str, error: httpx.TransportError) -> float:
        """The pause after an attempt without an answer, or the error."""
        self._failures += 1
        if self._patience.is_over(self._failures):
            raise silent(where, error) from error
        return self._patience.pause(self._failures)

    def refused(self, response: httpx.Response) -> float | None:
        """The pause after an answer that says: not now. Nothing, if it says something else or often enough."""
        if response.status_code not in AGAIN:
            return None
        self._failures += 1
        wanted = retry_after(response.headers.get("retry-after"))
        if self._patience.is_over(self._failures, wanted):
            return None
        return self._patience.pause(self._failures, wanted)


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


def outcome(call: Call[T], response: httpx.Response) -> T:
    """The value of an answer, or the error that it tells."""
    if not response.is_success:
        raise problem_of(response, call.text)
    return call.read(value_of(response))
