"""Dates as feeds write them: RFC 822 in RSS 2.0, ISO 8601 (all of it, or a year, or a month) elsewhere."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from tidings.graphs import XSD, Term, literal

_SHORT = re.compile(r"\d{4}(-\d{2})?")


def instant(text: str) -> datetime | None:
    """The instant in UTC; a date is its midnight, and what names no zone is UTC. Nothing if it is no date."""
    for read in (_iso, parsedate_to_datetime):
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


def _iso(text: str) -> datetime:
    return datetime.fromisoformat(text + "-01-01"[len(text) - 4 :] if _SHORT.fullmatch(text) else text)


def date_term(text: str) -> Term:
    """The date as an xsd:dateTime; as the text that it is, if nobody can tell what date it means."""
    found = instant(text)
    return literal(text.strip()) if found is None else literal(written(found), XSD + "dateTime")


def written(moment: datetime) -> str:
    return moment.isoformat().replace("+00:00", "Z")
