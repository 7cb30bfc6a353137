"""Requests and responses of both clients: retries with backoff and jitter, parsed values, errors of the service."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Generic, TypeVar
from urllib.parse import urlsplit

import httpx

from tidings.client.calls import Call
from tidings.errors import InputError, NotAllowed, NotFound, RateLimited, TidingsError, error_from
from tidings.operations.retry_after import parse_retry_after

T = TypeVar("T")

CONNECT_SECONDS = 10.0

RETRY_STATUSES = frozenset({429, 502, 503, 504})
"""Responses after which a call is repeated. Most calls may be: the client chooses the id of the result."""

UNPROCESSED_STATUSES = frozenset({429, 503})
"""Those of the service itself, which has done nothing. After a 502 or 504 of a proxy the call may have succeeded."""

MAX_EXCERPT = 200
"""Characters of an unexpected response that are quoted in the error."""

FORMAT_ERRORS = (KeyError, TypeError, ValueError, AttributeError, RecursionError)
"""Exceptions of parsing JSON that Tidings did not write."""

_BY_STATUS: dict[int, type[TidingsError]] = {401: NotAllowed, 403: NotAllowed, 404: NotFound}


class NoResponse(TidingsError):
    """The service does not answer, or another program answers at its address."""


def parse_response(response: httpx.Response, parse: Callable[[Any], T]) -> T:
    """Return the parsed body, which is `None` for an empty one; raise if Tidings did not write it."""
    is_empty = response.status_code == 204 or not response.content
    try:
        return parse(None if is_empty else response.json())
    except FORMAT_ERRORS as error:
        raise _unknown_response(response) from error


def parse_problem(response: httpx.Response, text: str | None = None) -> TidingsError:
    """Return the error in a response. Its place refers to `text`, the subscription that was sent."""
    try:
        members = response.json()
    except (ValueError, RecursionError):
        return _unknown_response(response)
    if not isinstance(members, dict) or "error" not in members:
        return _unknown_response(response)
    problem = error_from(members, text)
    if isinstance(problem, RateLimited):
        problem.seconds = parse_retry_after(response.headers, datetime.now(UTC)) or 0
    return problem


def _unknown_response(response: httpx.Response) -> TidingsError:
    kind = _BY_STATUS.get(response.status_code, NoResponse)
    where = f"{response.request.method} {response.request.url.path}"
    received = f"{response.status_code} {response.text[:MAX_EXCERPT]}".strip()
    return kind("this is not a response of Tidings", where=where, received=received)


def build_no_response(where: str, error: Exception) -> NoResponse:
    """Return the error for a service that cannot be reached."""
    return NoResponse(
        "the service does not answer",
        where=where,
        received=str(error) or type(error).__name__,
        hint="is `tidings serve` running there?",
    )


def check_url(url: str) -> str:
    """Return the address of a service without a trailing slash, or raise."""
    try:
        parts = urlsplit(url)
        is_valid = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_valid = False
    if not is_valid or parts.username is not None or parts.query or parts.fragment:
        raise InputError(
            "not the address of a service", received=url[:MAX_EXCERPT], accepted="http://HOST:PORT"
        )
    return url.rstrip("/")


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Number of attempts of a call, and the delays between attempts in seconds.

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
        """Return the delay after a number of failures; never shorter than the server requested."""
        ceiling = min(self.max_delay, self.initial_delay * 2.0 ** min(failures - 1, 30))
        return max(retry_after or 0.0, ceiling * (0.5 + draw() / 2))

    def is_exhausted(self, failures: int, retry_after: float | None = None) -> bool:
        return failures >= self.attempts or (retry_after or 0.0) > self.max_retry_after


class Attempts(Generic[T]):
    """The attempts of one call. After each, a client asks whether to wait and retry, or takes the result."""

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
            raise build_no_response(where, error) from error
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
