"""Quiet hours: from a time of the day to another, where the subscriber lives.

They are intervals between two moments, not a look at a clock on the wall: when clocks are set back, what happens in the
hour that comes twice is quiet both times or not at all. They begin at the first and end at the last moment of that
name. A time that is skipped when clocks are set forward counts as if they had not been yet, an hour later on the wall.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from tidings.delivery.sql.destination_store import QuietHours
from tidings.errors import InputError, pointing

ACCEPTED = "HH:MM, from 00:00 to 23:59"
_ZONE = re.compile(r"[A-Za-z0-9_+-]{1,40}(?:/[A-Za-z0-9_+-]{1,40}){0,3}")
"""The form of names in the time zone database. ZoneInfo looks for others in modules of that name, however deep."""
_TIME = re.compile(r"([01][0-9]|2[0-3]):([0-5][0-9])")


def parse_quiet_hours(subscriber: str, start: str, end: str, zone: str) -> QuietHours:
    """Quiet hours as somebody says them: `22:00`, `07:00`, `Europe/Berlin`."""
    with pointing("/quiet_hours/from"):
        begin = _minute(start, "from")
    with pointing("/quiet_hours/to"):
        minutes = begin, _minute(end, "to")
        if minutes[0] == minutes[1]:
            hint = "to be left alone all day, pause the destinations"
            raise InputError("quiet hours have a beginning and another end", received=start, hint=hint)
    with pointing("/quiet_hours/zone"):
        _zone(zone)
    return QuietHours(subscriber, *minutes, zone)


def format_quiet_hours(minute: int) -> str:
    return f"{minute // 60:02}:{minute % 60:02}"


def quiet_until(hours: QuietHours, moment: datetime) -> datetime | None:
    """When the quiet hours end that a moment is in; nothing if it is in none."""
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
    """Whether clocks ever show this time on this day."""
    back = local.astimezone(UTC).astimezone(local.tzinfo)
    return back.replace(tzinfo=None, fold=0) == local.replace(tzinfo=None, fold=0)


def _minute(text: str, where: str) -> int:
    found = _TIME.fullmatch(text.strip())
    if found is None:
        raise InputError(
            "this is no time of the day", where=where, received=repr(text[:40]), accepted=ACCEPTED
        )
    return int(found[1]) * 60 + int(found[2])


def _zone(name: str) -> ZoneInfo:
    try:
        if not _ZONE.fullmatch(name):
            raise ZoneInfoNotFoundError
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        accepted = "a name such as Europe/Berlin, America/New_York or UTC"
        raise InputError(
            "this is no time zone", where="zone", received=repr(name[:40]), accepted=accepted
        ) from None
