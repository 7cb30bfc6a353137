"""Parameters of requests: declarations that routes share, and errors about parameters and members of bodies."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Annotated
from urllib.parse import parse_qsl, unquote_to_bytes

from fastapi import Path, Query
from fastapi.concurrency import run_in_threadpool
from fastapi.exceptions import RequestValidationError
from starlette.requests import HTTPConnection

from tidings.api.problem_details import HttpError
from tidings.api.request_body import JSON_LINES_HINT, hint_json_lines
from tidings.core.arguments import LARGEST_INTEGER, escaped, is_storable
from tidings.core.suggest import expected, no_such
from tidings.errors import InputError
from tidings.graphs.rdf.media_types import plain
from tidings.kinds import JSON
from tidings.service.authorization import Caller

JSON_HINT = f"Content-Type: {JSON}"

Id = Annotated[str, Path(max_length=500)]
Number = Annotated[int, Path(ge=1, le=LARGEST_INTEGER)]
Limit = Annotated[int, Query(ge=1, le=1_000, description="Page size; a page may be shorter.")]
AfterId = Annotated[
    str, Query(max_length=500, description="Only ids after this one, the cursor of the previous page.")
]
AfterNumber = Annotated[int, Query(ge=0, le=LARGEST_INTEGER)]
Subscriber = Annotated[
    str | None, Query(max_length=500, description="The subscriber; only administrators may name another one.")
]


def subscriber_of(caller: Caller, named: str | None) -> str:
    """Return the subscriber that a request is about. Impossible names are refused before the store is read."""
    subscriber = caller.resolve_subscriber(named)
    if not subscriber.isprintable():
        raise InputError("no subscriber has such a name", where="subscriber", received=ascii(subscriber))
    return subscriber


async def find_subscriber(caller: Caller, named: str | None) -> str:
    """Return the same without blocking: a name such as `Student:1` may need a lookup in a source database."""
    if named is None or named == caller.subscriber or ":" not in named:
        return subscriber_of(caller, named)
    return await run_in_threadpool(subscriber_of, caller, named)


def media_type_of(connection: HTTPConnection) -> str:
    """Return the media type of a request without its parameters."""
    return plain(connection.headers.get("content-type", ""))


def refuse_other_parameters(names: Iterable[str], accepted: Sequence[str]) -> None:
    """Refuse the first parameter that is not a known one."""
    for name in names:
        if name not in accepted:
            raise HttpError(400, no_such("parameter", name, accepted))


def refuse_repeated_parameters(connection: HTTPConnection) -> None:
    """Refuse repeated parameters: servers read the last one, proxies may read the first."""
    counts = Counter(name for name, _ in connection.query_params.multi_items())
    repeated = next((name for name, count in counts.items() if count > 1), None)
    if repeated is not None:
        raise HttpError(400, InputError("repeated parameter", where=repeated[:80]))


def check_parameters(connection: HTTPConnection) -> None:
    """Refuse an address that is not UTF-8, or has a parameter that cannot be stored.

    Servers replace bytes that are not UTF-8 by the same character, so two ids would become one.
    """
    try:
        unquote_to_bytes(connection.scope["raw_path"]).decode()
        query = parse_qsl(connection.scope["query_string"].decode(), keep_blank_values=True, errors="strict")
    except UnicodeDecodeError:
        problem = InputError("the address is not UTF-8", accepted="UTF-8, percent-encoded")
        raise HttpError(400, problem) from None
    for name, value in (*connection.path_params.items(), *query):
        if not (is_storable(name) and is_storable(str(value))):
            message = "a parameter contains a character that cannot be stored"
            received, accepted = ascii(value)[:80], "Unicode without NUL"
            raise HttpError(400, InputError(message, where=name[:80], received=received, accepted=accepted))


def parameter_problem(error: RequestValidationError, members: Sequence[str] = ()) -> InputError:
    """Return the error about the first wrong parameter, or member of a body with these `members`.

    Unknown names come first: a missing member may be a misspelled one.
    """
    errors = error.errors()
    first = next((error for error in errors if error["type"] == "extra_forbidden"), errors[0])
    value, (place, *names) = first.get("input"), first["loc"]
    received = str(value)[:200] if isinstance(value, str | int | float) else None
    name, is_missing = str(names[-1] if names else place), first["type"] == "missing"
    if place != "body":
        if is_missing:
            return InputError("a parameter is missing", where=name)
        return InputError("invalid parameter", where=name, received=received, accepted=expected(first))
    if not names:
        return _build_no_object_error(value)
    if first["type"] == "extra_forbidden":
        problem = no_such("member", name, members if len(names) == 1 else ())
    elif is_missing:
        problem = InputError(f"'{name}' is missing")
    else:
        problem = InputError(f"'{name}' is invalid", received=received, accepted=expected(first))
    problem.pointer = "".join(f"/{escaped(str(name))}" for name in names)
    return problem


def build_media_type_error(body: bytes, media_type: str) -> InputError:
    """Return the error about a body that is not declared as JSON; curl declares all bodies as forms."""
    return InputError(
        "the body has to be JSON",
        where="Content-Type",
        received=plain(media_type)[:200] or "nothing",
        accepted=JSON,
        hint=hint_json_lines(body) or JSON_HINT,
    )


def _build_no_object_error(value: object) -> InputError:
    """Return the error about a body that is not an object: empty, an array, or another value."""
    problem = InputError("the body is not a JSON object", accepted="a JSON object", hint=JSON_HINT)
    if isinstance(value, list):
        problem.received, problem.hint = "an array", JSON_LINES_HINT
    return problem
