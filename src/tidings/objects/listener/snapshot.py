"""What a database holds at a moment, asked for many objects at once: their rows, links, classes and labels.

The paper's aspect asks object by object, and that is what made it slow (section 5.1).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from sqlalchemy import Column, Connection, Table, select
from sqlalchemy.orm import Mapper, registry

from tidings.objects.model.class_model import Model
from tidings.objects.model.relational_view import DirectedAssociation, RelationalView
from tidings.objects.model.table_mapping import ForeignKey, MappedModel
from tidings.objects.propagation import Object
from tidings.objects.readers.sqlalchemy_reader import read_sqlalchemy

AnyColumn = Column[Any]


@dataclass(frozen=True, slots=True, eq=False)
class AssociationColumns:
    """A marked association in the direction of its mark, with the columns of both ends."""

    way: DirectedAssociation
    near: AnyColumn
    far: AnyColumn

    @property
    def reference(self) -> AnyColumn | None:
        """The column that is a foreign key; None in a table of links."""
        name = self.way.relation.reference
        return None if name is None else self.far if self.far.name == name else self.near

    @property
    def leaves_its_row(self) -> bool:
        """Whether the object itself says where it leads: only such links does an object have when it is inserted."""
        return self.reference is self.far


@dataclass(frozen=True, slots=True)
class LinkCollection:
    """A relationship whose collection is written to a table of links that propagates."""

    key: str
    trail: AssociationColumns
    is_near: bool
    """Whether the object that has the collection is the one from which changes go to the others."""


class MappedTables:
    """A declarative base and its model."""

    def __init__(self, base: Any) -> None:
        self.mapped: MappedModel = read_sqlalchemy(base)
        self._view = RelationalView(self.mapped)
        classes: registry = base if isinstance(base, registry) else base.registry
        self.mappers = {mapper.class_.__name__: mapper for mapper in classes.mappers}
        self._tables = {table.fullname: table for mapper in self.mappers.values() for table in _all(mapper)}
        self.propagating = tuple(map(self._trail, self._view.propagating()))
        self.implicit = tuple(map(self._trail, self._view.implicit()))
        names = self.model.classes
        self.tables_of = {name: frozenset(self._lineage_tables(name)) for name in names}
        self.attributes = {name: tuple(self._attributes(name)) for name in names}
        self.references = {name: tuple(self._references(name)) for name in names}
        self.collections = {name: tuple(self._collections(name)) for name in names}

    @property
    def model(self) -> Model:
        return self.mapped.model

    def class_of(self, mapper: Mapper[Any]) -> str | None:
        """None if the model has no such class: a session may have others, of other bases."""
        name = mapper.class_.__name__
        return name if self.mappers.get(name) is mapper else None

    @cached_property
    def keys(self) -> Mapping[Table, AnyColumn]:
        """The key of each table of objects."""
        return {self.key(name).table: self.key(name) for name in self.model.classes}

    @cached_property
    def counted(self) -> frozenset[str]:
        """The tables in which any row is an object, or a link that counts as a change."""
        return frozenset(
            {table.fullname for table in self.keys} | {each.near.table.fullname for each in self.propagating}
        )

    @cached_property
    def tellable(self) -> frozenset[str]:
        """Classes that are subscribers, and those above them: by any of these somebody may be named."""
        subscribers = filter(self.model.is_subscriber, self.model.classes)
        return frozenset(above.name for name in subscribers for above in self.model.lineage(name))

    def key(self, cls: str) -> AnyColumn:
        table = self.mapped.tables[cls]
        return self.column(table.name, table.key)

    def column(self, table: str, name: str) -> AnyColumn:
        """By its name in the database; in a table of SQLAlchemy it may have another one."""
        return next(each for each in self._tables[table].columns if each.name == name)

    def discriminator(self, cls: str) -> tuple[AnyColumn, AnyColumn] | None:
        """Key and discriminator, in a table that has both: of a class below others that may be the table of a class
        above it."""
        said = self.mapped.tables[cls].discriminator
        if said is None:
            return None
        above = (self.key(each.name) for each in self.model.lineage(cls))
        return next((key, each) for key in above for each in key.table.columns if each.name == said.column)

    def members(self, family: str) -> list[str]:
        """Classes before those below them."""
        return sorted(self._view.members(family), key=lambda each: len(list(self.model.lineage(each))))

    def _lineage_tables(self, cls: str) -> Iterator[Table]:
        return (self.key(each.name).table for each in self.model.lineage(cls))

    def _attributes(self, cls: str) -> Iterator[tuple[str, AnyColumn]]:
        """What counts as an attribute, inherited ones too: values, and references that do not propagate."""
        for each in self.model.lineage(cls):
            table = self.mapped.tables[each.name]
            yield from ((name, self.column(table.name, column)) for name, column in table.columns.items())
        for reference in self.mapped.references_of(cls):
            link = self.mapped.link(reference)
            assert isinstance(link, ForeignKey)
            yield reference.name, self.column(link.table, link.column)

    def _references(self, cls: str) -> Iterator[tuple[AssociationColumns, AnyColumn]]:
        """Columns of the object's rows in which a link that propagates is."""
        names = {each.name for each in self.model.lineage(cls)}
        for trail in self.propagating:
            link = self.mapped.link(trail.way.relation.association)
            if isinstance(link, ForeignKey) and trail.way.relation.association.at(link.owner) in names:
                yield trail, self.column(link.table, link.column)

    def _collections(self, cls: str) -> Iterator[LinkCollection]:
        """Both directions of an association are among them, if the program has both."""
        for each in self.mappers[cls].relationships:
            if each.secondary is None or each.viewonly:
                continue
            own = each.synchronize_pairs[0][1]
            for trail in self.propagating:
                if own is trail.near or own is trail.far:
                    yield LinkCollection(each.key, trail, own is trail.near)

    def _trail(self, way: DirectedAssociation) -> AssociationColumns:
        table = way.relation.table
        return AssociationColumns(way, self.column(table, way.near), self.column(table, way.far))


def _all(mapper: Mapper[Any]) -> Iterator[Table]:
    """The tables of a class and of its links."""
    yield from (each for each in mapper.tables if isinstance(each, Table))
    for relationship in mapper.relationships:
        if isinstance(relationship.secondary, Table):
            yield relationship.secondary


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
            if said is None or place is None or values == [self.tables.mappers[cls].polymorphic_identity]:
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
