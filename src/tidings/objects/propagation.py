"""The definition: who is told about a change, by the algorithm of the paper (section 3.3), over a graph of objects.

Written to be read, not to be fast: every implementation is tested against it. A change makes an object *changed*, and
so is all that is reached from it along associations that propagate. Told are those who watch a changed object, those
who watch its class or one above it, and those at the far end of its implicit associations. `Limits` may end it earlier.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from types import NoneType

from tidings.core.arguments import check_fields
from tidings.objects.model.class_model import Association, ChangeKind, End, MarkLimits, Model
from tidings.objects.reasons import Hit, HitKind, Object, Step


@dataclass(frozen=True, slots=True)
class ObjectLink:
    """Two objects and the association between them, after definition 4."""

    association: Association
    source: Object
    target: Object

    def at(self, end: End) -> Object:
        return self.source if end is End.SOURCE else self.target


@dataclass(frozen=True, slots=True)
class ObjectGraph:
    """Objects with the class that each is made of, and links between them (definition 2)."""

    model: Model
    classes: Mapping[Object, str] = field(default_factory=dict)
    links: frozenset[ObjectLink] = frozenset()

    def is_a(self, one: Object, cls: str) -> bool:
        return self.model.is_a(self.classes[one], cls)


@dataclass(frozen=True, slots=True)
class Change:
    """What happened to an object; an update says which attributes it changed.

    LINK and UNLINK are changes of the object that the association propagates *towards*: a course has a new script,
    while the script is what it was. None if the marks of the association do not admit them (`find_changed_end`).
    """

    kind: ChangeKind
    object: Object
    attributes: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Watch:
    """A subscriber asked to be told about an object, or with no key about all objects of a class (definition 6)."""

    subscriber: Object
    cls: str
    key: Hashable | None = None

    def __post_init__(self) -> None:
        check_fields(self, subscriber=Object, cls=str, key=Hashable)


@dataclass(frozen=True, slots=True)
class Limits:
    """How far a change is followed, and how many are told of it; None is no limit."""

    steps: int | None = None
    told: int | None = None

    def __post_init__(self) -> None:
        check_fields(self, steps=(int, NoneType), told=(int, NoneType))


UNLIMITED = Limits()


@dataclass(frozen=True, slots=True)
class Truncation:
    """A limit was reached: `found` steps led farther than `most` of them, or so many would have been told."""

    what: str
    most: int
    found: int


@dataclass(frozen=True, slots=True)
class PropagationResult:
    """All that follows from a change: what is changed with it, by which steps, who is told, and where that ended."""

    reached: frozenset[Object]
    steps: frozenset[Step]
    hits: frozenset[Hit]
    cuts: frozenset[Truncation] = frozenset()


def find_changed_end(association: Association, kind: ChangeKind) -> End | None:
    """The end whose object is changed when two objects are linked or unlinked; None if nothing is."""
    mark = association.propagates
    return mark.towards if mark is not None and mark.limits.admits(kind) else None


def propagate_change(
    graph: ObjectGraph, watches: frozenset[Watch], change: Change, limits: Limits = UNLIMITED
) -> PropagationResult:
    """Over the graph after the change, or for DELETE and UNLINK the one before it."""
    reached = _reached(graph, change, limits.steps)
    leaving = (step for one in reached for step in _steps(graph, change, one))
    found = (hit for one in reached for hit in _hits(graph, watches, change, one))
    return apply_limits(limits, reached, leaving, found)


def apply_limits(
    limits: Limits, reached: Iterable[Object], steps: Iterable[Step], hits: Iterable[Hit]
) -> PropagationResult:
    """Of all steps that lead from what was reached, and of all who were hit there, those that the limits leave."""
    changed, leaving, found = frozenset(reached), frozenset(steps), frozenset(hits)
    stay, kept = (
        frozenset(step for step in leaving if step.to in changed),
        frozenset(_first(found, limits.told)),
    )
    cuts = (
        _cut("steps", limits.steps, len(leaving - stay)),
        _cut("told", limits.told, len(sort_subscribers(found)) if found > kept else 0),
    )
    return PropagationResult(changed, stay, kept, frozenset(cut for cut in cuts if cut is not None))


def sort_subscribers(hits: Iterable[Hit]) -> list[Object]:
    """In an order that is the same everywhere: by family, then by key as a text."""
    return sorted({hit.subscriber for hit in hits}, key=lambda one: (one.family, str(one.key)))


def _first(hits: frozenset[Hit], most: int | None) -> Iterator[Hit]:
    stay = set(sort_subscribers(hits)[:most])
    return (hit for hit in hits if hit.subscriber in stay)


def _cut(what: str, most: int | None, found: int) -> Truncation | None:
    return Truncation(what, most, found) if most is not None and found else None


def _reached(graph: ObjectGraph, change: Change, most: int | None) -> frozenset[Object]:
    """Circles end, because nothing is reached twice."""
    found = newest = frozenset((change.object,))
    taken = 0
    while newest and taken != most:
        newest = frozenset(step.to for one in newest for step in _steps(graph, change, one)) - found
        found, taken = found | newest, taken + 1
    return found


def _steps(graph: ObjectGraph, change: Change, one: Object) -> Iterator[Step]:
    for link in graph.links:
        mark = link.association.propagates
        if (
            mark is not None
            and link.at(mark.towards.other) == one
            and admits_change(mark.limits, change, one)
        ):
            forwards = mark.towards is End.TARGET
            yield Step(one, link.association.name, forwards, link.at(mark.towards))


def admits_change(limits: MarkLimits, change: Change, one: Object) -> bool:
    """Attributes limit what comes from the object that was updated. Others are changed by reference: none of theirs
    is another, so there only the kind counts."""
    if one == change.object:
        return limits.admits(change.kind, change.attributes)
    return limits.kinds is None or change.kind in limits.kinds


def _hits(graph: ObjectGraph, watches: frozenset[Watch], change: Change, one: Object) -> Iterator[Hit]:
    for watch in watches:
        if watch.key is None and graph.is_a(one, watch.cls):
            yield Hit(watch.subscriber, one, HitKind.CLASS, watch.cls)
        elif watch.key is not None and Object(graph.model.family(watch.cls), watch.key) == one:
            yield Hit(watch.subscriber, one, HitKind.WATCHED)
    for link in graph.links:
        mark = link.association.implicit
        if mark is not None and link.at(mark.told.other) == one and admits_change(mark.limits, change, one):
            forwards = mark.told is End.TARGET
            yield Hit(link.at(mark.told), one, HitKind.IMPLICIT, link.association.name, forwards)
