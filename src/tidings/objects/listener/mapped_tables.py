"""Where a model lies, as tables and columns of SQLAlchemy, and how its classes are mapped."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from sqlalchemy import Column, Table
from sqlalchemy.orm import Mapper, registry

from tidings.objects.model.class_model import Model
from tidings.objects.model.relational_view import DirectedAssociation, RelationalView
from tidings.objects.model.table_mapping import ForeignKey, MappedModel
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
