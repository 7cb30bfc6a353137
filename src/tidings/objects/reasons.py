"""Why somebody is told: the shortest way from the object that changed to the one that concerns them.

All simple paths of a graph are exponentially many, so nobody stores them. What is stored are the steps between objects
and who was hit at which object; a shortest path for each hit is found here, breadth first.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping
from dataclasses import dataclass
from enum import Enum


@dataclass(frozen=True, slots=True)
class Object:
    """An object is known by its key among all of its family: the topmost class above its own.

    Its own class would not do. The row of a seminar is one of courses, too, and a link to it says `course`.
    """

    family: str
    key: Hashable

    def __str__(self) -> str:
        return f"{self.family}:{self.key}"


@dataclass(frozen=True, slots=True)
class Step:
    """A change of `origin` is one of `to`; forwards is along the association, from its source to its target."""

    origin: Object
    association: str
    forwards: bool
    to: Object


class HitKind(Enum):
    """Why an object concerns somebody."""

    WATCHED = "watched"
    CLASS = "class"
    IMPLICIT = "implicit"


@dataclass(frozen=True, slots=True)
class Hit:
    """A changed object concerns a subscriber, `by` a class that is watched or an implicit association."""

    subscriber: Object
    object: Object
    how: HitKind
    by: str = ""
    forwards: bool = False


@dataclass(frozen=True, slots=True)
class Reason:
    """A hit and the way to it."""

    path: tuple[Step, ...]
    hit: Hit

    def shown(self, label: Callable[[Object], str] = str, to_them: bool = False) -> str:
        """`Script2 -usedIn-> DataStructures <-attends- S3`, `Script2 -usedIn-> DataStructures (S2 watches Course)`.

        Said to the subscriber, it ends with `<-attends- you` or `(you watch Course)`.
        """
        start = self.path[0].origin if self.path else self.hit.object
        way = "".join(_arrow(each.association, each.forwards, label(each.to)) for each in self.path)
        who = "you" if to_them else label(self.hit.subscriber)
        if self.hit.how is HitKind.IMPLICIT:
            return f"{label(start)}{way}{_arrow(self.hit.by, self.hit.forwards, who)}"
        what = "it" if self.hit.how is HitKind.WATCHED else self.hit.by
        return f"{label(start)}{way} ({who} {'watch' if to_them else 'watches'} {what})"


def _arrow(association: str, forwards: bool, to: str) -> str:
    return f" -{association}-> {to}" if forwards else f" <-{association}- {to}"


def find_reasons(
    changed: Object, steps: Collection[Step], hits: Collection[Hit]
) -> Mapping[Object, tuple[Reason, ...]]:
    """For each subscriber all reasons, one a hit; shorter ones first."""
    paths = _shortest(changed, steps)
    found: dict[Object, list[Reason]] = {}
    for hit in hits:
        found.setdefault(hit.subscriber, []).append(Reason(paths[hit.object], hit))
    return {who: tuple(sorted(each, key=_order)) for who, each in found.items()}


def _shortest(changed: Object, steps: Collection[Step]) -> Mapping[Object, tuple[Step, ...]]:
    """A path to each object; of several that are equally short the first by their names: always the same one."""
    leaving: dict[Object, list[Step]] = {}
    for step in sorted(steps, key=lambda each: (each.association, str(each.to))):
        leaving.setdefault(step.origin, []).append(step)
    paths: dict[Object, tuple[Step, ...]] = {changed: ()}
    waiting = [changed]
    for one in waiting:  # grows while it is gone through
        for step in leaving.get(one, ()):
            if step.to not in paths:
                paths[step.to] = (*paths[one], step)
                waiting.append(step.to)
    return paths


def _order(reason: Reason) -> tuple[int, str]:
    return len(reason.path), reason.shown()
