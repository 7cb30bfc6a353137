"""Ids and names: validation and generation."""

from __future__ import annotations

import secrets

from tidings.core.arguments import check_text
from tidings.errors import IdConflict, InputError

__all__ = ["LONGEST", "check", "check_chosen_id", "check_text", "find_problem", "id_taken_error", "new_id"]

LONGEST = 500


def find_problem(title: str, name: str) -> InputError | None:
    """Return an error if a name does not fit every database, terminal and URL."""
    if not 0 < len(name) <= LONGEST:
        shown = f"{len(name)} characters, {name[:20]!r} ..."
        return InputError(f"{title} has 1 to {LONGEST} characters", received=shown)
    # A space is printable. A line break is not, nor a lone surrogate, which UTF-8 cannot encode.
    if not name.isprintable():
        return InputError(f"{title} has only characters that can be shown", received=ascii(name))
    return None


def check(title: str, name: str, pointer: str | None = None) -> str:
    """Return a valid name or raise; `pointer` is the JSON pointer of the member that has it."""
    problem = find_problem(title, name)
    if problem is not None:
        problem.pointer = pointer
        raise problem
    return name


def check_chosen_id(id: str | None) -> str:
    """Return the id that a caller chose, "" for none: the store then generates one. An empty id is an error."""
    if id == "":
        raise InputError("an id cannot be empty", hint="leave it out, and one is generated")
    return id or ""


def id_taken_error(id: str) -> IdConflict:
    """Build the error for an id of another subscriber; it reveals neither owner nor content."""
    problem = IdConflict(f"the id '{id}' is taken", hint="choose another one, or leave it out")
    problem.pointer = "/id"
    return problem


def new_id(prefix: str, digits: int = 8) -> str:
    """Generate a random id. Eight hexadecimal digits are easy to type; callers use sixteen after a collision."""
    return f"{prefix}-{secrets.token_hex(digits // 2)}"
