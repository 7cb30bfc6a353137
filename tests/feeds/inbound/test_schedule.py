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


def wait(ttl: int | None = None, pushed: bool = False, **headers: str) -> timedelta:
    """How long until the next poll, without what chance adds."""

    class Never(Random):
        def uniform(self, low: float, high: float) -> float:
            return low

    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return after_success(NOON, ttl, named, Never(), pushed) - NOON


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
def test_what_feed_and_server_ask_for(ttl: int | None, cache: str, minutes: int) -> None:
    assert wait(ttl, cache_control=cache) == timedelta(minutes=minutes)


def test_a_feed_that_is_pushed_is_polled_less_often() -> None:
    assert wait(30, pushed=True) > wait(30) and wait(1_440, pushed=True) == timedelta(days=1)


def test_retry_after_counts_after_success_too() -> None:
    assert wait(10, retry_after="7200") == timedelta(hours=2)


@pytest.mark.parametrize(
    ("said", "seconds"),
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
def test_retry_after(said: str, seconds: int | None) -> None:
    assert parse_retry_after({"retry-after": said}, NOON) == seconds


@given(st.integers(0, 2**32), st.integers(1, 200))
def test_failures_wait_longer_and_longer_but_not_in_step(seed: int, failures: int) -> None:
    waits = after_failure(NOON, failures, None, Random(seed)) - NOON
    middle = min(LATEST, FIRST_RETRY * 2 ** min(failures - 1, 30))
    assert middle / 2 <= waits <= middle * 1.5


def test_those_who_failed_together_do_not_come_back_together() -> None:
    assert len({after_failure(NOON, 1, None, Random(seed)) for seed in range(20)}) == 20
    assert len({after_success(NOON, None, {}, Random(seed)) for seed in range(20)}) == 20


@given(st.integers(0, 10**6), st.integers(1, 50), st.integers(0, 2**32))
def test_never_before_retry_after(seconds: int, failures: int, seed: int) -> None:
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
def test_hours_and_days_to_skip(
    due: datetime, hours: Iterable[int], days: Iterable[int], moved: datetime
) -> None:
    found = next_allowed(due, skips_of(hours, days), Random(7))
    assert moved <= found <= moved + SOONEST
    assert (found == due) == (moved == due)


def test_hours_to_skip_are_those_of_utc() -> None:
    east = NOON.astimezone(timezone(timedelta(hours=9)))
    assert next_allowed(east, skips_of([12], []), Random(7)) >= NOON.replace(hour=13)
    assert next_allowed(east, skips_of([21], []), Random(7)) == NOON


@given(
    st.sets(st.integers(0, 23), max_size=23), st.sets(st.integers(0, 6), max_size=6), st.integers(0, 10**6)
)
def test_a_time_that_is_not_skipped_is_the_soonest_there_is(
    hours: set[int], days: set[int], minutes: int
) -> None:
    due = NOON + timedelta(minutes=minutes)
    found = next_allowed(due, skips_of(hours, days), Random(minutes))
    assert found.hour not in hours and found.weekday() not in days and found >= due
    between = due
    while between + timedelta(hours=1) < found - SOONEST:
        between += timedelta(hours=1)
        assert between.hour in hours or between.weekday() in days


@given(st.integers(0, 10**9) | st.none(), st.text(max_size=20), st.text(max_size=20), st.integers(0, 2**32))
def test_whatever_is_said_the_next_poll_is_neither_at_once_nor_never(
    ttl: int | None, cache: str, retry: str, seed: int
) -> None:
    headers = {"cache-control": f"max-age={cache}", "retry-after": retry}
    waits = after_success(NOON, ttl, headers, Random(seed)) - NOON
    assert min(SOONEST, USUAL) <= waits <= LONGEST_PAUSE * 1.1
