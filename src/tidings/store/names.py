"""Ids and names: what they may look like, and how new ones are made."""

from __future__ import annotations

import secrets

from tidings.core.storable import check_text
from tidings.errors import IdTaken, InputError

__all__ = ["LONGEST", "check", "check_text", "find_problem", "id_taken_error", "new_id"]

LONGEST = 500


def find_problem(what: str, name: str) -> InputError | None:
    """What keeps a name from being carried by every database, terminal and address, if something does."""
    if not 0 < len(name) <= LONGEST:
        shown = f"{len(name)} of them, {name[:20]!r} ..."
        return InputError(f"{what} has 1 to {LONGEST} characters", received=shown)
    # A space is printable. A line break is not, and neither is half a surrogate pair, which no UTF-8 holds.
    if not name.isprintable():
        return InputError(f"{what} has only characters that can be shown", received=ascii(name))
    return None


def check(what: str, name: str, pointer: str | None = None) -> str:
    """The name itself, if nothing is wrong with it; `pointer` is the member it came in, where it came in one."""
    found = find_problem(what, name)
    if found is not None:
        found.pointer = pointer
        raise found
    return name


def id_taken_error(id: str) -> IdTaken:
    """What is said to somebody who wants an id that somebody else has: neither whose it is, nor what it stands for."""
    found = IdTaken(f"the id '{id}' is taken", hint="choose another one, or leave it out")
    found.pointer = "/id"
    return found


def new_id(prefix: str, digits: int = 8) -> str:
    """A new random id. Eight hexadecimal digits are easy to type; who finds one taken asks for sixteen."""
    return f"{prefix}-{secrets.token_hex(digits // 2)}"
