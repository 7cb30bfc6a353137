"""When a feed is polled next."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta, timezone
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidings.feeds.inbound.schedule import (
    FIRST_RETRY,
    LATEST,
    SOONEST,
    USUAL,
    after_failure,
    after_success,
    next_allowed,
    skips_of,
)
from tidings.operations.retry_after import LONGEST_PAUSE, parse_retry_after

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)


def time_to_next_poll(ttl: int | None = None, pushed: bool = False, **headers: str) -> timedelta:
    """Return the time until the next poll, without its random part."""

    class Lowest(Random):
        def uniform(self, low: float, high: float) -> float:
            return low

    dashed = {name.replace("_", "-"): value for name, value in headers.items()}
    return after_success(NOON, ttl, dashed, Lowest(), pushed) - NOON


@pytest.mark.parametrize(
    ("ttl", "cache", "minutes"),
    [
        (None, "", 60),
        (30, "", 30),
        (1, "", 10),
        (0, "", 10),
        (None, "max-age=1800", 30),
        (None, "public, Max-Age = 1800", 30),
        (None, "s-maxage=60, max-age=0", 10),
        (None, "x-max-age=90000", 60),
        (45, "max-age=1800", 45),
        (15, "max-age=1800", 30),
        (525_600, "", 1_440),
        (10**30, "max-age=9999999999", 1_440),
        (None, "max-age=soon", 60),
    ],
)
def test_after_success_follows_ttl_and_cache_control(ttl: int | None, cache: str, minutes: int) -> None:
    assert time_to_next_poll(ttl, cache_control=cache) == timedelta(minutes=minutes)


def test_after_success_pushed_feed_is_polled_less_often() -> None:
    assert time_to_next_poll(30, pushed=True) > time_to_next_poll(30) and time_to_next_poll(
        1_440, pushed=True
    ) == timedelta(days=1)


def test_after_success_respects_retry_after() -> None:
    assert time_to_next_poll(10, retry_after="7200") == timedelta(hours=2)


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("120", 120),
        (" 0 ", 0),
        ("Fri, 01 May 2026 12:02:00 GMT", 120),
        ("Fri, 01 May 2026 12:02:00 -0000", 120),
        ("Fri, 01 May 2026 11:00:00 GMT", 0),
        ("9" * 40, 7 * 86_400),
        ("Fri, 01 May 2099 11:00:00 GMT", 7 * 86_400),
        ("-5", None),
        ("soon", None),
        ("Fri, 01 May 99999999999999999999 12:02:00 GMT", None),
        ("Fri, 01 May 2026 12:02:00 +99999999999999999999999", None),
        ("", None),
        ("²", None),
    ],
)
def test_parse_retry_after_returns_seconds_within_limit(header: str, seconds: int | None) -> None:
    assert parse_retry_after({"retry-after": header}, NOON) == seconds


@given(st.integers(0, 2**32), st.integers(1, 200))
def test_after_failure_delay_doubles_with_jitter(seed: int, failures: int) -> None:
    delay = after_failure(NOON, failures, None, Random(seed)) - NOON
    middle = min(LATEST, FIRST_RETRY * 2 ** min(failures - 1, 30))
    assert middle / 2 <= delay <= middle * 1.5


def test_after_failure_and_success_have_jitter() -> None:
    assert len({after_failure(NOON, 1, None, Random(seed)) for seed in range(20)}) == 20
    assert len({after_success(NOON, None, {}, Random(seed)) for seed in range(20)}) == 20


@given(st.integers(0, 10**6), st.integers(1, 50), st.integers(0, 2**32))
def test_after_failure_is_never_before_retry_after(seconds: int, failures: int, seed: int) -> None:
    assert after_failure(NOON, failures, seconds, Random(seed)) >= NOON + timedelta(seconds=seconds)


FRIDAY = 4


@pytest.mark.parametrize(
    ("due", "hours", "days", "moved"),
    [
        (NOON, (), (), NOON),
        (NOON, (11, 13), (3, 5), NOON),
        (NOON, (12,), (), NOON.replace(hour=13)),
        (NOON.replace(minute=59), (12, 13, 14), (), NOON.replace(hour=15)),
        (NOON.replace(hour=23, minute=5), (23, 0, 1), (), NOON.replace(day=2, hour=2)),
        (NOON, (), (FRIDAY,), NOON.replace(day=2, hour=0)),
        (NOON, (0, 1), (FRIDAY, 5, 6), NOON.replace(day=4, hour=2)),
        (NOON, range(24), (), NOON),
        (NOON, (), range(7), NOON),
    ],
)
def test_next_allowed_moves_past_skipped_hours_and_days(
    due: datetime, hours: Iterable[int], days: Iterable[int], moved: datetime
) -> None:
    actual = next_allowed(due, skips_of(hours, days), Random(7))
    assert moved <= actual <= moved + SOONEST
    assert (actual == due) == (moved == due)


def test_next_allowed_skip_hours_are_in_utc() -> None:
    east = NOON.astimezone(timezone(timedelta(hours=9)))
    assert next_allowed(east, skips_of([12], []), Random(7)) >= NOON.replace(hour=13)
    assert next_allowed(east, skips_of([21], []), Random(7)) == NOON


@given(
    st.sets(st.integers(0, 23), max_size=23), st.sets(st.integers(0, 6), max_size=6), st.integers(0, 10**6)
)
def test_next_allowed_is_earliest_time_not_skipped(hours: set[int], days: set[int], minutes: int) -> None:
    due = NOON + timedelta(minutes=minutes)
    actual = next_allowed(due, skips_of(hours, days), Random(minutes))
    assert actual.hour not in hours and actual.weekday() not in days and actual >= due
    between = due
    while between + timedelta(hours=1) < actual - SOONEST:
        between += timedelta(hours=1)
        assert between.hour in hours or between.weekday() in days


@given(st.integers(0, 10**9) | st.none(), st.text(max_size=20), st.text(max_size=20), st.integers(0, 2**32))
def test_after_success_arbitrary_headers_keep_delay_within_limits(
    ttl: int | None, cache: str, retry: str, seed: int
) -> None:
    headers = {"cache-control": f"max-age={cache}", "retry-after": retry}
    delay = after_success(NOON, ttl, headers, Random(seed)) - NOON
    assert min(SOONEST, USUAL) <= delay <= LONGEST_PAUSE * 1.1
