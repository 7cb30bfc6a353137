"""Ids and names: what they may look like, and how new ones are made."""

from __future__ import annotations

import secrets

from tidings.errors import InputError

LONGEST = 500


def check(what: str, name: str) -> str:
    """The name itself, if every database, terminal and address can carry it."""
    if not 0 < len(name) <= LONGEST:
        raise InputError(
            f"{what} must have 1 to {LONGEST} characters", received=f"{len(name)}: {name[:20]!r}"
        )
    # A space is printable and a line break is not; half a surrogate pair, which no UTF-8 can hold, is not
    # either.
    if not name.isprintable():
        raise InputError(
            f"{what} has a character that cannot be shown",
            received=repr(name),
            accepted="printable characters",
        )
    return name


def check_text(what: str, text: str) -> str:
    """The text itself, if every database can keep it: no NUL, and no half of a surrogate pair."""
    if "\x00" in text or not _is_encodable(text):
        raise InputError(f"{what} has a character that no database keeps as text", received=ascii(text[:80]))
    return text


def _is_encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def fresh(prefix: str, digits: int = 8) -> str:
    """A new random id. Eight hexadecimal digits are easy to type; who finds one taken asks for sixteen."""
    return f"{prefix}-{secrets.token_hex(digits // 2)}"
