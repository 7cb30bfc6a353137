"""The objects of the model that a flush is about to write, and the links it makes and takes away."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol

from sqlalchemy import Column, inspect
from sqlalchemy.orm import ColumnProperty, InstanceState, RelationshipProperty

from tidings.objects.listener.mapped_tables import AnyColumn, AssociationColumns, MappedTables
from tidings.objects.listener.snapshot import DatabaseSnapshot
from tidings.objects.reasons import Object

OrmState = InstanceState[Any]
LinkPair = tuple[AssociationColumns, OrmState, OrmState]
"""Two ends of a link: where a change comes from, and where it goes to."""


class FlushContext(Protocol):
    """What SQLAlchemy tells listeners about a flush; `states` says of each whether it goes, and whether it only has
    a place in the order of things. Before the first statement that writes it has all of them: orphans, too, and those
    whose reference becomes NULL because somebody else goes. `session.deleted` and `session.dirty` do not have these."""

    states: dict[OrmState, tuple[bool, bool]]

    @property
    def has_work(self) -> bool: ...


@dataclass(frozen=True, slots=True, eq=False)
class MappedInstance:
    """An object of the model in a session."""

    state: OrmState
    cls: str

    def was(self, reading: DatabaseSnapshot) -> Object:
        """By the key that its row has until it is written."""
        identity = self.state.identity
        return self._object(reading, self._key() if identity is None else identity[0])

    def now(self, reading: DatabaseSnapshot) -> Object:
        key = self._key()
        return self.was(reading) if key is None else self._object(reading, key)

    def has_key(self) -> bool:
        return self._key() is not None

    def _key(self) -> Any:
        """None if it is not loaded, or if the database makes it. Asking the instance would be a query for each."""
        mapper = self.state.mapper
        return self.state.dict.get(mapper.get_property_by_column(mapper.primary_key[0]).key)

    def _object(self, reading: DatabaseSnapshot, key: Any) -> Object:
        return reading.object(reading.tables.model.family(self.cls), key)


@dataclass
class FlushInstances:
    """What is inserted, what goes, and the others, which may be updated."""

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
    """An object that comes with the key of one that goes is the same object: SQLAlchemy updates its row, and spares
    the one that goes as soon as it gets there, which may be before its first statement or after it."""
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
    """Links in tables of links that are `added` or `deleted`. Both ends may know of one: it is told once."""
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
    """Columns that may get other values, because an attribute or relationship that is kept in them was changed
    somewhere: the one who loses a chapter writes into the chapter's row."""
    found: set[AnyColumn] = set()
    for state in context.states:
        for key in set(state.mapper.attrs.keys()) - state.unmodified:
            said = state.mapper.attrs[key]
            if isinstance(said, ColumnProperty):
                found.update(each for each in said.columns if isinstance(each, Column))
            elif isinstance(said, RelationshipProperty) and said.secondary is None:
                found.update(each for _, each in said.synchronize_pairs if isinstance(each, Column))
    return found
