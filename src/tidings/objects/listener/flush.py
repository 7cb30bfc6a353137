"""Two looks at a flush, before its first write and after its last, and propagation of its changes.

Deletions and unlinked objects are propagated in the state before, everything else in the state after. Changes propagate
level by level, all at once: the number of queries is that of the longest path.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from uuid import uuid4

from sqlalchemy import Connection

from tidings.core.suggest import did_you_mean, printable, shorten_list
from tidings.errors import InputError
from tidings.objects.listener.changes import FlushChange, FlushContext, StateAfterFlush, StateBeforeFlush
from tidings.objects.listener.snapshot import AssociationColumns, DatabaseSnapshot, MappedTables
from tidings.objects.model.class_model import ChangeKind
from tidings.objects.notices import ObjectChange
from tidings.objects.outbox.object_lookup import check_class
from tidings.objects.propagation import (
    Change,
    Hit,
    HitKind,
    Limits,
    Object,
    PropagationResult,
    Step,
    Watch,
    admits_change,
    apply_limits,
)

WatchSource = Iterable[Watch] | Callable[[Connection, frozenset[Object]], Iterable[Watch]]
"""All watches, or a function that returns those of given objects and their classes; it may return more."""


@dataclass
class _Walk:
    """A change and how far it has propagated."""

    change: Change
    reached: set[Object] = field(init=False)
    newest: set[Object] = field(init=False)
    leaving: set[Step] = field(default_factory=set)
    hits: set[Hit] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.reached, self.newest = {self.change.object}, {self.change.object}

    def leads(self, trail: AssociationColumns, one: Object) -> bool:
        """Return whether the change propagates from an object along an association.

        An inserted object only has the links in its own row; other links in the flush are made after it.
        """
        if one.family != trail.way.near_family or not admits_change(trail.way.limits, self.change, one):
            return False
        return self.change.kind is not ChangeKind.INSERT or one != self.change.object or trail.leaves_its_row

    def follow(self, goes_on: bool) -> None:
        """Advance one step, unless the limit is reached."""
        ends = {step.to for step in self.leaving} - self.reached if goes_on else set[Object]()
        self.newest = ends
        self.reached |= ends


def trace_changes(
    reading: DatabaseSnapshot, changes: Sequence[Change], watches: WatchSource, limits: Limits
) -> list[PropagationResult]:
    """Propagate changes in the present state of the database."""
    walks = [_Walk(change) for change in changes]
    _reach(reading, walks, limits.steps)
    _meet(reading, walks, watches)
    return [apply_limits(limits, walk.reached, walk.leaving, walk.hits) for walk in walks]


def _reach(reading: DatabaseSnapshot, walks: Sequence[_Walk], most: int | None) -> None:
    taken = 0
    while any(walk.newest for walk in walks):
        for trail in reading.tables.propagating:
            for walk, one, to in _links(reading, trail, [(walk, walk.newest) for walk in walks]):
                walk.leaving.add(Step(one, trail.way.name, trail.way.forwards, to))
        for walk in walks:
            walk.follow(taken != most)
        taken += 1


def _links(
    reading: DatabaseSnapshot, trail: AssociationColumns, places: Iterable[tuple[_Walk, Iterable[Object]]]
) -> Iterator[tuple[_Walk, Object, Object]]:
    going = [(walk, one) for walk, objects in places for one in objects if walk.leads(trail, one)]
    found = reading.links(trail, dict.fromkeys(one for _, one in going))
    return ((walk, one, to) for walk, one in going for to in found[one])


def _meet(reading: DatabaseSnapshot, walks: Sequence[_Walk], watches: WatchSource) -> None:
    watched = _Watched(reading, watches, frozenset(one for walk in walks for one in walk.reached))
    for walk in walks:
        walk.hits.update(hit for one in walk.reached for hit in watched.hits(one))
    for trail in reading.tables.implicit:
        for walk, one, who in _links(reading, trail, [(walk, walk.reached) for walk in walks]):
            walk.hits.add(Hit(who, one, HitKind.IMPLICIT, trail.way.name, trail.way.forwards))


class _Watched:
    """Watches by object and by class."""

    def __init__(self, reading: DatabaseSnapshot, watches: WatchSource, reached: frozenset[Object]) -> None:
        self.by_object: dict[Object, set[Object]] = {}
        self.by_class: dict[str, set[Object]] = {}
        model = reading.tables.model
        for each in watches(reading.connection, reached) if callable(watches) else watches:
            checked = check_watch(reading.tables, each)
            if each.key is None:
                self.by_class.setdefault(each.cls, set()).add(checked.subscriber)
            else:
                one = Object(model.family(each.cls), checked.key)
                self.by_object.setdefault(one, set()).add(checked.subscriber)
        families = {model.family(cls) for cls in self.by_class}
        self._classes = reading.classes([one for one in reached if one.family in families])
        self._model = model

    def hits(self, one: Object) -> Iterator[Hit]:
        for who in self.by_object.get(one, ()):
            yield Hit(who, one, HitKind.WATCHED)
        for cls in self._model.lineage(self._classes[one]) if one in self._classes else ():
            for who in self.by_class.get(cls.name, ()):
                yield Hit(who, one, HitKind.CLASS, cls.name)


def check_watch(tables: MappedTables, watch: Watch) -> Watch:
    """Check the classes of a watch, since a mistyped one would never match, and convert its keys to text."""
    model, told = tables.model, watch.subscriber.family
    check_class(model, watch.cls)
    if told not in tables.tellable:
        tellable = list(filter(model.is_subscriber, model.classes))
        accepted = shorten_list(tellable, shown=printable) or "a model with subscribers"
        hint = did_you_mean(told, tellable)
        raise InputError(
            "objects of this class cannot be told", received=printable(told), accepted=accepted, hint=hint
        )
    who = Object(model.family(told), str(watch.subscriber.key))
    return Watch(who, watch.cls, None if watch.key is None else str(watch.key))


@dataclass(frozen=True, slots=True)
class ListenerOptions:
    """Tables, watches and limits of a listener, and whether it reads labels."""

    tables: MappedTables
    watches: WatchSource
    limits: Limits
    labelled: bool


class Flush:
    """One flush."""

    def __init__(self, asking: ListenerOptions, context: FlushContext) -> None:
        self._asking, self._context = asking, context
        self._before: StateBeforeFlush | None = None
        self._gone: list[tuple[FlushChange, PropagationResult]] = []
        self.labels: dict[Object, str] = {}

    @property
    def is_writing(self) -> bool:
        """Whether the flush writes; one without work ends without an event."""
        return self._context.has_work

    @property
    def is_looked_at(self) -> bool:
        return self._before is not None

    def look_before(self, connection: Connection) -> None:
        self._before = StateBeforeFlush(DatabaseSnapshot(self._asking.tables, connection), self._context)
        self._gone = self._followed(self._before.reading, self._before.happened())

    def look_after(self, connection: Connection, author: Object | None) -> list[ObjectChange]:
        """Return all changes of the flush."""
        assert self._before is not None
        after = StateAfterFlush(DatabaseSnapshot(self._asking.tables, connection), self._before)
        found = self._followed(after.reading, after.happened())
        found += ((each, follows) for each, follows in self._gone if after.is_so(each))
        at = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        return [_build_object_change(each, follows, at, author) for each, follows in found]

    def _followed(
        self, reading: DatabaseSnapshot, happened: list[FlushChange]
    ) -> list[tuple[FlushChange, PropagationResult]]:
        changes = [each.change for each in happened]
        found = trace_changes(reading, changes, self._asking.watches, self._asking.limits) if changes else []
        if self._asking.labelled:
            self.labels |= reading.labels(_collect_named_objects(happened, found))
        return list(zip(happened, found, strict=True))


def _collect_named_objects(
    happened: Iterable[FlushChange], found: Iterable[PropagationResult]
) -> set[Object]:
    """Collect the objects that a text about the changes may mention."""
    others = {each.other for each in happened if each.other is not None}
    reached = {one for each in found for one in each.reached}
    return others | reached | {hit.subscriber for each in found for hit in each.hits}


def _build_object_change(
    each: FlushChange, follows: PropagationResult, at: str, author: Object | None
) -> ObjectChange:
    return ObjectChange(
        uuid4().hex,
        at,
        each.cls,
        each.change,
        follows,
        each.before,
        each.after,
        each.association,
        each.other,
        author,
    )
