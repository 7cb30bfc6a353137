"""When a feed is polled next: what the feed asks for, what the server asks for, and what is decent.

    what went well     the longest of `ttl`, `max-age` and ten minutes; an hour if nothing is said; a day at most
    what went wrong    five minutes, ten, twenty ... a day, each half as long to half as long again at random
    Retry-After        never before it, whatever went how; a week at most
    skipHours,         not then, whatever went how; unless there would be no other time
    skipDays

Randomness keeps those who failed together from coming back together.
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
"""How often a feed is polled that a hub pushes: hubs fail silently."""

LONGEST_TTL = 1_000_000

_MAX_AGE = re.compile(r"(?:^|[,\s])max-age\s*=\s*\"?(\d{1,10})", re.IGNORECASE)


ALL_HOURS, ALL_DAYS = (1 << 24) - 1, (1 << 7) - 1


def skips_of(hours: Iterable[int], days: Iterable[int]) -> int | None:
    """The hours and days in which nobody should ask, as a number that is kept; none if there would be no other time."""
    skipped_hours, skipped_days = sum(1 << each for each in set(hours)), sum(1 << each for each in set(days))
    if skipped_hours == ALL_HOURS or skipped_days == ALL_DAYS:
        return None
    return skipped_hours | skipped_days << 24 or None


def next_allowed(due: datetime, skips: int | None, chance: Random) -> datetime:
    """The time itself, or a time soon after what is to be skipped. Not everybody comes at the full hour."""
    at = due.astimezone(UTC)
    if not _is_skipped(at, skips or 0):
        return due
    at = at.replace(minute=0, second=0, microsecond=0)
    while _is_skipped(at, skips or 0):
        at += timedelta(hours=1)
    return at + SOONEST * chance.uniform(0, 1)


def _is_skipped(at: datetime, skips: int) -> bool:
    return bool(skips >> at.hour & 1 or skips >> 24 + at.weekday() & 1)


def after_success(
    moment: datetime, ttl: int | None, headers: Mapping[str, str], chance: Random, pushed: bool = False
) -> datetime:
    """When to look again after a poll that went well."""
    asked = [timedelta(minutes=min(ttl, LONGEST_TTL))] if ttl is not None else []
    age = _MAX_AGE.search(headers.get("cache-control", ""))
    asked += [timedelta(seconds=int(age[1]))] if age else []
    wait = min(LATEST, max(SOONEST, *asked)) if asked else USUAL
    wait = max(wait, PUSHED) if pushed else wait
    wait = max(wait, timedelta(seconds=parse_retry_after(headers, moment) or 0))
    return moment + wait * chance.uniform(1, 1.1)


def after_failure(moment: datetime, failures: int, after: int | None, chance: Random) -> datetime:
    """When to try again after so many failures in a row."""
    wait = min(LATEST, FIRST_RETRY * (1 << min(failures - 1, 20))) * chance.uniform(0.5, 1.5)
    return moment + max(wait, timedelta(seconds=after or 0))
