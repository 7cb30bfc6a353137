"""Changes of a flush: objects and links that it removes, adds or updates.

Rows are read before and after and compared, whatever statements SQLAlchemy executes: an attribute may be set to the
value that it had, and references become NULL although no program set them.
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

    def object_before(self, snapshot: DatabaseSnapshot) -> Object:
        """Return the object by the key of its row before the flush."""
        identity = self.state.identity
        return self._object(snapshot, self._key() if identity is None else identity[0])

    def object_after(self, snapshot: DatabaseSnapshot) -> Object:
        key = self._key()
        return self.object_before(snapshot) if key is None else self._object(snapshot, key)

    def has_key(self) -> bool:
        return self._key() is not None

    def _key(self) -> Any:
        """Return the loaded key, or None. Reading the attribute would emit a query for each instance."""
        mapper = self.state.mapper
        return self.state.dict.get(mapper.get_property_by_column(mapper.primary_key[0]).key)

    def _object(self, snapshot: DatabaseSnapshot, key: Any) -> Object:
        return snapshot.object(snapshot.tables.model.family(self.cls), key)


@dataclass
class FlushInstances:
    """Instances that are inserted, instances that are deleted, and the others, which may be updated."""

    inserted: list[MappedInstance] = field(default_factory=list)
    deleted: list[MappedInstance] = field(default_factory=list)
    remaining: list[MappedInstance] = field(default_factory=list)


def classify_instances(snapshot: DatabaseSnapshot, context: FlushContext) -> FlushInstances:
    instances, spared = FlushInstances(), list[MappedInstance]()
    for state, (is_deleted, is_only_listed) in context.states.items():
        cls = snapshot.tables.class_of(state.mapper)
        if cls is None or (is_only_listed and not is_deleted):
            continue
        removed = spared if is_only_listed else instances.deleted
        group = (
            removed if is_deleted else instances.inserted if state.identity is None else instances.remaining
        )
        group.append(MappedInstance(state, cls))
    return _match_replaced(snapshot, instances, spared)


def _match_replaced(
    snapshot: DatabaseSnapshot, instances: FlushInstances, spared: list[MappedInstance]
) -> FlushInstances:
    """Treat a new instance with the key of a deleted one as updated, as SQLAlchemy does.

    It marks the deleted instance as only listed, before or after its first statement.
    """
    deleted = {instance.object_before(snapshot): instance for instance in (*instances.deleted, *spared)}
    keyed = {
        instance: instance.object_before(snapshot) for instance in instances.inserted if instance.has_key()
    }
    replaced = {instance: subject for instance, subject in keyed.items() if subject in deleted}
    spared_or_replaced = {deleted[subject] for subject in replaced.values()}.union(spared)
    return FlushInstances(
        [instance for instance in instances.inserted if instance not in replaced],
        [instance for instance in instances.deleted if instance not in spared_or_replaced],
        [*instances.remaining, *replaced],
    )


def find_link_pairs(tables: MappedTables, instances: FlushInstances, which: str) -> dict[LinkPair, None]:
    """Find the `added` or `deleted` links in link tables, each once even if both ends have it."""
    return dict.fromkeys(
        (collection.association, instance.state, other)
        if collection.is_near
        else (collection.association, other, instance.state)
        for instance in (*instances.inserted, *instances.remaining)
        for collection in tables.collections[instance.cls]
        for other in _list_others(instance.state, collection.key, which)
    )


def _list_others(state: OrmState, key: str, which: str) -> Iterator[OrmState]:
    for other in getattr(state.attrs[key].history, which) or ():
        if other is not None:
            yield inspect(other)


def find_touched_columns(context: FlushContext) -> set[AnyColumn]:
    """Find the columns that may change, because an attribute or relationship stored in them changed.

    That may be in another instance: a book that loses a chapter writes to the chapter's row.
    """
    columns: set[AnyColumn] = set()
    for state in context.states:
        for key in set(state.mapper.attrs.keys()) - state.unmodified:
            attribute = state.mapper.attrs[key]
            if isinstance(attribute, ColumnProperty):
                columns.update(column for column in attribute.columns if isinstance(column, Column))
            elif isinstance(attribute, RelationshipProperty) and attribute.secondary is None:
                columns.update(
                    column for _, column in attribute.synchronize_pairs if isinstance(column, Column)
                )
    return columns


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
        return {str(key): to_json_value(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [to_json_value(item) for item in value]
    return str(value)


AttributeValues = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class FlushChange:
    """A change with its values; for a link stored in a row, `reference` is the instance and the column."""

    change: Change
    cls: str
    before: AttributeValues | None = None
    after: AttributeValues | None = None
    association: str | None = None
    other: Object | None = None
    reference: tuple[MappedInstance, AnyColumn] | None = None


@dataclass(frozen=True, slots=True)
class LinkChange:
    """Two objects that are linked or unlinked."""

    association: AssociationColumns
    near: Object
    far: Object
    reference: tuple[MappedInstance, AnyColumn] | None = None


class StateBeforeFlush:
    """Objects and links that a flush will remove, including links in columns that may change."""

    def __init__(self, snapshot: DatabaseSnapshot, context: FlushContext) -> None:
        self.snapshot, self._context = snapshot, context
        self.instances: FlushInstances = classify_instances(snapshot, context)
        self._objects = {
            instance: instance.object_before(snapshot)
            for instance in (*self.instances.remaining, *self.instances.deleted)
        }
        rows = snapshot.rows({subject: instance.cls for instance, subject in self._objects.items()})
        self.rows = {
            instance: rows[subject] for instance, subject in self._objects.items() if subject in rows
        }
        self.new_links = find_link_pairs(snapshot.tables, self.instances, "added")

    def list_changes(self) -> list[FlushChange]:
        return [*self._list_deletions(), *self._list_unlinked(), *self._list_possibly_unlinked()]

    def _list_deletions(self) -> Iterator[FlushChange]:
        for instance in self.instances.deleted:
            if instance in self.rows:
                values = read_attribute_values(self.snapshot.tables, instance.cls, self.rows[instance])
                yield FlushChange(
                    Change(ChangeKind.DELETE, self._objects[instance]), instance.cls, before=values
                )

    def _list_unlinked(self) -> Iterator[FlushChange]:
        """Yield unlinked objects; a link of a deleted object is part of the deletion."""
        deleted = {instance.state for instance in self.instances.deleted}
        links = [
            LinkChange(association, *resolve_states(self.snapshot, association, near, far))
            for association, near, far in find_link_pairs(self.snapshot.tables, self.instances, "deleted")
            if near not in deleted and far not in deleted
        ]
        return build_link_changes(self.snapshot, ChangeKind.UNLINK, links)

    def _list_possibly_unlinked(self) -> Iterator[FlushChange]:
        """Yield links in references that may change: after the flush it is too late to find their subscribers."""
        deleted = {self._objects[instance] for instance in self.instances.deleted}
        links = [
            link
            for link in self._list_references(find_touched_columns(self._context))
            if not {link.near, link.far} & deleted
        ]
        existing = self.snapshot.classes([subject for link in links for subject in (link.near, link.far)])
        links = [link for link in links if link.near in existing and link.far in existing]
        return build_link_changes(self.snapshot, ChangeKind.UNLINK, links)

    def _list_references(self, columns: set[AnyColumn]) -> Iterator[LinkChange]:
        for instance in self.instances.remaining:
            for association, column in (
                self.snapshot.tables.references[instance.cls] if instance in self.rows else ()
            ):
                value = self.rows[instance][column]
                if value is not None and column in columns:
                    near, far = resolve_link_ends(self.snapshot, association, self._objects[instance], value)
                    yield LinkChange(association, near, far, (instance, column))


class StateAfterFlush:
    """Objects and links after a flush, compared with those before."""

    def __init__(self, snapshot: DatabaseSnapshot, state_before: StateBeforeFlush) -> None:
        self.snapshot, self.before = snapshot, state_before
        self.inserted = {
            instance: instance.object_after(snapshot) for instance in state_before.instances.inserted
        }
        self.remaining = {
            instance: instance.object_after(snapshot)
            for instance in state_before.instances.remaining
            if instance in state_before.rows
        }
        rows = snapshot.rows(
            {subject: instance.cls for instance, subject in (*self.inserted.items(), *self.remaining.items())}
        )
        self.rows = {
            instance: rows[subject]
            for instance, subject in (*self.inserted.items(), *self.remaining.items())
            if subject in rows
        }

    def list_changes(self) -> list[FlushChange]:
        return [*self._list_insertions(), *self._list_updates(), *self._list_links()]

    def is_confirmed(self, change: FlushChange) -> bool:
        """Return whether a possible change happened: a reference was unlinked if its value differs after the flush."""
        return change.reference is None or (
            change.reference[0] in self.rows and self._is_changed(*change.reference)
        )

    def _is_changed(self, instance: MappedInstance, column: AnyColumn) -> bool:
        old, new = self.before.rows[instance][column], self.rows[instance][column]
        return not column.type.compare_values(old, new)

    def _list_insertions(self) -> Iterator[FlushChange]:
        for instance, subject in self.inserted.items():
            if instance in self.rows:
                values = read_attribute_values(self.snapshot.tables, instance.cls, self.rows[instance])
                yield FlushChange(Change(ChangeKind.INSERT, subject), instance.cls, after=values)

    def _list_updates(self) -> Iterator[FlushChange]:
        """Yield updates of objects with a value that differs."""
        for instance, subject in self.remaining.items():
            if instance not in self.rows:
                continue
            attributes = self.snapshot.tables.attributes[instance.cls]
            changed = {name: column for name, column in attributes if self._is_changed(instance, column)}
            if changed:
                old, new = (
                    {name: to_json_value(row[column]) for name, column in changed.items()}
                    for row in (self.before.rows[instance], self.rows[instance])
                )
                yield FlushChange(
                    Change(ChangeKind.UPDATE, subject, frozenset(changed)), instance.cls, old, new
                )

    def _list_links(self) -> Iterator[FlushChange]:
        """Yield new links, except references of inserted objects: their insertion propagates along them already."""
        links = [
            LinkChange(association, *resolve_states(self.snapshot, association, *states))
            for association, *states in self.before.new_links
        ]
        for instance, subject in self.remaining.items():
            for association, column in (
                self.snapshot.tables.references[instance.cls] if instance in self.rows else ()
            ):
                value = self.rows[instance][column]
                if value is not None and self._is_changed(instance, column):
                    links.append(
                        LinkChange(
                            association, *resolve_link_ends(self.snapshot, association, subject, value)
                        )
                    )
        return build_link_changes(self.snapshot, ChangeKind.LINK, links)


def read_attribute_values(tables: MappedTables, cls: str, row: SnapshotRow) -> AttributeValues:
    return {name: to_json_value(row[column]) for name, column in tables.attributes[cls]}


def resolve_states(
    snapshot: DatabaseSnapshot, association: AssociationColumns, near: OrmState, far: OrmState
) -> tuple[Object, Object]:
    ends = (
        MappedInstance(state, cls).object_after(snapshot)
        for state, cls in ((near, association.way.near_class), (far, association.way.far_class))
    )
    return next(ends), next(ends)


def resolve_link_ends(
    snapshot: DatabaseSnapshot, association: AssociationColumns, subject: Object, value: Any
) -> tuple[Object, Object]:
    """Return the near and far end of a link that is stored in the row of `subject`."""
    if association.is_in_near_row:
        return subject, snapshot.object(association.way.far_family, value)
    return snapshot.object(association.way.near_family, value), subject


def build_link_changes(
    snapshot: DatabaseSnapshot, kind: ChangeKind, links: Sequence[LinkChange]
) -> Iterator[FlushChange]:
    """Yield changes of the objects at the far ends, if the marks of the associations admit them."""
    admitted = [link for link in links if link.association.way.limits.admits(kind)]
    classes = snapshot.classes([link.far for link in admitted])
    for link in admitted:
        cls, name = classes.get(link.far, link.far.family), link.association.way.name
        yield FlushChange(
            Change(kind, link.far), cls, association=name, other=link.near, reference=link.reference
        )
