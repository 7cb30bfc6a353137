"""The attributes of a CloudEvent in the binary mode: `ce-subject: Euro%20%E2%82%AC`.

HTTP binding of CloudEvents 1.0.2, section 3.1.3.2: a value may stand in double quotes, then it is percent-decoded once,
and what is no UTF-8 is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from urllib.parse import unquote_to_bytes

from starlette.datastructures import Headers

from tidings.errors import DecodeProblem

_NAME = re.compile(r"ce-([a-z0-9]{1,60})")
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"')
_ESCAPE = re.compile(r"\\(.)")


def attributes_of(headers: Headers) -> dict[str, str] | None:
    """The attributes; none if it is no CloudEvent."""
    if "ce-specversion" not in headers:
        return None
    return _once((name[1], _value(name[0], value)) for name, value in _named(headers))


def _named(headers: Headers) -> Iterable[tuple[re.Match[str], str]]:
    return ((found, value) for name, value in headers.items() if (found := _NAME.fullmatch(name)))


def _once(attributes: Iterable[tuple[str, str]]) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, value in attributes:
        if name in found:
            raise DecodeProblem("an attribute of a CloudEvent stands twice", where=f"ce-{name}")
        found[name] = value
    return found


def _value(header: str, given: str) -> str:
    """Headers come as Latin-1, whatever their bytes are."""
    quoted = _QUOTED.fullmatch(given)
    plain = _ESCAPE.sub(r"\1", quoted[1]) if quoted else given
    try:
        return unquote_to_bytes(plain.encode("latin-1")).decode()
    except UnicodeDecodeError:
        accepted = "what is not ASCII as UTF-8, each byte as % and two hex digits"
        raise DecodeProblem(
            "the header is not UTF-8", where=header, received=ascii(given)[:80], accepted=accepted
        ) from None
