"""Specification of propagation: which subscribers a change concerns (the algorithm of section 3.3 of the paper).

It runs over a graph of objects, is written to be read, not to be fast, and every implementation is tested against it. A
change makes its object *changed*, and with it every object reached along associations that propagate. Subscribers are
those who watch a changed object, those who watch its class or an ancestor of it, and those at the far end of its
implicit associations. `Limits` may stop it earlier.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from types import NoneType

from tidings.core.arguments import check_fields
from tidings.objects.model.class_model import Association, ChangeKind, End, MarkLimits, Model


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


@dataclass(frozen=True, slots=True)
class ObjectLink:
    """Two objects and the association between them (definition 4)."""

    association: Association
    source: Object
    target: Object

    def at(self, end: End) -> Object:
        return self.source if end is End.SOURCE else self.target


@dataclass(frozen=True, slots=True)
class ObjectGraph:
    """Objects, each with its class, and the links between them (definition 2)."""

    model: Model
    classes: Mapping[Object, str] = field(default_factory=dict)
    links: frozenset[ObjectLink] = frozenset()

    def is_a(self, subject: Object, cls: str) -> bool:
        return self.model.is_a(self.classes[subject], cls)


@dataclass(frozen=True, slots=True)
class Change:
    """Kind of change of an object; for updates with the attributes that differ.

    LINK and UNLINK are changes of the object that the association propagates *towards*: a course has a new script,
    while the script stays as it was. If the marks of the association do not admit them, there is no change
    (`find_changed_end`).
    """

    kind: ChangeKind
    object: Object
    attributes: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Watch:
    """An explicit subscription to an object, or without a key to all objects of a class (definition 6)."""

    subscriber: Object
    cls: str
    key: Hashable | None = None

    def __post_init__(self) -> None:
        check_fields(self, subscriber=Object, cls=str, key=Hashable)


@dataclass(frozen=True, slots=True)
class Limits:
    """Maximum number of steps that a change is followed, and of subscribers notified; None is unlimited."""

    steps: int | None = None
    subscribers: int | None = None

    def __post_init__(self) -> None:
        check_fields(self, steps=(int, NoneType), subscribers=(int, NoneType))


UNLIMITED = Limits()


@dataclass(frozen=True, slots=True)
class Truncation:
    """A limit that was reached.

    `what` is `steps` or `told`, as the outbox stores it. `found` is the number of steps that lead beyond the limit, or
    the number of subscribers without the limit.
    """

    what: str
    limit: int
    found: int


@dataclass(frozen=True, slots=True)
class PropagationResult:
    """Consequences of a change: objects changed with it, the steps to them, hits of subscribers, limits reached."""

    reached: frozenset[Object]
    steps: frozenset[Step]
    hits: frozenset[Hit]
    truncations: frozenset[Truncation] = frozenset()


def find_changed_end(association: Association, kind: ChangeKind) -> End | None:
    """Return the end whose object changes when two objects are linked or unlinked; None if neither does."""
    mark = association.propagates
    return mark.towards if mark is not None and mark.limits.admits(kind) else None


def propagate_change(
    graph: ObjectGraph, watches: frozenset[Watch], change: Change, limits: Limits = UNLIMITED
) -> PropagationResult:
    """Propagate a change over the graph after it; for DELETE and UNLINK, over the graph before it."""
    reached = _find_reached(graph, change, limits.steps)
    steps = (step for origin in reached for step in _steps_from(graph, change, origin))
    hits = (hit for changed in reached for hit in _hits_at(graph, watches, change, changed))
    return apply_limits(limits, reached, steps, hits)


def apply_limits(
    limits: Limits, reached: Iterable[Object], steps: Iterable[Step], hits: Iterable[Hit]
) -> PropagationResult:
    """Keep the steps between reached objects and the hits of the first subscribers; report the truncations."""
    changed, all_steps, all_hits = frozenset(reached), frozenset(steps), frozenset(hits)
    kept_steps = frozenset(step for step in all_steps if step.to in changed)
    kept_hits = frozenset(_hits_of_first(all_hits, limits.subscribers))
    subscriber_count = len(sort_subscribers(all_hits)) if all_hits > kept_hits else 0
    truncations = (
        _truncation("steps", limits.steps, len(all_steps - kept_steps)),
        _truncation("told", limits.subscribers, subscriber_count),
    )
    return PropagationResult(
        changed, kept_steps, kept_hits, frozenset(each for each in truncations if each is not None)
    )


def sort_subscribers(hits: Iterable[Hit]) -> list[Object]:
    """Sort by family, then by key as text: the same order in every implementation."""
    return sorted({hit.subscriber for hit in hits}, key=lambda each: (each.family, str(each.key)))


def _hits_of_first(hits: frozenset[Hit], count: int | None) -> Iterator[Hit]:
    first = set(sort_subscribers(hits)[:count])
    return (hit for hit in hits if hit.subscriber in first)


def _truncation(what: str, limit: int | None, count: int) -> Truncation | None:
    return Truncation(what, limit, count) if limit is not None and count else None


def _find_reached(graph: ObjectGraph, change: Change, max_steps: int | None) -> frozenset[Object]:
    """Search breadth first; cycles end because no object is expanded twice."""
    reached = frontier = frozenset((change.object,))
    steps = 0
    while frontier and steps != max_steps:
        frontier = (
            frozenset(step.to for each in frontier for step in _steps_from(graph, change, each)) - reached
        )
        reached, steps = reached | frontier, steps + 1
    return reached


def _steps_from(graph: ObjectGraph, change: Change, origin: Object) -> Iterator[Step]:
    for link in graph.links:
        mark = link.association.propagates
        if (
            mark is not None
            and link.at(mark.towards.other) == origin
            and admits_change(mark.limits, change, origin)
        ):
            forwards = mark.towards is End.TARGET
            yield Step(origin, link.association.name, forwards, link.at(mark.towards))


def admits_change(limits: MarkLimits, change: Change, subject: Object) -> bool:
    """Return whether a mark's limits let a change pass at an object.

    Limits on attributes apply at the object that was updated. Other objects change by reference: none of their own
    attributes differ, so only the kind of change counts there.
    """
    if subject == change.object:
        return limits.admits(change.kind, change.attributes)
    return limits.kinds is None or change.kind in limits.kinds


def _hits_at(graph: ObjectGraph, watches: frozenset[Watch], change: Change, changed: Object) -> Iterator[Hit]:
    for watch in watches:
        if watch.key is None and graph.is_a(changed, watch.cls):
            yield Hit(watch.subscriber, changed, HitKind.CLASS, watch.cls)
        elif watch.key is not None and Object(graph.model.family(watch.cls), watch.key) == changed:
            yield Hit(watch.subscriber, changed, HitKind.WATCHED)
    for link in graph.links:
        mark = link.association.implicit
        if (
            mark is not None
            and link.at(mark.notified.other) == changed
            and admits_change(mark.limits, change, changed)
        ):
            forwards = mark.notified is End.TARGET
            yield Hit(link.at(mark.notified), changed, HitKind.IMPLICIT, link.association.name, forwards)
