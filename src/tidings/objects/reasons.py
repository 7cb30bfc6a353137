"""Reasons of a notification: shortest paths from the changed object to the object that concerns the subscriber.

A graph has exponentially many simple paths, so paths are not stored. Stored are the steps between objects and the hits
of subscribers; a breadth-first search over the steps finds a shortest path for each hit.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping
from dataclasses import dataclass
from enum import Enum


@dataclass(frozen=True, slots=True)
class Object:
    """An object, identified by its key within its family: the topmost ancestor of its class.

    Its own class would be ambiguous: the row of a seminar is also a row of courses, and a link to it says `course`.
    """

    family: str
    key: Hashable

    def __str__(self) -> str:
        return f"{self.family}:{self.key}"


@dataclass(frozen=True, slots=True)
class Step:
    """Propagation from `origin` to `to`; `forwards` if it follows the association from source to target."""

    origin: Object
    association: str
    forwards: bool
    to: Object


class HitKind(Enum):
    """Why an object concerns a subscriber: a watch of the object, a watch of its class, or an association."""

    WATCHED = "watched"
    CLASS = "class"
    IMPLICIT = "implicit"


@dataclass(frozen=True, slots=True)
class Hit:
    """A changed object that concerns a subscriber; `by` names the watched class or the implicit association."""

    subscriber: Object
    object: Object
    how: HitKind
    by: str = ""
    forwards: bool = False


@dataclass(frozen=True, slots=True)
class Reason:
    """A hit and a shortest path to it."""

    path: tuple[Step, ...]
    hit: Hit

    def render(self, label: Callable[[Object], str] = str, to_subscriber: bool = False) -> str:
        """`Script2 -usedIn-> DataStructures <-attends- S3`, `Script2 -usedIn-> DataStructures (S2 watches Course)`.

        A text addressed to the subscriber ends with `<-attends- you` or `(you watch Course)`.
        """
        start = self.path[0].origin if self.path else self.hit.object
        path = "".join(_arrow(step.association, step.forwards, label(step.to)) for step in self.path)
        subscriber = "you" if to_subscriber else label(self.hit.subscriber)
        if self.hit.how is HitKind.IMPLICIT:
            return f"{label(start)}{path}{_arrow(self.hit.by, self.hit.forwards, subscriber)}"
        watched = "it" if self.hit.how is HitKind.WATCHED else self.hit.by
        return f"{label(start)}{path} ({subscriber} {'watch' if to_subscriber else 'watches'} {watched})"


def _arrow(association: str, forwards: bool, to: str) -> str:
    return f" -{association}-> {to}" if forwards else f" <-{association}- {to}"


def find_reasons(
    changed: Object, steps: Collection[Step], hits: Collection[Hit]
) -> Mapping[Object, tuple[Reason, ...]]:
    """Find the reasons of each subscriber, one per hit, shortest first."""
    paths = _shortest_paths(changed, steps)
    reasons: dict[Object, list[Reason]] = {}
    for hit in hits:
        reasons.setdefault(hit.subscriber, []).append(Reason(paths[hit.object], hit))
    return {subscriber: tuple(sorted(each, key=_sort_key)) for subscriber, each in reasons.items()}


def _shortest_paths(changed: Object, steps: Collection[Step]) -> Mapping[Object, tuple[Step, ...]]:
    """Find a path to each object; among equally short ones the first by name, so that the result is stable."""
    steps_from: dict[Object, list[Step]] = {}
    for step in sorted(steps, key=lambda each: (each.association, str(each.to))):
        steps_from.setdefault(step.origin, []).append(step)
    paths: dict[Object, tuple[Step, ...]] = {changed: ()}
    queue = [changed]
    for origin in queue:  # grows during iteration
        for step in steps_from.get(origin, ()):
            if step.to not in paths:
                paths[step.to] = (*paths[origin], step)
                queue.append(step.to)
    return paths


def _sort_key(reason: Reason) -> tuple[int, str]:
    return len(reason.path), reason.render()
