"""Encoding of reasons, facts, bindings and times as text.

JSON with all non-ASCII characters escaped: a publication may contain a NUL or a lone surrogate, which no database
stores as text.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from tidings.model import MATCHED, Reason

Clock = Callable[[], datetime]
"""A function that returns the current time in UTC."""

_encode = json.JSONEncoder(separators=(",", ":"), default=str).encode


def encode_reasons(reasons: Sequence[Reason]) -> str:
    """Encode reasons as a JSON list of predicate, value and path."""
    return _encode([(reason.predicate, reason.value, reason.at) for reason in reasons])


def decode_reasons(text: str) -> tuple[Reason, ...]:
    """Decode the text of `encode_reasons`."""
    return tuple(Reason(*fields) for fields in json.loads(text))


def encode_mapping(mapping: dict[str, Any] | None) -> str | None:
    return None if mapping is None else _encode(mapping)


def decode_mapping(text: str | None) -> dict[str, Any] | None:
    mapping: dict[str, Any] | None = None if text is None else json.loads(text)
    return mapping


def escape_unstorable(text: str) -> str:
    """Escape characters that no database stores."""
    shown = text.encode("utf-8", "backslashreplace").decode()
    return shown.replace("\x00", "\\x00")


def utc_now() -> datetime:
    """Return the current time of this machine."""
    return datetime.now(UTC)


def format_instant(moment: datetime) -> str:
    """Format a time in UTC; the texts have the same order as the times."""
    return moment.isoformat(timespec="microseconds").replace("+00:00", "Z")


def now_text() -> str:
    """Return the current time as text."""
    return format_instant(utc_now())


@dataclass(frozen=True, slots=True)
class MatchRow:
    """A match that becomes a notification. `because` and `bindings` may be encoded as text.

    `position` is that of the publication in its source, 0 if it has none.
    """

    publication: str
    subscription: str
    subscriber: str
    because: Sequence[Reason] | str = ()
    bindings: dict[str, Any] | str | None = None
    kind: str = MATCHED
    position: int = 0


def notification_row(id: str, match: MatchRow, number: int, time: str) -> tuple[object, ...]:
    """Build a row of `notifications` or of `deferred_notifications`, which differ in the meaning of the number."""
    because = match.because if isinstance(match.because, str) else encode_reasons(match.because)
    bindings = match.bindings if isinstance(match.bindings, str) else encode_mapping(match.bindings)
    publication = escape_unstorable(match.publication)
    return match.subscriber, number, id, match.subscription, publication, match.kind, because, bindings, time
