"""Dates as feeds write them: RFC 822 in RSS 2.0, ISO 8601 (all of it, or a year, or a month) elsewhere."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime

from tidings.graphs.model import XSD, Term, literal
from tidings.values import parse_instant

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SHORT = re.compile(r"\d{4}(-\d{2})?")


def instant(text: str) -> datetime | None:
    """The instant in UTC; a date is its midnight, and what names no zone is UTC. Nothing if it is no date."""
    for read in (_exact, _iso, parsedate_to_datetime):
        try:
            made = read(text.strip())
            return made.replace(tzinfo=UTC) if made.tzinfo is None else made.astimezone(UTC)
        except (
            ValueError,
            TypeError,
            IndexError,
            OverflowError,
        ):  # all of which Python's reader of RFC 822 may raise
            continue
    return None


def _exact(text: str) -> datetime:
    """As events have it: RFC 3339 with lower-case letters and leap seconds, too."""
    found = parse_instant(text)
    if found is None:
        raise ValueError(text)
    return _EPOCH + timedelta(microseconds=found.micros)


def _iso(text: str) -> datetime:
    return datetime.fromisoformat(text + "-01-01"[len(text) - 4 :] if _SHORT.fullmatch(text) else text)


def date_term(text: str) -> Term:
    """The date as an xsd:dateTime, exactly; as plain text if it is not a date."""
    exact, found = parse_instant(text.strip()), instant(text)
    if exact is not None and exact.between:
        return literal(text.strip(), XSD + "dateTime")
    return literal(text.strip()) if found is None else literal(written(found), XSD + "dateTime")


def written(moment: datetime) -> str:
    return moment.isoformat().replace("+00:00", "Z")
