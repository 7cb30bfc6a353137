"""What is named in a call: a language, a media type, an id of somebody's own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeVar

from tidings.errors import InputError

T = TypeVar("T")


def choose_known(what: str, name: str, known: Mapping[str, T]) -> T:
    if name not in known:
        raise unknown_name_error(what, name, known)
    return known[name]


def unknown_name_error(what: str, name: str, known: Iterable[str], hint: str | None = None) -> InputError:
    """What to say of a name that is none of those that there are."""
    accepted = ", ".join(known)
    return InputError(f"{what} that is not known", received=repr(name), accepted=accepted, hint=hint)


def check_own_id(id: str | None) -> str:
    """An id of somebody's own; none asks the store for one, and an empty one is a mistake."""
    if id == "":
        raise InputError("an id cannot be empty", hint="leave it out, and one is made")
    return id or ""
