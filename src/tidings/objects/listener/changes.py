"""Changes of a flush: objects and links that it removes, adds or updates.

Rows are read before and after and compared, whatever statements SQLAlchemy executes: an attribute may be set to the
value it had, and references that no program set become NULL.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, time
from enum import Enum
from math import isfinite
from typing import Any, Protocol

from sqlalchemy import Column, inspect
from sqlalchemy.orm import ColumnProperty, InstanceState, RelationshipProperty

from tidings.objects.listener.snapshot import (
    AnyColumn,
    AssociationColumns,
    DatabaseSnapshot,
    MappedTables,
    SnapshotRow,
)
from tidings.objects.model.class_model import ChangeKind
from tidings.objects.propagation import Change, Object

OrmState = InstanceState[Any]
LinkPair = tuple[AssociationColumns, OrmState, OrmState]
"""Association and states of a link: from where a change propagates, and to where."""


class FlushContext(Protocol):
    """SQLAlchemy's context of a flush; `states` has whether an instance is deleted, and whether it is only listed.

    Before the first write it has all instances, also orphans and those whose reference becomes NULL because another one
    is deleted. `session.deleted` and `session.dirty` lack these.
    """

    states: dict[OrmState, tuple[bool, bool]]

    @property
    def has_work(self) -> bool: ...


@dataclass(frozen=True, slots=True, eq=False)
class MappedInstance:
    """An object of the model in a session."""

    state: OrmState
    cls: str

    def was(self, reading: DatabaseSnapshot) -> Object:
        """Return the object by the key of its row before the flush."""
        identity = self.state.identity
        return self._object(reading, self._key() if identity is None else identity[0])

    def now(self, reading: DatabaseSnapshot) -> Object:
        key = self._key()
        return self.was(reading) if key is None else self._object(reading, key)

    def has_key(self) -> bool:
        return self._key() is not None

    def _key(self) -> Any:
        """Return the loaded key, or None. Reading the attribute would emit a query for each instance."""
        mapper = self.state.mapper
        return self.state.dict.get(mapper.get_property_by_column(mapper.primary_key[0]).key)

    def _object(self, reading: DatabaseSnapshot, key: Any) -> Object:
        return reading.object(reading.tables.model.family(self.cls), key)


@dataclass
class FlushInstances:
    """Instances that are inserted, deleted, and the others, which may be updated."""

    new: list[MappedInstance] = field(default_factory=list)
    gone: list[MappedInstance] = field(default_factory=list)
    kept: list[MappedInstance] = field(default_factory=list)


def classify_instances(reading: DatabaseSnapshot, context: FlushContext) -> FlushInstances:
    found, spared = FlushInstances(), list[MappedInstance]()
    for state, (goes, only_listed) in context.states.items():
        cls = reading.tables.class_of(state.mapper)
        if cls is None or (only_listed and not goes):
            continue
        going = spared if only_listed else found.gone
        place = going if goes else found.new if state.identity is None else found.kept
        place.append(MappedInstance(state, cls))
    return _replaced(reading, found, spared)


def _replaced(
    reading: DatabaseSnapshot, found: FlushInstances, spared: list[MappedInstance]
) -> FlushInstances:
    """Treat a new instance with the key of a deleted one as updated, as SQLAlchemy does.

    It spares the deleted instance at some point, before or after its first statement.
    """
    gone = {each.was(reading): each for each in (*found.gone, *spared)}
    again = {each: each.was(reading) for each in found.new if each.has_key()}
    same = {each: one for each, one in again.items() if one in gone}
    ended = {gone[one] for one in same.values()}.union(spared)
    return FlushInstances(
        [each for each in found.new if each not in same],
        [each for each in found.gone if each not in ended],
        [*found.kept, *same],
    )


def find_link_pairs(tables: MappedTables, instances: FlushInstances, which: str) -> dict[LinkPair, None]:
    """Find the `added` or `deleted` links in link tables, each once even if both ends have it."""
    return dict.fromkeys(
        (each.trail, instance.state, other) if each.is_near else (each.trail, other, instance.state)
        for instance in (*instances.new, *instances.kept)
        for each in tables.collections[instance.cls]
        for other in _others(instance.state, each.key, which)
    )


def _others(state: OrmState, key: str, which: str) -> Iterator[OrmState]:
    for other in getattr(state.attrs[key].history, which) or ():
        if other is not None:
            yield inspect(other)


def find_touched_columns(context: FlushContext) -> set[AnyColumn]:
    """Find the columns that may change, because an attribute or relationship stored in them changed.

    That may be in another instance: a book that loses a chapter writes to the chapter's row.
    """
    found: set[AnyColumn] = set()
    for state in context.states:
        for key in set(state.mapper.attrs.keys()) - state.unmodified:
            said = state.mapper.attrs[key]
            if isinstance(said, ColumnProperty):
                found.update(each for each in said.columns if isinstance(each, Column))
            elif isinstance(said, RelationshipProperty) and said.secondary is None:
                found.update(each for _, each in said.synchronize_pairs if isinstance(each, Column))
    return found


def to_json_value(value: Any) -> Any:
    """Convert a value for JSON; enumerations become their names, as SQLAlchemy stores them."""
    if isinstance(value, Enum):
        return value.name
    if value is None or isinstance(value, int | str) or (isinstance(value, float) and isfinite(value)):
        return value
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value).hex()
    if isinstance(value, Mapping):
        return {str(key): to_json_value(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [to_json_value(each) for each in value]
    return str(value)


AttributeValues = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class FlushChange:
    """A change with its values; for a link in a row, `held` is the instance and the column."""

    change: Change
    cls: str
    before: AttributeValues | None = None
    after: AttributeValues | None = None
    association: str | None = None
    other: Object | None = None
    held: tuple[MappedInstance, AnyColumn] | None = None


@dataclass(frozen=True, slots=True)
class LinkChange:
    """Two objects that are linked or unlinked."""

    trail: AssociationColumns
    near: Object
    far: Object
    held: tuple[MappedInstance, AnyColumn] | None = None


class StateBeforeFlush:
    """Objects and links that a flush will remove, including links in columns that may change."""

    def __init__(self, reading: DatabaseSnapshot, context: FlushContext) -> None:
        self.reading, self._context = reading, context
        self.instances: FlushInstances = classify_instances(reading, context)
        self._was = {each: each.was(reading) for each in (*self.instances.kept, *self.instances.gone)}
        rows = reading.rows({one: each.cls for each, one in self._was.items()})
        self.rows = {each: rows[one] for each, one in self._was.items() if one in rows}
        self.linked = find_link_pairs(reading.tables, self.instances, "added")

    def happened(self) -> list[FlushChange]:
        return [*self._deleted(), *self._unlinked(), *self._perhaps_unlinked()]

    def _deleted(self) -> Iterator[FlushChange]:
        for each in self.instances.gone:
            if each in self.rows:
                values = read_attribute_values(self.reading.tables, each.cls, self.rows[each])
                yield FlushChange(Change(ChangeKind.DELETE, self._was[each]), each.cls, before=values)

    def _unlinked(self) -> Iterator[FlushChange]:
        """Yield unlinked objects; a link that goes with a deleted object is part of the deletion."""
        deleted = {each.state for each in self.instances.gone}
        found = [
            LinkChange(trail, *resolve_states(self.reading, trail, near, far))
            for trail, near, far in find_link_pairs(self.reading.tables, self.instances, "deleted")
            if near not in deleted and far not in deleted
        ]
        return build_link_changes(self.reading, ChangeKind.UNLINK, found)

    def _perhaps_unlinked(self) -> Iterator[FlushChange]:
        """Yield links in references that may change: after the flush it is too late to find their subscribers."""
        gone = {self._was[each] for each in self.instances.gone}
        found = [
            each
            for each in self._references(find_touched_columns(self._context))
            if not {each.near, each.far} & gone
        ]
        there = self.reading.classes([one for each in found for one in (each.near, each.far)])
        found = [each for each in found if each.near in there and each.far in there]
        return build_link_changes(self.reading, ChangeKind.UNLINK, found)

    def _references(self, columns: set[AnyColumn]) -> Iterator[LinkChange]:
        for each in self.instances.kept:
            for trail, column in self.reading.tables.references[each.cls] if each in self.rows else ():
                value = self.rows[each][column]
                if value is not None and column in columns:
                    near, far = resolve_link_ends(self.reading, trail, self._was[each], value)
                    yield LinkChange(trail, near, far, (each, column))


class StateAfterFlush:
    """Objects and links after a flush, compared with those before."""

    def __init__(self, reading: DatabaseSnapshot, before: StateBeforeFlush) -> None:
        self.reading, self.before = reading, before
        self.new = {each: each.now(reading) for each in before.instances.new}
        self.kept = {each: each.now(reading) for each in before.instances.kept if each in before.rows}
        rows = reading.rows({one: each.cls for each, one in (*self.new.items(), *self.kept.items())})
        self.rows = {each: rows[one] for each, one in (*self.new.items(), *self.kept.items()) if one in rows}

    def happened(self) -> list[FlushChange]:
        return [*self._inserted(), *self._updated(), *self._linked()]

    def is_so(self, each: FlushChange) -> bool:
        """Return whether a possible change happened: a reference was unlinked if it differs now."""
        return each.held is None or (each.held[0] in self.rows and self._differs(*each.held))

    def _differs(self, each: MappedInstance, column: AnyColumn) -> bool:
        old, new = self.before.rows[each][column], self.rows[each][column]
        return not column.type.compare_values(old, new)

    def _inserted(self) -> Iterator[FlushChange]:
        for each, one in self.new.items():
            if each in self.rows:
                values = read_attribute_values(self.reading.tables, each.cls, self.rows[each])
                yield FlushChange(Change(ChangeKind.INSERT, one), each.cls, after=values)

    def _updated(self) -> Iterator[FlushChange]:
        """Yield updates of objects with a value that differs."""
        for each, one in self.kept.items():
            if each not in self.rows:
                continue
            attributes = self.reading.tables.attributes[each.cls]
            changed = {name: column for name, column in attributes if self._differs(each, column)}
            if changed:
                old, new = (
                    {name: to_json_value(row[column]) for name, column in changed.items()}
                    for row in (self.before.rows[each], self.rows[each])
                )
                yield FlushChange(Change(ChangeKind.UPDATE, one, frozenset(changed)), each.cls, old, new)

    def _linked(self) -> Iterator[FlushChange]:
        """Yield new links, except references of inserted objects: their insertion propagates along them already."""
        found = [
            LinkChange(trail, *resolve_states(self.reading, trail, *states))
            for trail, *states in self.before.linked
        ]
        for each, one in self.kept.items():
            for trail, column in self.reading.tables.references[each.cls] if each in self.rows else ():
                value = self.rows[each][column]
                if value is not None and self._differs(each, column):
                    found.append(LinkChange(trail, *resolve_link_ends(self.reading, trail, one, value)))
        return build_link_changes(self.reading, ChangeKind.LINK, found)


def read_attribute_values(tables: MappedTables, cls: str, row: SnapshotRow) -> AttributeValues:
    return {name: to_json_value(row[column]) for name, column in tables.attributes[cls]}


def resolve_states(
    reading: DatabaseSnapshot, trail: AssociationColumns, near: OrmState, far: OrmState
) -> tuple[Object, Object]:
    found = (
        MappedInstance(state, cls).now(reading)
        for state, cls in ((near, trail.way.near_class), (far, trail.way.far_class))
    )
    return next(found), next(found)


def resolve_link_ends(
    reading: DatabaseSnapshot, trail: AssociationColumns, one: Object, value: Any
) -> tuple[Object, Object]:
    """Return the near and far end of a link in a row of the object `one`."""
    if trail.leaves_its_row:
        return one, reading.object(trail.way.far_family, value)
    return reading.object(trail.way.near_family, value), one


def build_link_changes(
    reading: DatabaseSnapshot, kind: ChangeKind, found: Sequence[LinkChange]
) -> Iterator[FlushChange]:
    """Yield changes of the objects at the far ends, if the marks of the associations admit them."""
    counted = [each for each in found if each.trail.way.limits.admits(kind)]
    classes = reading.classes([each.far for each in counted])
    for each in counted:
        cls, name = classes.get(each.far, each.far.family), each.trail.way.name
        yield FlushChange(Change(kind, each.far), cls, association=name, other=each.near, held=each.held)
