"""What a database holds at a moment, asked for many objects at once: their rows, links, classes and labels.

The paper's aspect asks object by object, and that is what made it slow (section 5.1).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, Table, select

from tidings.objects.listener.mapped_tables import AnyColumn, AssociationColumns, MappedTables
from tidings.objects.reasons import Object

KEYS_PER_QUERY = 500
"""Keys in one statement: older versions of SQLite take 999 values."""

SnapshotRow = dict[AnyColumn, Any]


class DatabaseSnapshot:
    """The database as a connection sees it at one moment: what was asked once is not asked again."""

    def __init__(self, tables: MappedTables, connection: Connection) -> None:
        self.tables, self.connection = tables, connection
        self._keys: dict[Object, Any] = {}
        self._texts: dict[str, Callable[[Any], Any] | None] = {}
        self._links: dict[AssociationColumns, dict[Object, set[Object]]] = {}
        self._classes: dict[Object, str] = {}

    def object(self, family: str, key: Any) -> Object:
        """Its key is a text: as the database stores it, which is not always how Python writes it (a UUID in SQLite)."""
        if family not in self._texts:
            dialect = self.connection.dialect
            stored = self.tables.key(family).type.dialect_impl(dialect)
            self._texts[family] = stored.bind_processor(dialect)
        text = self._texts[family]
        made = Object(family, str(key if text is None else text(key)))
        self._keys[made] = key
        return made

    def links(self, trail: AssociationColumns, objects: Iterable[Object]) -> Mapping[Object, set[Object]]:
        """Where a trail leads from each of these objects."""
        known = self._links.setdefault(trail, {})
        asked = [one for one in objects if one not in known]
        known.update((one, set()) for one in asked)
        for near, far in self._select(trail.near, (trail.far,), asked):
            if far is not None:
                known[self.object(trail.way.near_family, near)].add(self.object(trail.way.far_family, far))
        return known

    def rows(self, classes: Mapping[Object, str]) -> Mapping[Object, SnapshotRow]:
        """What counts in the rows of objects, if their classes are known; those that are not there are left out."""
        found: dict[Object, SnapshotRow] = {}
        for table, key in self.tables.keys.items():
            objects = [one for one, cls in classes.items() if table in self.tables.tables_of[cls]]
            columns = dict.fromkeys(
                column
                for cls in {classes[one] for one in objects}
                for column in self._columns(cls)
                if column.table is table
            )
            for its_key, *values in self._select(key, (*columns,), objects):
                one = self.object(objects[0].family, its_key)  # a table has objects of one family
                found.setdefault(one, {}).update(zip(columns, values, strict=True))
        return found

    def _columns(self, cls: str) -> Iterator[AnyColumn]:
        yield from (column for _, column in self.tables.attributes[cls])
        yield from (column for _, column in self.tables.references[cls])

    def classes(self, objects: Iterable[Object]) -> Mapping[Object, str]:
        """The lowest class of which there is a row; objects without any are left out."""
        asked: dict[str, list[Object]] = {}
        for one in objects:
            if one not in self._classes:
                asked.setdefault(one.family, []).append(one)
        for family, some in asked.items():
            for cls in self.tables.members(family):
                self._classes.update((one, cls) for one in self._rows_of(cls, some))
        return self._classes

    def _rows_of(self, cls: str, objects: Sequence[Object]) -> Iterator[Object]:
        """Those that have a row of the class: a table with several classes says in a column of which."""
        family, said = self.tables.model.family(cls), self.tables.mapped.tables[cls].discriminator
        place = None if cls == family else self.tables.discriminator(cls)
        key, *kept = (self.tables.key(cls),) if place is None else place
        for its_key, *values in self._select(key, kept, objects):
            if said is None or place is None or values == [said.value]:
                yield self.object(family, its_key)

    def labels(self, objects: Iterable[Object]) -> Mapping[Object, str]:
        """By which people know them: the label of their class, or their key if there is none. What is not there, is
        not in it."""
        found: dict[Object, str] = {}
        named: dict[AnyColumn, list[Object]] = {}
        for one, cls in self._known(objects).items():
            label = self.tables.model.label_of(cls)
            found[one] = str(one.key)
            if label is not None:
                named.setdefault(self.tables.column(*self.tables.mapped.column(cls, label)), []).append(one)
        for column, some in named.items():
            for key, label in self._select(self._key_beside(column), (column,), some):
                one = self.object(some[0].family, key)
                found[one] = str(label or one.key)
        return found

    def _known(self, objects: Iterable[Object]) -> Mapping[Object, str]:
        asked = [one for one in objects if self._has_key(one)]
        classes = self.classes(asked)
        return {one: classes[one] for one in asked if one in classes}

    def _has_key(self, one: Object) -> bool:
        """Who watches is named by a text, which may be the key of nobody, or of a type that no text is made into."""
        if one not in self._keys:
            try:
                self._keys[one] = self.tables.key(one.family).type.python_type(one.key)
            except (NotImplementedError, TypeError, ValueError):
                return False
        return True

    def _key_beside(self, column: AnyColumn) -> AnyColumn:
        table = column.table
        assert isinstance(table, Table)
        return self.tables.keys[table]

    def _select(
        self, key: AnyColumn, columns: Sequence[AnyColumn], objects: Sequence[Object]
    ) -> Iterator[Sequence[Any]]:
        for start in range(0, len(objects), KEYS_PER_QUERY):
            keys = [self._keys[one] for one in objects[start : start + KEYS_PER_QUERY]]
            yield from self.connection.execute(select(key, *columns).where(key.in_(keys)))
