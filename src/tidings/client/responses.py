"""Responses of the service: parsed values, or the errors that the service raised."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, TypeVar
from urllib.parse import urlsplit

import httpx

from tidings.errors import Absent, InputError, NotAllowed, TidingsError, TooOften, error_from
from tidings.operations.retry_after import parse_retry_after

T = TypeVar("T")

MAX_EXCERPT = 200
"""Characters of an unexpected response that are quoted in the error."""

FORMAT_ERRORS = (KeyError, TypeError, ValueError, AttributeError, RecursionError)
"""Exceptions of parsing JSON that Tidings did not write."""

_BY_STATUS: dict[int, type[TidingsError]] = {401: NotAllowed, 403: NotAllowed, 404: Absent}


class NoAnswer(TidingsError):
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
    if isinstance(problem, TooOften):
        problem.seconds = parse_retry_after(response.headers, datetime.now(UTC)) or 0
    return problem


def _unknown_response(response: httpx.Response) -> TidingsError:
    kind = _BY_STATUS.get(response.status_code, NoAnswer)
    where = f"{response.request.method} {response.request.url.path}"
    received = f"{response.status_code} {response.text[:MAX_EXCERPT]}".strip()
    return kind("this is not a response of Tidings", where=where, received=received)


def build_no_answer(where: str, error: Exception) -> NoAnswer:
    """Return the error for a service that cannot be reached."""
    return NoAnswer(
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
