"""Answers of the service: values, or errors as they were raised there."""

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
"""Characters of an answer that nobody understands, in the message about it."""


class NoAnswer(TidingsError):
    """The service does not answer, or something else answers in its place."""


_BY_STATUS: dict[int, type[TidingsError]] = {401: NotAllowed, 403: NotAllowed, 404: Absent}


def read_response(response: httpx.Response, read: Callable[[Any], T], value: Any) -> T:
    """Read the value of an answer; one that Tidings did not write is an error."""
    try:
        return read(value)
    except FORMAT_ERRORS as error:
        raise _unknown_response(response) from error


def parse_value(response: httpx.Response) -> Any:
    """What the answer says; `None` if it says nothing."""
    if response.status_code == 204 or not response.content:
        return None
    try:
        return response.json()
    except (ValueError, RecursionError) as error:
        raise _unknown_response(response) from error


def parse_problem(response: httpx.Response, text: str | None = None) -> TidingsError:
    """The error that an answer tells. `text` is what was asked about: its place is underlined in it."""
    try:
        told = response.json()
    except (ValueError, RecursionError):
        return _unknown_response(response)
    if not isinstance(told, dict) or "error" not in told:
        return _unknown_response(response)
    problem = error_from(told, text)
    if isinstance(problem, TooOften):
        problem.seconds = parse_retry_after(response.headers, datetime.now(UTC)) or 0
    return problem


FORMAT_ERRORS = (KeyError, TypeError, ValueError, AttributeError, RecursionError)
"""What reading an answer raises if it is JSON, but not the JSON that Tidings writes."""


def _unknown_response(response: httpx.Response) -> TidingsError:
    """The error of an answer that Tidings did not write."""
    kind = _BY_STATUS.get(response.status_code, NoAnswer)
    where = f"{response.request.method} {response.request.url.path}"
    shown = f"{response.status_code} {response.text[:MAX_EXCERPT]}".strip()
    return kind("this is not an answer of Tidings", where=where, received=shown)


def build_no_answer(where: str, error: Exception) -> NoAnswer:
    """The error of a service that does not answer."""
    said = str(error) or type(error).__name__
    return NoAnswer(
        "the service does not answer", where=where, received=said, hint="does `tidings serve` run there?"
    )


def check_url(url: str) -> str:
    """The address of a service, without a slash at the end."""
    try:
        parts = urlsplit(url)
        right = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        right = False
    if not right or parts.username is not None or parts.query or parts.fragment:
        raise InputError(
            "this is no address of a service", received=url[:MAX_EXCERPT], accepted="http://HOST:PORT"
        )
    return url.rstrip("/")
