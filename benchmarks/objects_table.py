"""Paper 000's tables 1 and 2 with our results: the cost of an update, and what notifying adds to it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from benchmarks.objects_settings import ASPECT, BARE, ORM, ORM_TRIGGERS, TRIGGERS, Setting, setting_of
from benchmarks.rows import Row, duration

PROGRAMS = (BARE, TRIGGERS, ORM, ORM_TRIGGERS, ASPECT)
RATIOS = ("aspect / triggers by the driver", "aspect / triggers through the ORM", "of what is added")


class Line(NamedTuple):
    """A setting, the number of subscribers per update, and CPU seconds per update for each program."""

    setting: Setting
    audience: float
    seconds: dict[str, float]

    def driver(self) -> float | None:
        """Return the time of the aspect, which needs the ORM, relative to triggers by the driver."""
        there = {TRIGGERS, ASPECT} <= self.seconds.keys()
        return self.seconds[ASPECT] / self.seconds[TRIGGERS] if there else None

    def whole(self) -> float | None:
        """Return the time of an ORM update with the aspect relative to one with triggers."""
        return self._ratio(0.0)

    def added(self) -> float | None:
        """Return the same ratio for the time added to an update without notifications."""
        return self._ratio(self.seconds[ORM]) if ORM in self.seconds else None

    def _ratio(self, floor: float) -> float | None:
        if not {ORM_TRIGGERS, ASPECT} <= self.seconds.keys():
            return None
        ours = self.seconds[ORM_TRIGGERS] - floor
        return (self.seconds[ASPECT] - floor) / ours if ours > 0 else None


def lines(rows: Sequence[Row]) -> list[Line]:
    """Return lines ordered by database, share and size."""
    by_setting: dict[Setting, Line] = {}
    for row in rows:
        setting = setting_of(row.workload)
        if setting is not None and row.seconds_per_event is not None:
            line = by_setting.setdefault(setting, Line(setting, 0.0, {}))
            line.seconds[row.engine] = row.seconds_per_event
            by_setting[setting] = line._replace(audience=max(line.audience, row.matches_per_event or 0.0))
    return sorted(by_setting.values(), key=lambda line: _order(line.setting))


def _order(setting: Setting) -> tuple[object, ...]:
    return setting.place != "SQLite", setting.objects is None, setting.persons, setting.objects or 0


def table(rows: Sequence[Row]) -> str:
    """Format a table for the docs; empty if there are no measurements."""
    measured = lines(rows)
    headings = ["", "P", "watch", "told", *PROGRAMS, *RATIOS]
    ruler = ["---", "---:", "---", *["---:"] * (len(headings) - 3)]
    texts = [headings, ruler, *(list(_cells(line)) for line in measured)]
    return "\n".join(f"| {' | '.join(text)} |" for text in texts) if measured else ""


def _cells(line: Line) -> Iterator[str]:
    setting = line.setting
    yield setting.place
    yield f"{setting.persons:,}"
    yield "same audience" if setting.objects is None else f"{setting.objects}% / {setting.classes}%"
    yield f"{line.audience:.1f}"
    for name in PROGRAMS:
        yield duration(line.seconds[name]) if name in line.seconds else ""
    for ratio in (line.driver(), line.whole(), line.added()):
        yield "" if ratio is None else f"{ratio:.1f} x"
