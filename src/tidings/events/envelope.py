"""Validation of the CloudEvents envelope: attribute names and values.

    {"specversion": "1.0", "id": "7", "source": "/shop", "type": "sale", "time": "2026-01-31T12:00:00Z", "shelf": 12}

CloudEvents 1.0.2, sections "Context Attributes" and "Type System". A null attribute counts as absent.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from tidings.core.suggest import join_words, printable
from tidings.errors import DecodeProblem
from tidings.values import parse_instant

REQUIRED = ("id", "source", "type")
"""The context attributes that every CloudEvent has, in addition to `specversion`."""

DATA = ("data", "data_base64")
"""The members that are not attributes."""

_NAME = re.compile(r"[a-z0-9]+")
_MEDIA_TYPE = re.compile(r"[\w!#$&^.+-]+/[\w!#$&^.+-]+ *(;.*)?", re.ASCII)
_WHOLE_TIME = re.compile(r".{10}[Tt ].{8}(\.\d+)?([Zz]|.{6})", re.ASCII)
"""RFC 3339 requires seconds and a zone, which are optional in ISO 8601."""


def _is_media_type(value: object) -> bool:
    return isinstance(value, str) and _MEDIA_TYPE.fullmatch(value) is not None


def _is_time(value: object) -> bool:
    is_whole = isinstance(value, str) and _WHOLE_TIME.fullmatch(value) is not None
    return is_whole and parse_instant(str(value)) is not None


def _is_text(value: object) -> bool:
    return isinstance(value, str) and value != ""


def _is_simple(value: object) -> bool:
    return isinstance(value, str | int)


_OPTIONAL: Mapping[str, tuple[Callable[[object], bool], str]] = {
    "datacontenttype": (_is_media_type, "a media type, such as application/json"),
    "dataschema": (_is_text, "a URI"),
    "subject": (_is_text, "a non-empty string"),
    "time": (_is_time, "an RFC 3339 time, such as 2026-01-31T12:00:00Z"),
}
_EXTENSION = _is_simple, "a string, a whole number or a boolean"
"""Checks for optional attributes (above) and for extension attributes."""

_CHARSET = re.compile(r";\s*charset\s*=\s*\"?([^\s;\"]+)", re.IGNORECASE)
_UTF_8 = ("utf-8", "us-ascii")


def text_of(media_type: str, data: bytes) -> str | None:
    """Decode data whose media type is text in an encoding of JSON; None for other data.

    The result is the same whether the data came as a string, in Base64 or as the body of a request.
    """
    encoding = _CHARSET.search(media_type)
    if not media_type.lower().startswith("text/") or (encoding and encoding[1].lower() not in _UTF_8):
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None


def check_envelope(content: Mapping[str, Any]) -> None:
    """Refuse an invalid CloudEvent, naming the attribute."""
    if content["specversion"] != "1.0":
        received = printable(repr(content["specversion"]))
        what = "unsupported CloudEvents version"
        raise DecodeProblem(what, received=received, accepted="specversion '1.0'")
    for name in REQUIRED:
        if not isinstance(content.get(name), str) or not content[name]:
            accepted = f"non-empty strings for {join_words(REQUIRED)}"
            raise DecodeProblem(f"a CloudEvent needs the attribute {name}", accepted=accepted)
    for name, value in content.items():
        if name not in DATA and value is not None:
            _check_attribute(name, value)
    if all(content.get(name) is not None for name in DATA):
        raise DecodeProblem("a CloudEvent has both data and data_base64", accepted="one of them")


def _check_attribute(name: object, value: object) -> None:
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        what, accepted = "invalid CloudEvents attribute name", "letters from a to z, and digits"
        raise DecodeProblem(what, received=printable(repr(name)), accepted=accepted)
    holds, accepted = _OPTIONAL.get(name, _EXTENSION)
    if not holds(value):
        what = f"invalid value of the CloudEvents attribute {name}"
        raise DecodeProblem(what, received=printable(repr(value)), accepted=accepted)
