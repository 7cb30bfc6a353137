"""State of a database for the session listener: a model's tables in SQLAlchemy, and rows, links, classes and labels.

Queries are for many objects at once. The paper's aspect queries object by object, which made it slow (section 5.1).
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
        """The foreign key column; None in a link table."""
        name = self.way.relation.reference
        return None if name is None else self.far if self.far.name == name else self.near

    @property
    def is_in_near_row(self) -> bool:
        """Whether the object's own row has the link: only such links exist when the object is inserted."""
        return self.reference is self.far


@dataclass(frozen=True, slots=True)
class LinkCollection:
    """A relationship whose collection is stored in the link table of a propagating association."""

    key: str
    association: AssociationColumns
    is_near: bool
    """Whether changes propagate from the object with the collection."""


class MappedTables:
    """Tables, columns and mappers of a declarative base's model."""

    def __init__(self, base: Any) -> None:
        self.mapped: MappedModel = read_sqlalchemy(base)
        self._view = RelationalView(self.mapped)
        classes: registry = base if isinstance(base, registry) else base.registry
        self.mappers = {mapper.class_.__name__: mapper for mapper in classes.mappers}
        self._tables = {
            table.fullname: table for mapper in self.mappers.values() for table in _list_tables(mapper)
        }
        self.propagating = tuple(map(self._build_columns, self._view.propagating()))
        self.implicit = tuple(map(self._build_columns, self._view.implicit()))
        names = self.model.classes
        self.tables_of = {name: frozenset(self._lineage_tables(name)) for name in names}
        self.attributes = {name: tuple(self._list_attributes(name)) for name in names}
        self.references = {name: tuple(self._list_references(name)) for name in names}
        self.collections = {name: tuple(self._list_collections(name)) for name in names}

    @property
    def model(self) -> Model:
        return self.mapped.model

    def class_of(self, mapper: Mapper[Any]) -> str | None:
        """Return the class of a mapper; None if it is of another base."""
        name = mapper.class_.__name__
        return name if self.mappers.get(name) is mapper else None

    @cached_property
    def keys(self) -> Mapping[Table, AnyColumn]:
        """Key column of each table of objects."""
        return {self.key(name).table: self.key(name) for name in self.model.classes}

    @cached_property
    def tracked_tables(self) -> frozenset[str]:
        """Tables whose rows are objects, or links that count as changes."""
        return frozenset(
            {table.fullname for table in self.keys} | {each.near.table.fullname for each in self.propagating}
        )

    @cached_property
    def subscriber_classes(self) -> frozenset[str]:
        """Subscriber classes and their ancestors: a subscriber may be named by any of them."""
        subscribers = filter(self.model.is_subscriber, self.model.classes)
        return frozenset(ancestor.name for name in subscribers for ancestor in self.model.lineage(name))

    def key(self, cls: str) -> AnyColumn:
        table = self.mapped.tables[cls]
        return self.column(table.name, table.key)

    def column(self, table: str, name: str) -> AnyColumn:
        """Find a column by its name in the database; SQLAlchemy may call it differently."""
        return next(each for each in self._tables[table].columns if each.name == name)

    def discriminator(self, cls: str) -> tuple[AnyColumn, AnyColumn] | None:
        """Return key and discriminator of the table that has both, which may be that of an ancestor."""
        discriminator = self.mapped.tables[cls].discriminator
        if discriminator is None:
            return None
        keys = (self.key(column.name) for column in self.model.lineage(cls))
        return next(
            (key, column)
            for key in keys
            for column in key.table.columns
            if column.name == discriminator.column
        )

    def members(self, family: str) -> list[str]:
        """List a class and its descendants, ancestors first."""
        return sorted(self._view.members(family), key=lambda each: len(list(self.model.lineage(each))))

    def _lineage_tables(self, cls: str) -> Iterator[Table]:
        return (self.key(each.name).table for each in self.model.lineage(cls))

    def _list_attributes(self, cls: str) -> Iterator[tuple[str, AnyColumn]]:
        """Yield attributes, inherited ones included, and references that do not propagate."""
        for cls_above in self.model.lineage(cls):
            table = self.mapped.tables[cls_above.name]
            yield from ((name, self.column(table.name, column)) for name, column in table.columns.items())
        for reference in self.mapped.references_of(cls):
            link = self.mapped.link(reference)
            assert isinstance(link, ForeignKey)
            yield reference.name, self.column(link.table, link.column)

    def _list_references(self, cls: str) -> Iterator[tuple[AssociationColumns, AnyColumn]]:
        """Yield the columns of the object's rows with propagating links."""
        names = {each.name for each in self.model.lineage(cls)}
        for association in self.propagating:
            link = self.mapped.link(association.way.relation.association)
            if isinstance(link, ForeignKey) and association.way.relation.association.at(link.owner) in names:
                yield association, self.column(link.table, link.column)

    def _list_collections(self, cls: str) -> Iterator[LinkCollection]:
        """Yield collections in link tables, in both directions if the program has both."""
        for relationship in self.mappers[cls].relationships:
            if relationship.secondary is None or relationship.viewonly:
                continue
            column = relationship.synchronize_pairs[0][1]
            for association in self.propagating:
                if column is association.near or column is association.far:
                    yield LinkCollection(relationship.key, association, column is association.near)

    def _build_columns(self, way: DirectedAssociation) -> AssociationColumns:
        table = way.relation.table
        return AssociationColumns(way, self.column(table, way.near), self.column(table, way.far))


def _list_tables(mapper: Mapper[Any]) -> Iterator[Table]:
    """Yield the tables of a class and of its links."""
    yield from (each for each in mapper.tables if isinstance(each, Table))
    for relationship in mapper.relationships:
        if isinstance(relationship.secondary, Table):
            yield relationship.secondary


