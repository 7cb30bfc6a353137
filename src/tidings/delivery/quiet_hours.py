"""Quiet hours: from one time of the day to another, in the subscriber's time zone.

They are intervals between two instants, not a comparison of wall-clock times: when clocks are set back, the repeated
hour is quiet both times or not at all. Quiet hours start at the first instant with the start time, and end at the last
one with the end time. A time that is skipped when clocks are set forward counts as in the old offset, an hour later on
the wall clock.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from tidings.delivery.sql.destination_store import QuietHours
from tidings.errors import InputError, pointing

ACCEPTED = "HH:MM, from 00:00 to 23:59"
_ZONE = re.compile(r"[A-Za-z0-9_+-]{1,40}(?:/[A-Za-z0-9_+-]{1,40}){0,3}")
"""The form of names in the time zone database. ZoneInfo would search modules for any other name, however deep."""
_TIME = re.compile(r"([01][0-9]|2[0-3]):([0-5][0-9])")


def parse_quiet_hours(subscriber: str, start: str, end: str, zone: str) -> QuietHours:
    """Parse quiet hours such as `22:00`, `07:00`, `Europe/Berlin`."""
    with pointing("/quiet_hours/from"):
        begin = _minute(start, "from")
    with pointing("/quiet_hours/to"):
        minutes = begin, _minute(end, "to")
        if minutes[0] == minutes[1]:
            hint = "to stop deliveries all day, pause the destinations"
            raise InputError("quiet hours start and end at the same time", received=start, hint=hint)
    with pointing("/quiet_hours/zone"):
        _zone(zone)
    return QuietHours(subscriber, *minutes, zone)


def format_quiet_hours(minute: int) -> str:
    return f"{minute // 60:02}:{minute % 60:02}"


def quiet_until(hours: QuietHours, moment: datetime) -> datetime | None:
    """Return the end of the quiet hours that contain a moment, or None."""
    zone = _zone(hours.zone)
    today = moment.astimezone(zone).date()
    over_midnight = timedelta(days=hours.to_minute < hours.from_minute)
    for day in (today - timedelta(days=1), today):
        begins = datetime(day.year, day.month, day.day, *divmod(hours.from_minute, 60), tzinfo=zone)
        last = day + over_midnight
        ends = datetime(last.year, last.month, last.day, *divmod(hours.to_minute, 60), tzinfo=zone, fold=1)
        ends = ends if _exists(ends) else ends.replace(fold=0)
        if begins.astimezone(UTC) <= moment < ends.astimezone(UTC):
            return ends.astimezone(UTC)
    return None


def _exists(local: datetime) -> bool:
    """Return whether clocks show this time on this day."""
    back = local.astimezone(UTC).astimezone(local.tzinfo)
    return back.replace(tzinfo=None, fold=0) == local.replace(tzinfo=None, fold=0)


def _minute(text: str, where: str) -> int:
    match = _TIME.fullmatch(text.strip())
    if match is None:
        raise InputError("invalid time of the day", where=where, received=repr(text[:40]), accepted=ACCEPTED)
    return int(match[1]) * 60 + int(match[2])


def _zone(name: str) -> ZoneInfo:
    try:
        if not _ZONE.fullmatch(name):
            raise ZoneInfoNotFoundError
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        accepted = "a name such as Europe/Berlin, America/New_York or UTC"
        raise InputError(
            "unknown time zone", where="zone", received=repr(name[:40]), accepted=accepted
        ) from None
