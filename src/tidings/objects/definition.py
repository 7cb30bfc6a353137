"""The definition: who is told about a change, by the algorithm of the paper (section 3.3), over a graph of objects.

Written to be read, not to be fast: every implementation is tested against it. A change makes an object *changed*, and
so is all that is reached from it along associations that propagate. Told are those who watch a changed object, those
who watch its class or one above it, and those at the far end of its implicit associations.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, field

from tidings.objects.model import Association, End, Kind, Mark, Model
from tidings.objects.reasons import Hit, How, Object, Step


@dataclass(frozen=True, slots=True)
class Link:
    """Two objects and the association between them, after definition 4."""

    association: Association
    source: Object
    target: Object

    def at(self, end: End) -> Object:
        return self.source if end is End.SOURCE else self.target


@dataclass(frozen=True, slots=True)
class Graph:
    """Objects with the class that each is made of, and links between them (definition 2)."""

    model: Model
    classes: Mapping[Object, str] = field(default_factory=dict)
    links: frozenset[Link] = frozenset()

    def is_a(self, one: Object, cls: str) -> bool:
        return self.model.is_a(self.classes[one], cls)


@dataclass(frozen=True, slots=True)
class Change:
    """What happened to an object; an update says which attributes it changed.

    LINK and UNLINK are changes of the object that the association propagates *towards*: a course has a new script,
    while the script is what it was. They are none if the marks of the association do not admit them (`is_change_of`).
    """

    kind: Kind
    object: Object
    attributes: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Watch:
    """A subscriber asked to be told about an object, or with no key about all objects of a class (definition 6)."""

    subscriber: Object
    cls: str
    key: Hashable | None = None


@dataclass(frozen=True, slots=True)
class Told:
    """All that follows from a change: what is changed with it, by which steps, and who is told."""

    reached: frozenset[Object]
    steps: frozenset[Step]
    hits: frozenset[Hit]


def is_change_of(association: Association, kind: Kind) -> End | None:
    """The end whose object is changed when two objects are linked or unlinked; None if nothing is."""
    mark = association.propagates
    return mark.towards if mark is not None and mark.limits.admits(kind) else None


def told(graph: Graph, watches: frozenset[Watch], change: Change) -> Told:
    """Over the graph after the change, or for DELETE and UNLINK the one before it."""
    reached = _reached(graph, change)
    steps = frozenset(step for one in reached for step in _steps(graph, change, one))
    hits = frozenset(hit for one in reached for hit in _hits(graph, watches, change, one))
    return Told(reached, steps, hits)


def _reached(graph: Graph, change: Change) -> frozenset[Object]:
    """Circles end, because nothing is reached twice."""
    found = [change.object]
    for one in found:  # grows while it is gone through
        found += {step.to for step in _steps(graph, change, one)} - set(found)
    return frozenset(found)


def _steps(graph: Graph, change: Change, one: Object) -> Iterator[Step]:
    for link in graph.links:
        mark = link.association.propagates
        if mark is not None and link.at(mark.towards.other) == one and _admits(mark.limits, change, one):
            forwards = mark.towards is End.TARGET
            yield Step(one, link.association.name, forwards, link.at(mark.towards))


def _admits(limits: Mark, change: Change, one: Object) -> bool:
    """Attributes limit what comes from the object that was updated. Others are changed by reference: none of theirs
    is another, so there only the kind counts."""
    if one == change.object:
        return limits.admits(change.kind, change.attributes)
    return limits.kinds is None or change.kind in limits.kinds


def _hits(graph: Graph, watches: frozenset[Watch], change: Change, one: Object) -> Iterator[Hit]:
    for watch in watches:
        if watch.key is None and graph.is_a(one, watch.cls):
            yield Hit(watch.subscriber, one, How.CLASS, watch.cls)
        elif watch.key is not None and Object(graph.model.family(watch.cls), watch.key) == one:
            yield Hit(watch.subscriber, one, How.WATCHED)
    for link in graph.links:
        mark = link.association.implicit
        if mark is not None and link.at(mark.told.other) == one and _admits(mark.limits, change, one):
            forwards = mark.told is End.TARGET
            yield Hit(link.at(mark.told), one, How.IMPLICIT, link.association.name, forwards)
