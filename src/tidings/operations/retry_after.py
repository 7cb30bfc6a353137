"""The header `Retry-After`, and dates in HTTP headers."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime

LONGEST_PAUSE = timedelta(days=7)


def parse_retry_after(headers: Mapping[str, str], moment: datetime) -> int | None:
    """Return the seconds to wait before the next request; the header has a number, or a date."""
    value = headers.get("retry-after", "").strip()
    if value.isascii() and value.isdecimal():
        seconds = int(value[:10])
    else:
        until = parse_http_date(value)
        if until is None:
            return None
        seconds = int((until - moment).total_seconds())
    return min(max(0, seconds), int(LONGEST_PAUSE.total_seconds()))


def parse_http_date(text: str) -> datetime | None:
    """Parse the date of a header; an invalid one counts as missing (RFC 9110, section 13.1.3)."""
    try:
        date = parsedate_to_datetime(text)
    except (ValueError, OverflowError):  # OverflowError: a year or zone with more digits than a C integer
        return None
    return date.replace(tzinfo=UTC) if date.tzinfo is None else date
