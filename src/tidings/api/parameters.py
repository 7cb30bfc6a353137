"""Errors about parameters and members of bodies: which one is wrong, what was received, what is accepted."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from urllib.parse import parse_qsl, unquote_to_bytes

from fastapi.exceptions import RequestValidationError
from starlette.requests import HTTPConnection

from tidings.api.http_error import HttpError
from tidings.core.storable import escaped, is_storable
from tidings.core.validation_text import expected, no_such
from tidings.errors import InputError
from tidings.graphs.rdf.media_types import plain
from tidings.kinds import JSON
from tidings.service.submission import JSON_LINES_HINT, hint_json_lines

JSON_HINT = f"Content-Type: {JSON}"


def refuse_other_parameters(given: Iterable[str], known: Sequence[str]) -> None:
    """Refuse the first parameter that is not a known one."""
    for name in given:
        if name not in known:
            raise HttpError(400, no_such("parameter", name, known))


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
            what = "a parameter contains a character that cannot be stored"
            received, accepted = ascii(value)[:80], "Unicode without NUL"
            raise HttpError(400, InputError(what, where=name[:80], received=received, accepted=accepted))


def parameter_problem(error: RequestValidationError, members: Sequence[str] = ()) -> InputError:
    """Return the error about the first wrong parameter, or member of a body with these `members`.

    Unknown names come first: a missing member may be a misspelled one.
    """
    found = error.errors()
    first = next((one for one in found if one["type"] == "extra_forbidden"), found[0])
    given, (place, *names) = first.get("input"), first["loc"]
    received = str(given)[:200] if isinstance(given, str | int | float) else None
    name, is_missing = str(names[-1] if names else place), first["type"] == "missing"
    if place != "body":
        if is_missing:
            return InputError("a parameter is missing", where=name)
        what = "invalid parameter"
        return InputError(what, where=name, received=received, accepted=expected(first))
    if not names:
        return _no_object(given)
    if first["type"] == "extra_forbidden":
        problem = no_such("member", name, members if len(names) == 1 else ())
    elif is_missing:
        problem = InputError(f"'{name}' is missing")
    else:
        problem = InputError(f"'{name}' cannot be this", received=received, accepted=expected(first))
    problem.pointer = "".join(f"/{escaped(str(each))}" for each in names)
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


def _no_object(given: object) -> InputError:
    """Return the error about a body that is not an object: empty, an array, or another value."""
    problem = InputError("the body is not a JSON object", accepted="a JSON object", hint=JSON_HINT)
    if isinstance(given, list):
        problem.received, problem.hint = "an array", JSON_LINES_HINT
    return problem
