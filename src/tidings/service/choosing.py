"""What is named in a call: a language, a media type, an id of somebody's own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from tidings.errors import InputError

T = TypeVar("T")


def choose(
    what: str, name: str, known: Mapping[str, T], hint: str | None = None, also: str | None = None
) -> T:
    if name not in known:
        accepted = ", ".join([*known, *filter(None, [also])])
        raise InputError(f"{what} that is not known", received=repr(name), accepted=accepted, hint=hint)
    return known[name]


def given(id: str | None) -> str:
    """An id of somebody's own; none asks the store for one, and an empty one is a mistake."""
    if id == "":
        raise InputError("an id cannot be empty", hint="leave it out, and one is made")
    return id or ""
