"""Durations as text, `10 minutes`, `90 s`, `1 hour`, `2 days`, and in seconds.

One integer and one unit: write `1 h 30 min` as `90 minutes`. There are no months, whose length varies.
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
    """Parse a duration into seconds."""
    match = _WRITTEN.fullmatch(text.strip().lower())
    unit = _parse_unit(match[2]) if match else None
    if match is None or unit is None:
        raise InputError("not a duration", received=repr(text), accepted=ACCEPTED)
    return check(int(match[1]) * SECONDS[unit])


def _parse_unit(word: str) -> str | None:
    """Return the unit of a word. `m` is rejected: it may mean minutes or months."""
    unit = SHORT.get(word, word.removesuffix("s"))
    return unit if unit in SECONDS else None


def check(seconds: int) -> int:
    """Return the seconds, or raise if they are out of range."""
    if not 1 <= seconds <= LONGEST:
        hint = None if seconds else "to be notified at once, leave it out"
        raise InputError("duration out of range", received=f"{seconds:,} s", accepted=ACCEPTED, hint=hint)
    return seconds


def about(seconds: float) -> str:
    """Format seconds, rounded down to the largest unit that fits: `5 minutes` for 307 seconds."""
    unit = next((unit for unit in reversed(SECONDS) if seconds >= SECONDS[unit]), "second")
    return show(int(seconds) // SECONDS[unit] * SECONDS[unit]) if seconds >= 1 else "less than a second"


def show(seconds: int) -> str:
    """Format seconds exactly, in the largest unit that divides them."""
    unit = next(unit for unit in reversed(SECONDS) if seconds % SECONDS[unit] == 0)
    count = seconds // SECONDS[unit]
    return f"{count} {unit}" if count == 1 else f"{count} {unit}s"
