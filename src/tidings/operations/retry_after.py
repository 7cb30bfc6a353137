"""`Retry-After`: for how long a server asks not to be called; and dates in HTTP headers."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime

LONGEST_PAUSE = timedelta(days=7)


def parse_retry_after(headers: Mapping[str, str], moment: datetime) -> int | None:
    """The seconds that a server asks to be left alone: a number, or until a date."""
    said = headers.get("retry-after", "").strip()
    if said.isascii() and said.isdecimal():
        seconds = int(said[:10])
    else:
        until = parse_http_date(said)
        if until is None:
            return None
        seconds = int((until - moment).total_seconds())
    return min(max(0, seconds), int(LONGEST_PAUSE.total_seconds()))


def parse_http_date(text: str) -> datetime | None:
    """The date of a header. A date that cannot be read counts as none (RFC 9110, section 13.1.3)."""
    try:
        found = parsedate_to_datetime(text)
    except (
        ValueError,
        OverflowError,
    ):  # OverflowError: a year or a zone with more digits than a C integer has
        return None
    return found.replace(tzinfo=UTC) if found.tzinfo is None else found
