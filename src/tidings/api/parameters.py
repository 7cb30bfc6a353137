"""What is wrong with a parameter or a member of a body, in words: which one, what it was, what it could be."""

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
    """Refuse the first parameter that is none of those that there are."""
    for name in given:
        if name not in known:
            raise HttpError(400, no_such("parameter", name, known))


def check_parameters(connection: HTTPConnection) -> None:
    """Refuse an address that is not UTF-8, or has a parameter that no database can hold.

    Servers put the same character in the place of all bytes that are not UTF-8: two ids would become one.
    """
    try:
        unquote_to_bytes(connection.scope["raw_path"]).decode()
        query = parse_qsl(connection.scope["query_string"].decode(), keep_blank_values=True, errors="strict")
    except UnicodeDecodeError:
        problem = InputError("the address is not UTF-8", accepted="UTF-8, percent-encoded")
        raise HttpError(400, problem) from None
    for name, value in (*connection.path_params.items(), *query):
        if not (is_storable(name) and is_storable(str(value))):
            what = "a parameter has a character that no database keeps"
            received, accepted = ascii(value)[:80], "Unicode without NUL"
            raise HttpError(400, InputError(what, where=name[:80], received=received, accepted=accepted))


def parameter_problem(error: RequestValidationError, members: Sequence[str] = ()) -> InputError:
    """The first parameter, or member of the body, that is wrong. The body may have these `members`.

    A name that is not known comes first: what is missing may be what was meant by it.
    """
    found = error.errors()
    first = next((one for one in found if one["type"] == "extra_forbidden"), found[0])
    given, (place, *names) = first.get("input"), first["loc"]
    received = str(given)[:200] if isinstance(given, str | int | float) else None
    name, is_missing = str(names[-1] if names else place), first["type"] == "missing"
    if place != "body":
        if is_missing:
            return InputError("a parameter is missing", where=name)
        what = "a parameter that cannot be used"
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
    """What to say of a body of which nobody said that it is JSON: curl says that each is a form."""
    return InputError(
        "this is taken as JSON only",
        where="Content-Type",
        received=plain(media_type)[:200] or "nothing",
        accepted=JSON,
        hint=hint_json_lines(body) or JSON_HINT,
    )


def _no_object(given: object) -> InputError:
    """What to say of a body that is no object: it is empty, an array, or another value."""
    problem = InputError("the body cannot be used", accepted="a JSON object", hint=JSON_HINT)
    if isinstance(given, list):
        problem.received, problem.hint = "an array", JSON_LINES_HINT
    return problem
