"""Polling schedule of a feed, from the feed, the server and limits of our own.

    after success      the longest of `ttl`, `max-age` and ten minutes; an hour without either; at most a day
    after a failure    5, 10, 20 ... minutes up to a day, times a random factor from 0.5 to 1.5
    Retry-After        never earlier, at most a week
    skipHours,         never in these hours and days, unless no time would be left
    skipDays

The random factor keeps feeds that failed together from being polled together.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from random import Random

from tidings.operations.retry_after import parse_retry_after

SOONEST = timedelta(minutes=10)
USUAL = timedelta(hours=1)
LATEST = timedelta(days=1)
FIRST_RETRY = timedelta(minutes=5)
PUSHED = timedelta(hours=6)
"""Interval of polls while a hub pushes the feed: hubs fail silently."""

LONGEST_TTL = 1_000_000

_MAX_AGE = re.compile(r"(?:^|[,\s])max-age\s*=\s*\"?(\d{1,10})", re.IGNORECASE)


ALL_HOURS, ALL_DAYS = (1 << 24) - 1, (1 << 7) - 1


def skips_of(hours: Iterable[int], days: Iterable[int]) -> int | None:
    """Encode skipped hours and days as a number; None if no time would be left."""
    skipped_hours, skipped_days = sum(1 << each for each in set(hours)), sum(1 << each for each in set(days))
    if skipped_hours == ALL_HOURS or skipped_days == ALL_DAYS:
        return None
    return skipped_hours | skipped_days << 24 or None


def next_allowed(due: datetime, skips: int | None, chance: Random) -> datetime:
    """Return the time, or a random time soon after the skipped hours and days."""
    hour = due.astimezone(UTC)
    if not _is_skipped(hour, skips or 0):
        return due
    hour = hour.replace(minute=0, second=0, microsecond=0)
    while _is_skipped(hour, skips or 0):
        hour += timedelta(hours=1)
    return hour + SOONEST * chance.uniform(0, 1)


def _is_skipped(moment: datetime, skips: int) -> bool:
    return bool(skips >> moment.hour & 1 or skips >> 24 + moment.weekday() & 1)


def after_success(
    moment: datetime, ttl: int | None, headers: Mapping[str, str], chance: Random, pushed: bool = False
) -> datetime:
    """Return when to poll again after a success."""
    intervals = [timedelta(minutes=min(ttl, LONGEST_TTL))] if ttl is not None else []
    age = _MAX_AGE.search(headers.get("cache-control", ""))
    intervals += [timedelta(seconds=int(age[1]))] if age else []
    wait = min(LATEST, max(SOONEST, *intervals)) if intervals else USUAL
    wait = max(wait, PUSHED) if pushed else wait
    wait = max(wait, timedelta(seconds=parse_retry_after(headers, moment) or 0))
    return moment + wait * chance.uniform(1, 1.1)


def after_failure(moment: datetime, failures: int, retry_after: int | None, chance: Random) -> datetime:
    """Return when to poll again after this many failures in a row."""
    wait = min(LATEST, FIRST_RETRY * (1 << min(failures - 1, 20))) * chance.uniform(0.5, 1.5)
    return moment + max(wait, timedelta(seconds=retry_after or 0))
