"""Values that every supported database can hold, checked before a database sees them.

PostgreSQL refuses a NUL in a text and an integer of more than 64 bits; SQLite takes the first and stops reading at it,
and its driver fails on the second. Neither takes half of a surrogate pair. Such a value is the caller's mistake, not a
failure of the store: parameters of HTTP requests, arguments of XML-RPC calls, cursors and options are checked here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tidings.errors import InputError

LARGEST_INTEGER = 2**63 - 1
"""The largest number that a column holds."""

_DIGITS = len(str(LARGEST_INTEGER))
_RANGE = f"0 to {LARGEST_INTEGER}"

TEXT_PATTERN = r"^[^\x00]*$"
"""Texts that can be stored, for JSON Schema; half of a surrogate pair is in no UTF-8."""


def is_storable(text: str) -> bool:
    """Return whether a database can keep the text: no NUL, and no half of a surrogate pair."""
    return "\x00" not in text and (text.isascii() or _is_encodable(text))


def check_text(what: str, text: str, pointer: str | None = None) -> str:
    """Return the text, or refuse one that no database keeps; `pointer` is the member it came in."""
    if not is_storable(text):
        wrong = f"{what} has a character that no database keeps as text"
        found = InputError(wrong, received=ascii(text[:80]), accepted="Unicode without NUL and surrogates")
        found.pointer = pointer
        raise found
    return text


def check_members(value: Any, within: Sequence[str | int] = ()) -> None:
    """Refuse a body with a text, at any depth, that has a character no database keeps.

    `within` are the names and places that lead to the value. They become a JSON pointer in a refusal only: a pointer
    for each of many values below a long name would take the square of the body's length.
    """
    if isinstance(value, str):
        _check_member("this text", value, within)
    elif isinstance(value, list):
        for place, each in enumerate(value):
            check_members(each, (*within, place))
    elif isinstance(value, dict):
        for name, each in value.items():
            _check_member("this name", name, within)
            check_members(each, (*within, name))


def _check_member(what: str, text: str, within: Sequence[str | int]) -> None:
    if not is_storable(text):
        check_text(what, text, "".join(f"/{escaped(str(each))}" for each in within))


def escaped(name: str) -> str:
    """Return a name as a part of a JSON pointer (RFC 6901)."""
    return name.replace("~", "~0").replace("/", "~1")


def check_number(where: str, number: int) -> int:
    """Return a cursor, an offset or a count, or refuse one that no column holds; `where` names the parameter."""
    if not 0 <= number <= LARGEST_INTEGER:
        shown = str(number) if abs(number) < 10**40 else "a number of more than 40 digits"
        raise InputError("a number out of range", where=where, received=shown, accepted=_RANGE)
    return number


def parse_number(where: str, text: str) -> int:
    """Return the cursor, offset or count that a text spells, or refuse one that no column holds."""
    if not (text.isascii() and text.isdecimal() and len(text) <= _DIGITS):
        raise InputError("not a number", where=where, received=ascii(text)[:80], accepted=_RANGE)
    return check_number(where, int(text))


def _is_encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
