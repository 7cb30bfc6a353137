"""Quiet hours in the time zone of the subscriber, over midnight and when clocks change."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidings.delivery.quiet_hours import format_quiet_hours, parse_quiet_hours, quiet_until
from tidings.errors import InputError

BERLIN = "Europe/Berlin"


def local(text: str, zone: str = BERLIN, fold: int = 0) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone), fold=fold).astimezone(UTC)


@pytest.mark.parametrize(
    ("start", "end", "moment", "until"),
    [
        ("13:00", "15:00", "2026-07-01 12:59", None),
        ("13:00", "15:00", "2026-07-01 13:00", "2026-07-01 15:00"),
        ("13:00", "15:00", "2026-07-01 14:59", "2026-07-01 15:00"),
        ("13:00", "15:00", "2026-07-01 15:00", None),
        ("22:00", "07:00", "2026-07-01 21:59", None),
        ("22:00", "07:00", "2026-07-01 23:00", "2026-07-02 07:00"),
        ("22:00", "07:00", "2026-07-02 06:59", "2026-07-02 07:00"),
        ("22:00", "07:00", "2026-07-02 07:00", None),
        ("00:00", "07:00", "2026-07-02 00:00", "2026-07-02 07:00"),
        ("22:00", "00:00", "2026-07-01 23:59", "2026-07-02 00:00"),
        # The night in which an hour is skipped, and the one in which an hour comes twice.
        ("22:00", "07:00", "2026-03-28 23:00", "2026-03-29 07:00"),
        ("22:00", "07:00", "2026-10-24 23:00", "2026-10-25 07:00"),
        ("22:00", "02:30", "2026-03-29 01:59", "2026-03-29 03:30"),
        ("02:30", "04:00", "2026-03-29 03:15", None),
        ("02:30", "04:00", "2026-03-29 03:45", "2026-03-29 04:00"),
    ],
)
def test_quiet_until_returns_end_of_quiet_hours(start: str, end: str, moment: str, until: str | None) -> None:
    actual = quiet_until(parse_quiet_hours("ana", start, end, BERLIN), local(moment))
    assert actual == (local(until) if until else None)


def test_quiet_until_repeated_hour_is_quiet_both_times() -> None:
    hours = parse_quiet_hours("ana", "22:00", "02:30", BERLIN)
    for fold in (0, 1):
        end = local("2026-10-25 02:30", fold=1)
        assert quiet_until(hours, local("2026-10-25 02:15", fold=fold)) == end
        assert quiet_until(hours, local("2026-10-25 02:45", fold=fold)) == (end if fold == 0 else None)


@given(
    st.datetimes(datetime(2025, 1, 1), datetime(2028, 1, 1), timezones=st.just(UTC)),
    st.integers(0, 1439),
    st.integers(0, 1439),
    st.sampled_from([BERLIN, "America/St_Johns", "Australia/Lord_Howe", "UTC", "Asia/Kathmandu"]),
)
def test_quiet_until_end_is_within_one_day_at_configured_time(
    moment: datetime, start: int, end: int, zone: str
) -> None:
    if start == end:
        return
    hours = parse_quiet_hours("ana", format_quiet_hours(start), format_quiet_hours(end), zone)
    until = quiet_until(hours, moment)
    if until is not None:
        assert moment < until <= moment + timedelta(hours=25)
        local_end = until.astimezone(ZoneInfo(zone))
        skipped = timedelta(minutes=local_end.hour * 60 + local_end.minute - end)
        assert timedelta(0) <= skipped % timedelta(days=1) <= timedelta(hours=1)


@pytest.mark.parametrize(
    ("start", "end", "zone"),
    [
        ("24:00", "07:00", BERLIN),
        ("7:00", "08:00", BERLIN),
        ("22:00", "22:00", BERLIN),
        ("22:00", "07:00", "Mars/Olympus"),
        pytest.param("22:00", "07:00", "Europe/" * 2_000 + "Berlin", id="deep"),
        ("22:00", "07:00", "../../etc/passwd"),
        ("22:00", "07:00", ""),
    ],
)
def test_parse_quiet_hours_invalid_times_are_rejected(start: str, end: str, zone: str) -> None:
    with pytest.raises(InputError):
        parse_quiet_hours("ana", start, end, zone)
