"""Reasons, facts and bindings as text, and back.

JSON with everything outside ASCII escaped: what came out of a publication may hold a NUL or half a surrogate
pair, which no database takes as text.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

from tidings.model import Reason

Clock = Callable[[], datetime]
"""What says how late it is, in UTC."""

_encode = json.JSONEncoder(separators=(",", ":"), default=str).encode


def because_text(reasons: Sequence[Reason]) -> str:
    """Reasons as a text: a list of predicate, value, place."""
    return _encode([(reason.predicate, reason.value, reason.at) for reason in reasons])


def because_from(text: str) -> tuple[Reason, ...]:
    """The reasons of `because_text`."""
    return tuple(Reason(*fields) for fields in json.loads(text))


def mapping_text(mapping: dict[str, Any] | None) -> str | None:
    return None if mapping is None else _encode(mapping)


def mapping_from(text: str | None) -> dict[str, Any] | None:
    mapping: dict[str, Any] | None = None if text is None else json.loads(text)
    return mapping


def storable(text: str) -> str:
    """A text for people, with what no database takes written as an escape."""
    shown = text.encode("utf-8", "backslashreplace").decode()
    return shown.replace("\x00", "\\x00")


def utc() -> datetime:
    """The clock of this machine."""
    return datetime.now(UTC)


def instant(moment: datetime) -> str:
    """A time in UTC as notifications and dead letters carry it; the order of these texts is that of the times."""
    return moment.isoformat(timespec="microseconds").replace("+00:00", "Z")


def now() -> str:
    """The time of now, as a text."""
    return instant(utc())