KEYS_PER_QUERY = 500
"""Keys in one statement: older versions of SQLite accept 999 parameters."""

SnapshotRow = dict[AnyColumn, Any]


class DatabaseSnapshot:
    """The database as a connection sees it at one moment; results are cached."""

    def __init__(self, tables: MappedTables, connection: Connection) -> None:
        self.tables, self.connection = tables, connection
        self._keys: dict[Object, Any] = {}
        self._texts: dict[str, Callable[[Any], Any] | None] = {}
        self._links: dict[AssociationColumns, dict[Object, set[Object]]] = {}
        self._classes: dict[Object, str] = {}

    def object(self, family: str, key: Any) -> Object:
        """Return the object of a key, as text in the database's form, which may differ from Python's (UUIDs)."""
        if family not in self._texts:
            dialect = self.connection.dialect
            stored = self.tables.key(family).type.dialect_impl(dialect)
            self._texts[family] = stored.bind_processor(dialect)
        convert = self._texts[family]
        result = Object(family, str(key if convert is None else convert(key)))
        self._keys[result] = key
        return result

    def links(
        self, association: AssociationColumns, objects: Iterable[Object]
    ) -> Mapping[Object, set[Object]]:
        """Find the objects that each object is linked to."""
        links = self._links.setdefault(association, {})
        missing = [subject for subject in objects if subject not in links]
        links.update((subject, set()) for subject in missing)
        for near, far in self._select(association.near, (association.far,), missing):
            if far is not None:
                links[self.object(association.way.near_family, near)].add(
                    self.object(association.way.far_family, far)
                )
        return links

    def rows(self, classes: Mapping[Object, str]) -> Mapping[Object, SnapshotRow]:
        """Read attributes and references of objects of known classes; missing objects are left out."""
        rows: dict[Object, SnapshotRow] = {}
        for table, key in self.tables.keys.items():
            objects = [subject for subject, cls in classes.items() if table in self.tables.tables_of[cls]]
            columns = dict.fromkeys(
                column
                for cls in {classes[subject] for subject in objects}
                for column in self._list_columns(cls)
                if column.table is table
            )
            for key_value, *values in self._select(key, (*columns,), objects):
                subject = self.object(objects[0].family, key_value)  # a table has objects of one family
                rows.setdefault(subject, {}).update(zip(columns, values, strict=True))
        return rows

    def _list_columns(self, cls: str) -> Iterator[AnyColumn]:
        yield from (column for _, column in self.tables.attributes[cls])
        yield from (column for _, column in self.tables.references[cls])

    def classes(self, objects: Iterable[Object]) -> Mapping[Object, str]:
        """Find the deepest class with a row of each object; missing objects are left out."""
        missing: dict[str, list[Object]] = {}
        for subject in objects:
            if subject not in self._classes:
                missing.setdefault(subject.family, []).append(subject)
        for family, batch in missing.items():
            for cls in self.tables.members(family):
                self._classes.update((subject, cls) for subject in self._find_members(cls, batch))
        return self._classes

    def _find_members(self, cls: str, objects: Sequence[Object]) -> Iterator[Object]:
        """Yield the objects with a row of the class; a shared table has a discriminator."""
        family, discriminator = self.tables.model.family(cls), self.tables.mapped.tables[cls].discriminator
        columns = None if cls == family else self.tables.discriminator(cls)
        key, *others = (self.tables.key(cls),) if columns is None else columns
        for key_value, *values in self._select(key, others, objects):
            if (
                discriminator is None
                or columns is None
                or values == [self.tables.mappers[cls].polymorphic_identity]
            ):
                yield self.object(family, key_value)

    def labels(self, objects: Iterable[Object]) -> Mapping[Object, str]:
        """Return the label of each object, or its key if its class has none; missing objects are left out."""
        labels: dict[Object, str] = {}
        by_column: dict[AnyColumn, list[Object]] = {}
        for subject, cls in self._find_classes(objects).items():
            label = self.tables.model.label_of(cls)
            labels[subject] = str(subject.key)
            if label is not None:
                by_column.setdefault(self.tables.column(*self.tables.mapped.column(cls, label)), []).append(
                    subject
                )
        for column, batch in by_column.items():
            for key, label in self._select(self._get_key_column(column), (column,), batch):
                subject = self.object(batch[0].family, key)
                labels[subject] = str(label or subject.key)
        return labels

    def _find_classes(self, objects: Iterable[Object]) -> Mapping[Object, str]:
        with_key = [subject for subject in objects if self._convert_key(subject)]
        classes = self.classes(with_key)
        return {subject: classes[subject] for subject in with_key if subject in classes}

    def _convert_key(self, subject: Object) -> bool:
        """Convert the key of a watching subscriber; a text may not convert to the type of the key."""
        if subject not in self._keys:
            try:
                self._keys[subject] = self.tables.key(subject.family).type.python_type(subject.key)
            except (NotImplementedError, TypeError, ValueError):
                return False
        return True

    def _get_key_column(self, column: AnyColumn) -> AnyColumn:
        table = column.table
        assert isinstance(table, Table)
        return self.tables.keys[table]

    def _select(
        self, key: AnyColumn, columns: Sequence[AnyColumn], objects: Sequence[Object]
    ) -> Iterator[Sequence[Any]]:
        for start in range(0, len(objects), KEYS_PER_QUERY):
            keys = [self._keys[subject] for subject in objects[start : start + KEYS_PER_QUERY]]
            yield from self.connection.execute(select(key, *columns).where(key.in_(keys)))
