"""Reasons, facts and bindings as text, and back.

JSON with everything outside ASCII escaped: what came out of a publication may hold a NUL or half a surrogate
pair, which no database takes as text.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from tidings.model import MATCHED, Reason

Clock = Callable[[], datetime]
"""What says how late it is, in UTC."""

_encode = json.JSONEncoder(separators=(",", ":"), default=str).encode


def encode_reasons(reasons: Sequence[Reason]) -> str:
    """Reasons as a text: a list of predicate, value, place."""
    return _encode([(reason.predicate, reason.value, reason.at) for reason in reasons])


def decode_reasons(text: str) -> tuple[Reason, ...]:
    """The reasons of `encode_reasons`."""
    return tuple(Reason(*fields) for fields in json.loads(text))


def encode_mapping(mapping: dict[str, Any] | None) -> str | None:
    return None if mapping is None else _encode(mapping)


def decode_mapping(text: str | None) -> dict[str, Any] | None:
    mapping: dict[str, Any] | None = None if text is None else json.loads(text)
    return mapping


def escape_unstorable(text: str) -> str:
    """A text for people, with what no database takes written as an escape."""
    shown = text.encode("utf-8", "backslashreplace").decode()
    return shown.replace("\x00", "\\x00")


def utc_now() -> datetime:
    """The clock of this machine."""
    return datetime.now(UTC)


def format_instant(moment: datetime) -> str:
    """A time in UTC as notifications and dead letters carry it; the order of these texts is that of the times."""
    return moment.isoformat(timespec="microseconds").replace("+00:00", "Z")


def now_text() -> str:
    """The time of now, as a text."""
    return format_instant(utc_now())


# A match on its way to becoming a notification, and the row it becomes.


@dataclass(frozen=True, slots=True)
class MatchRow:
    """A match on its way to becoming a notification. `because` and `bindings` may come as the texts that `encoding`
    makes of them.
    """

    publication: str
    subscription: str
    subscriber: str
    because: Sequence[Reason] | str = ()
    bindings: dict[str, Any] | str | None = None
    kind: str = MATCHED


def notification_row(id: str, one: MatchRow, number: int, time: str) -> tuple[object, ...]:
    """A row of `notifications`, or of `held`: they differ in what the number is."""
    because = one.because if isinstance(one.because, str) else encode_reasons(one.because)
    bindings = one.bindings if isinstance(one.bindings, str) else encode_mapping(one.bindings)
    publication = escape_unstorable(one.publication)
    return one.subscriber, number, id, one.subscription, publication, one.kind, because, bindings, time
