"""Paper 000's tables 1 and 2 as they come out here: what an update costs, and what telling adds to it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from benchmarks.objects_settings import ASPECT, BARE, ORM, ORM_TRIGGERS, TRIGGERS, Setting, setting_of
from benchmarks.rows import Row, duration

PROGRAMS = (BARE, TRIGGERS, ORM, ORM_TRIGGERS, ASPECT)
RATIOS = ("aspect / triggers by the driver", "aspect / triggers through the ORM", "of what is added")


class Line(NamedTuple):
    """A setting, how many subscribers an update tells, and seconds of CPU an update for each program."""

    setting: Setting
    told: float
    seconds: dict[str, float]

    def driver(self) -> float | None:
        """How many times longer the aspect takes, which needs the ORM, than triggers by the driver."""
        there = {TRIGGERS, ASPECT} <= self.seconds.keys()
        return self.seconds[ASPECT] / self.seconds[TRIGGERS] if there else None

    def whole(self) -> float | None:
        """How many times longer an update through the ORM takes with the aspect than with triggers."""
        return self._ratio(0.0)

    def added(self) -> float | None:
        """The same of what telling adds to an update that tells nobody."""
        return self._ratio(self.seconds[ORM]) if ORM in self.seconds else None

    def _ratio(self, floor: float) -> float | None:
        if not {ORM_TRIGGERS, ASPECT} <= self.seconds.keys():
            return None
        ours = self.seconds[ORM_TRIGGERS] - floor
        return (self.seconds[ASPECT] - floor) / ours if ours > 0 else None


def lines(rows: Sequence[Row]) -> list[Line]:
    """In the order of places, shares and sizes."""
    found: dict[Setting, Line] = {}
    for row in rows:
        setting = setting_of(row.workload)
        if setting is not None and row.seconds_per_event is not None:
            line = found.setdefault(setting, Line(setting, 0.0, {}))
            line.seconds[row.engine] = row.seconds_per_event
            found[setting] = line._replace(told=max(line.told, row.matches_per_event or 0.0))
    return sorted(found.values(), key=lambda line: _order(line.setting))


def _order(setting: Setting) -> tuple[object, ...]:
    return setting.place != "SQLite", setting.objects is None, setting.persons, setting.objects or 0


def table(rows: Sequence[Row]) -> str:
    """For the docs; empty where nothing of it was measured."""
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
    yield f"{line.told:.1f}"
    for name in PROGRAMS:
        yield duration(line.seconds[name]) if name in line.seconds else ""
    for ratio in (line.driver(), line.whole(), line.added()):
        yield "" if ratio is None else f"{ratio:.1f} x"
