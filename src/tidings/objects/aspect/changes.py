"""What a flush changes: what will be gone when it has written, and what is there then that was not, or was another.

A change is told of objects and links of the model; how SQLAlchemy writes it does not matter. So rows are read and
compared: attributes that were set may have been that already, and references that nobody set become NULL.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tidings.objects.aspect.instances import Context, Instance, Instances, State, pairs, sorted_out, stirred
from tidings.objects.aspect.reading import Reading, Row
from tidings.objects.aspect.tables import Columns, Tables, Trail
from tidings.objects.aspect.values import plain
from tidings.objects.definition import Change
from tidings.objects.model import Kind
from tidings.objects.reasons import Object

Values = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Happened:
    """A change and what is known of it; of a link that a row has, the row and the column."""

    change: Change
    cls: str
    before: Values | None = None
    after: Values | None = None
    association: str | None = None
    other: Object | None = None
    held: tuple[Instance, Columns] | None = None


@dataclass(frozen=True, slots=True)
class Linked:
    """Two objects that are linked, or were."""

    trail: Trail
    near: Object
    far: Object
    held: tuple[Instance, Columns] | None = None


class Before:
    """What will be gone: objects, links in tables of links, and links in columns that may get other values."""

    def __init__(self, reading: Reading, context: Context) -> None:
        self.reading, self._context = reading, context
        self.instances: Instances = sorted_out(reading, context)
        self._was = {each: each.was(reading) for each in (*self.instances.kept, *self.instances.gone)}
        rows = reading.rows({one: each.cls for each, one in self._was.items()})
        self.rows = {each: rows[one] for each, one in self._was.items() if one in rows}
        self.linked = pairs(reading.tables, self.instances, "added")

    def happened(self) -> list[Happened]:
        return [*self._deleted(), *self._unlinked(), *self._perhaps_unlinked()]

    def _deleted(self) -> Iterator[Happened]:
        for each in self.instances.gone:
            if each in self.rows:
                values = values_of(self.reading.tables, each.cls, self.rows[each])
                yield Happened(Change(Kind.DELETE, self._was[each]), each.cls, before=values)

    def _unlinked(self) -> Iterator[Happened]:
        """Of a link that goes with one of its ends, nothing more is told than the end of that object."""
        deleted = {each.state for each in self.instances.gone}
        found = [
            Linked(trail, *ends(self.reading, trail, near, far))
            for trail, near, far in pairs(self.reading.tables, self.instances, "deleted")
            if near not in deleted and far not in deleted
        ]
        return links(self.reading, Kind.UNLINK, found)

    def _perhaps_unlinked(self) -> Iterator[Happened]:
        """What references lead to. Where they will lead is known when it is written, and then it is too late to ask
        who was concerned."""
        gone = {self._was[each] for each in self.instances.gone}
        found = [
            each for each in self._references(stirred(self._context)) if not {each.near, each.far} & gone
        ]
        there = self.reading.classes([one for each in found for one in (each.near, each.far)])
        found = [each for each in found if each.near in there and each.far in there]
        return links(self.reading, Kind.UNLINK, found)

    def _references(self, columns: set[Columns]) -> Iterator[Linked]:
        for each in self.instances.kept:
            for trail, column in self.reading.tables.references[each.cls] if each in self.rows else ():
                value = self.rows[each][column]
                if value is not None and column in columns:
                    near, far = both(self.reading, trail, self._was[each], value)
                    yield Linked(trail, near, far, (each, column))


class After:
    """What is there now, compared with what was."""

    def __init__(self, reading: Reading, before: Before) -> None:
        self.reading, self.before = reading, before
        self.new = {each: each.now(reading) for each in before.instances.new}
        self.kept = {each: each.now(reading) for each in before.instances.kept if each in before.rows}
        rows = reading.rows({one: each.cls for each, one in (*self.new.items(), *self.kept.items())})
        self.rows = {each: rows[one] for each, one in (*self.new.items(), *self.kept.items()) if one in rows}

    def happened(self) -> list[Happened]:
        return [*self._inserted(), *self._updated(), *self._linked()]

    def is_so(self, each: Happened) -> bool:
        """A reference that might have been unlinked is so if it leads elsewhere now."""
        return each.held is None or (each.held[0] in self.rows and self._differs(*each.held))

    def _differs(self, each: Instance, column: Columns) -> bool:
        old, new = self.before.rows[each][column], self.rows[each][column]
        return not column.type.compare_values(old, new)

    def _inserted(self) -> Iterator[Happened]:
        for each, one in self.new.items():
            if each in self.rows:
                values = values_of(self.reading.tables, each.cls, self.rows[each])
                yield Happened(Change(Kind.INSERT, one), each.cls, after=values)

    def _updated(self) -> Iterator[Happened]:
        """Only if a value is another: an update to the same value is none."""
        for each, one in self.kept.items():
            if each not in self.rows:
                continue
            attributes = self.reading.tables.attributes[each.cls]
            changed = {name: column for name, column in attributes if self._differs(each, column)}
            if changed:
                old, new = (
                    {name: plain(row[column]) for name, column in changed.items()}
                    for row in (self.before.rows[each], self.rows[each])
                )
                yield Happened(Change(Kind.UPDATE, one, frozenset(changed)), each.cls, old, new)

    def _linked(self) -> Iterator[Happened]:
        """An object that is inserted with a reference goes along it already: those there would be told twice."""
        found = [Linked(trail, *ends(self.reading, trail, *states)) for trail, *states in self.before.linked]
        for each, one in self.kept.items():
            for trail, column in self.reading.tables.references[each.cls] if each in self.rows else ():
                value = self.rows[each][column]
                if value is not None and self._differs(each, column):
                    found.append(Linked(trail, *both(self.reading, trail, one, value)))
        return links(self.reading, Kind.LINK, found)


def values_of(tables: Tables, cls: str, row: Row) -> Values:
    return {name: plain(row[column]) for name, column in tables.attributes[cls]}


def ends(reading: Reading, trail: Trail, near: State, far: State) -> tuple[Object, Object]:
    found = (
        Instance(state, cls).now(reading)
        for state, cls in ((near, trail.way.near_class), (far, trail.way.far_class))
    )
    return next(found), next(found)


def both(reading: Reading, trail: Trail, one: Object, value: Any) -> tuple[Object, Object]:
    """The near and the far end of a link in a row of the object `one`."""
    if trail.leaves_its_row:
        return one, reading.object(trail.way.far_family, value)
    return reading.object(trail.way.near_family, value), one


def links(reading: Reading, kind: Kind, found: Sequence[Linked]) -> Iterator[Happened]:
    """Changes of the objects at the far ends, where the marks of the associations admit them."""
    counted = [each for each in found if each.trail.way.limits.admits(kind)]
    classes = reading.classes([each.far for each in counted])
    for each in counted:
        cls, name = classes.get(each.far, each.far.family), each.trail.way.name
        yield Happened(Change(kind, each.far), cls, association=name, other=each.near, held=each.held)
