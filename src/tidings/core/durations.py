"""Durations as people write them: `10 minutes`, `90 s`, `1 hour`, `2 days`. Inside they are seconds.

One whole number and one unit. `1 h 30 min` is 90 minutes, and "a month" is no length anybody could hold somebody to.
"""

from __future__ import annotations

import re

from tidings.errors import InputError

SECONDS = {"second": 1, "minute": 60, "hour": 3_600, "day": 86_400}
SHORT = {"s": "second", "min": "minute", "h": "hour", "d": "day"}
LONGEST = 365 * SECONDS["day"]
ACCEPTED = "a whole number and a unit, from 1 second to 365 days: 90 seconds, 10 minutes, 1 hour, 2 days"

_WRITTEN = re.compile(r"([0-9]{1,9}) *([a-z]+)")


def parse(text: str) -> int:
    """The seconds of a text."""
    found = _WRITTEN.fullmatch(text.strip().lower())
    unit = _unit(found[2]) if found else None
    if found is None or unit is None:
        raise InputError("this is no duration", received=repr(text), accepted=ACCEPTED)
    return check(int(found[1]) * SECONDS[unit])


def _unit(word: str) -> str | None:
    """`m` is none: it stands for minutes as often as for months."""
    unit = SHORT.get(word, word.removesuffix("s"))
    return unit if unit in SECONDS else None


def check(seconds: int) -> int:
    """The seconds themselves, if they are a duration that can be promised."""
    if not 1 <= seconds <= LONGEST:
        hint = None if seconds else "to be told at once, leave it out"
        raise InputError("no such duration", received=f"{seconds:,} s", accepted=ACCEPTED, hint=hint)
    return seconds


def about(seconds: float) -> str:
    """The same in the largest unit that there is one of, without the rest: `5 minutes` of 307 seconds."""
    unit = next((unit for unit in reversed(SECONDS) if seconds >= SECONDS[unit]), "second")
    return show(int(seconds) // SECONDS[unit] * SECONDS[unit]) if seconds >= 1 else "less than a second"


def show(seconds: int) -> str:
    """The text of some seconds, in the largest unit that leaves no rest."""
    unit = next(unit for unit in reversed(SECONDS) if seconds % SECONDS[unit] == 0)
    count = seconds // SECONDS[unit]
    return f"{count} {unit}" if count == 1 else f"{count} {unit}s"
