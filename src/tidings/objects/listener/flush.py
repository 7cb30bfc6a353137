"""Comparison of the database before the first write of a flush and after its last, and propagation of the changes.

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
class _Propagation:
    """A change and how far it has propagated."""

    change: Change
    reached: set[Object] = field(init=False)
    frontier: set[Object] = field(init=False)
    steps: set[Step] = field(default_factory=set)
    hits: set[Hit] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.reached, self.frontier = {self.change.object}, {self.change.object}

    def admits(self, association: AssociationColumns, subject: Object) -> bool:
        """Return whether the change propagates from an object along an association.

        An inserted object has only the links in its own row; the flush inserts other links after it.
        """
        if subject.family != association.way.near_family or not admits_change(
            association.way.limits, self.change, subject
        ):
            return False
        return (
            self.change.kind is not ChangeKind.INSERT
            or subject != self.change.object
            or association.is_in_near_row
        )

    def advance(self, may_continue: bool) -> None:
        """Advance one step, unless the limit is reached."""
        ends = {step.to for step in self.steps} - self.reached if may_continue else set[Object]()
        self.frontier = ends
        self.reached |= ends


def trace_changes(
    snapshot: DatabaseSnapshot, changes: Sequence[Change], watches: WatchSource, limits: Limits
) -> list[PropagationResult]:
    """Propagate changes in the present state of the database."""
    propagations = [_Propagation(change) for change in changes]
    _find_reached(snapshot, propagations, limits.steps)
    _find_hits(snapshot, propagations, watches)
    return [
        apply_limits(limits, propagation.reached, propagation.steps, propagation.hits)
        for propagation in propagations
    ]


def _find_reached(
    snapshot: DatabaseSnapshot, propagations: Sequence[_Propagation], max_steps: int | None
) -> None:
    steps_taken = 0
    while any(propagation.frontier for propagation in propagations):
        for association in snapshot.tables.propagating:
            for propagation, subject, end in _find_links(
                snapshot, association, [(propagation, propagation.frontier) for propagation in propagations]
            ):
                propagation.steps.add(Step(subject, association.way.name, association.way.forwards, end))
        for propagation in propagations:
            propagation.advance(steps_taken != max_steps)
        steps_taken += 1


def _find_links(
    snapshot: DatabaseSnapshot,
    association: AssociationColumns,
    frontiers: Iterable[tuple[_Propagation, Iterable[Object]]],
) -> Iterator[tuple[_Propagation, Object, Object]]:
    admitted = [
        (propagation, subject)
        for propagation, objects in frontiers
        for subject in objects
        if propagation.admits(association, subject)
    ]
    links = snapshot.links(association, dict.fromkeys(subject for _, subject in admitted))
    return ((propagation, subject, end) for propagation, subject in admitted for end in links[subject])


def _find_hits(
    snapshot: DatabaseSnapshot, propagations: Sequence[_Propagation], watches: WatchSource
) -> None:
    index = _WatchIndex(
        snapshot,
        watches,
        frozenset(subject for propagation in propagations for subject in propagation.reached),
    )
    for propagation in propagations:
        propagation.hits.update(hit for subject in propagation.reached for hit in index.hits(subject))
    for association in snapshot.tables.implicit:
        for propagation, subject, subscriber in _find_links(
            snapshot, association, [(propagation, propagation.reached) for propagation in propagations]
        ):
            propagation.hits.add(
                Hit(subscriber, subject, HitKind.IMPLICIT, association.way.name, association.way.forwards)
            )


class _WatchIndex:
    """Watches by object and by class."""

    def __init__(self, snapshot: DatabaseSnapshot, watches: WatchSource, reached: frozenset[Object]) -> None:
        self.by_object: dict[Object, set[Object]] = {}
        self.by_class: dict[str, set[Object]] = {}
        model = snapshot.tables.model
        for watch in watches(snapshot.connection, reached) if callable(watches) else watches:
            checked = check_watch(snapshot.tables, watch)
            if watch.key is None:
                self.by_class.setdefault(watch.cls, set()).add(checked.subscriber)
            else:
                subject = Object(model.family(watch.cls), checked.key)
                self.by_object.setdefault(subject, set()).add(checked.subscriber)
        families = {model.family(cls) for cls in self.by_class}
        self._classes = snapshot.classes([subject for subject in reached if subject.family in families])
        self._model = model

    def hits(self, subject: Object) -> Iterator[Hit]:
        for subscriber in self.by_object.get(subject, ()):
            yield Hit(subscriber, subject, HitKind.WATCHED)
        for cls in self._model.lineage(self._classes[subject]) if subject in self._classes else ():
            for subscriber in self.by_class.get(cls.name, ()):
                yield Hit(subscriber, subject, HitKind.CLASS, cls.name)


def check_watch(tables: MappedTables, watch: Watch) -> Watch:
    """Check the classes of a watch, since a mistyped one would never match, and convert its keys to text."""
    model, subscriber_class = tables.model, watch.subscriber.family
    check_class(model, watch.cls)
    if subscriber_class not in tables.subscriber_classes:
        accepted_classes = list(filter(model.is_subscriber, model.classes))
        accepted = shorten_list(accepted_classes, shown=printable) or "a model with subscribers"
        hint = did_you_mean(subscriber_class, accepted_classes)
        raise InputError(
            "objects of this class cannot be notified",
            received=printable(subscriber_class),
            accepted=accepted,
            hint=hint,
        )
    watcher = Object(model.family(subscriber_class), str(watch.subscriber.key))
    return Watch(watcher, watch.cls, None if watch.key is None else str(watch.key))


@dataclass(frozen=True, slots=True)
class ListenerOptions:
    """Tables, watches and limits of a listener, and whether it reads labels."""

    tables: MappedTables
    watches: WatchSource
    limits: Limits
    labelled: bool


class Flush:
    """One flush."""

    def __init__(self, options: ListenerOptions, context: FlushContext) -> None:
        self._options, self._context = options, context
        self._before: StateBeforeFlush | None = None
        self._removals: list[tuple[FlushChange, PropagationResult]] = []
        self.labels: dict[Object, str] = {}

    @property
    def is_writing(self) -> bool:
        """Whether the flush writes; one without work ends without an event."""
        return self._context.has_work

    @property
    def has_read_before(self) -> bool:
        return self._before is not None

    def read_before(self, connection: Connection) -> None:
        self._before = StateBeforeFlush(DatabaseSnapshot(self._options.tables, connection), self._context)
        self._removals = self._propagate(self._before.snapshot, self._before.list_changes())

    def read_after(self, connection: Connection, author: Object | None) -> list[ObjectChange]:
        """Return all changes of the flush."""
        assert self._before is not None
        state_after = StateAfterFlush(DatabaseSnapshot(self._options.tables, connection), self._before)
        results = self._propagate(state_after.snapshot, state_after.list_changes())
        results += ((change, result) for change, result in self._removals if state_after.is_confirmed(change))
        time = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        return [_build_object_change(change, result, time, author) for change, result in results]

    def _propagate(
        self, snapshot: DatabaseSnapshot, changes: list[FlushChange]
    ) -> list[tuple[FlushChange, PropagationResult]]:
        results = (
            trace_changes(
                snapshot,
                [change.change for change in changes],
                self._options.watches,
                self._options.limits,
            )
            if changes
            else []
        )
        if self._options.labelled:
            self.labels |= snapshot.labels(_collect_named_objects(changes, results))
        return list(zip(changes, results, strict=True))


def _collect_named_objects(
    changes: Iterable[FlushChange], results: Iterable[PropagationResult]
) -> set[Object]:
    """Collect the objects that a text about the changes may mention."""
    others = {each.other for each in changes if each.other is not None}
    reached = {subject for each in results for subject in each.reached}
    return others | reached | {hit.subscriber for each in results for hit in each.hits}


def _build_object_change(
    change: FlushChange, propagation: PropagationResult, time: str, author: Object | None
) -> ObjectChange:
    return ObjectChange(
        uuid4().hex,
        time,
        change.cls,
        change.change,
        propagation,
        change.before,
        change.after,
        change.association,
        change.other,
        author,
    )
