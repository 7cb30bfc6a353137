"""Parameters of paper 000's experiments, and the names of their workloads."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from benchmarks.workloads.university import University

NAME = "objects"
BARE, TRIGGERS = "bare update", "triggers"
ORM, ORM_TRIGGERS, ASPECT = "ORM, bare update", "ORM, triggers", "ORM, aspect"
CLASS_WATCHES = 8
"""Watches of classes where the audience is the same for all sizes: 2% of the paper's 400."""

_NAMED = re.compile(
    rf"{NAME}, (?P<place>\w+), P = (?P<persons>[\d,]+), "
    r"(?:(?P<objects>\d+)% and (?P<classes>\d+)% watch|same audience)"
)


@dataclass(frozen=True)
class Setting:
    """A kind of database, how many persons, and the percentages that watch an object and a class.

    Without percentages, every update has the same audience.
    """

    place: str
    persons: int
    objects: int | None = None
    classes: int | None = None

    @property
    def workload(self) -> str:
        watch = "same audience" if self.objects is None else f"{self.objects}% and {self.classes}% watch"
        return f"{NAME}, {self.place}, P = {self.persons:,}, {watch}"

    def university(self) -> University:
        times = self.persons // University.persons
        if self.objects is None or self.classes is None:
            return replace(University.of_the_paper(times, 0.08, 0.0), class_watches=CLASS_WATCHES)
        return University.of_the_paper(times, self.objects / 100, self.classes / 100)


def setting_of(workload: str) -> Setting | None:
    """Parse the name of a workload; None if it belongs to other experiments."""
    named = _NAMED.fullmatch(workload)
    if named is None:
        return None
    persons, shares = int(named["persons"].replace(",", "")), (named["objects"], named["classes"])
    return Setting(named["place"], persons, *(None if each is None else int(each) for each in shares))
