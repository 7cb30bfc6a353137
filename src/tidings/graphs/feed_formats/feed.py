"""What is known of a feed as a whole, in each of the formats."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from tidings.graphs.feed_formats.omissions import LeftOut

_PERIODS = {"hourly": 60, "daily": 1_440, "weekly": 10_080, "monthly": 43_200, "yearly": 525_600}


_DIGITS = 15
"""Longer numbers are capped: no feed needs them, and Python refuses to parse thousands of digits."""

_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")


class FeedFacts(NamedTuple):
    """As the feed says it; `updated` is the text of a date, `ttl` is in minutes. `skip_hours` (of UTC) and `skip_days`
    (Monday is 0) are when nobody should ask.
    """

    title: str | None = None
    link: str | None = None
    description: str | None = None
    language: str | None = None
    ttl: int | None = None
    hubs: tuple[str, ...] = ()
    self_link: str | None = None
    updated: str | None = None
    node: str | None = None
    skip_hours: frozenset[int] = frozenset()
    skip_days: frozenset[int] = frozenset()
    left_out: LeftOut = ()


def hours(written: Iterable[str]) -> frozenset[int]:
    """Hours of a day. Midnight was 24 once."""
    found = (int(text) for text in written if len(text) <= 2 and text.isascii() and text.isdecimal())
    return frozenset(hour % 24 for hour in found if hour <= 24)


def days(written: Iterable[str]) -> frozenset[int]:
    """Days of a week by their names; Monday is 0."""
    return frozenset(_DAYS.index(text.lower()) for text in written if text.lower() in _DAYS)


def minutes(period: str | None, often: str | None) -> int | None:
    """How long a feed stays as it is by the syndication module: `updateFrequency` times in each `updatePeriod`."""
    length = _PERIODS.get((period or "").strip())
    times = whole_number(often or "")
    return None if length is None else max(1, length // max(1, 1 if times is None else times))


def whole_number(text: str) -> int | None:
    """The whole number that a feed says; None if it is none. One of more digits than make sense is that large."""
    digits = text.strip()
    if not digits.isdecimal():
        return None
    return int(digits) if len(digits) <= _DIGITS else int("9" * _DIGITS)
