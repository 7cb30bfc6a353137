"""What is known of a feed as a whole, in each of the formats."""

from __future__ import annotations

from typing import NamedTuple

_PERIODS = {"hourly": 60, "daily": 1_440, "weekly": 10_080, "monthly": 43_200, "yearly": 525_600}


class FeedFacts(NamedTuple):
    """As the feed says it; `updated` is the text of a date, `ttl` is in minutes."""

    title: str | None = None
    link: str | None = None
    description: str | None = None
    language: str | None = None
    ttl: int | None = None
    hubs: tuple[str, ...] = ()
    self_link: str | None = None
    updated: str | None = None
    node: str | None = None


def minutes(period: str | None, often: str | None) -> int | None:
    """How long a feed stays as it is by the syndication module: `updateFrequency` times in each `updatePeriod`."""
    length = _PERIODS.get((period or "").strip())
    times = int(often) if often and often.strip().isdecimal() else 1
    return None if length is None else max(1, length // max(1, times))
