"""Reader of models in SQLAlchemy's declarative classes, which also give the mapping to tables.

Columns are attributes, except keys and the foreign keys of relationships. A relationship is an association; two that
are each other's `back_populates` are one. Its source is the class whose relationship is marked; without a mark the one
with the foreign key; for many to many the one whose name is first in the alphabet.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from types import NoneType
from typing import Any

from sqlalchemy import BinaryExpression, Column, Table
from sqlalchemy.engine.default import DefaultDialect
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Mapper, RelationshipProperty, registry
from sqlalchemy.orm.interfaces import RelationshipDirection

from tidings.core.suggest import join_words
from tidings.objects.model.class_model import ANY_CARDINALITY, Cardinality, End
from tidings.objects.model.draft import (
    Draft,
    DraftAssociation,
    DraftAttribute,
    DraftClass,
    DraftEnd,
    DraftMark,
    Finding,
    ModelError,
    SourceText,
)
from tidings.objects.model.notation import normalize_type
from tidings.objects.model.table_mapping import (
    ClassTable,
    Discriminator,
    ForeignKey,
    LinkStorage,
    LinkTable,
    MappedModel,
)
from tidings.objects.model.validation import validate_draft
from tidings.objects.readers.sqlalchemy_marks import MARK_ATTRIBUTE

MAX_SHOWN = 80
OrmRelationship = RelationshipProperty[Any]


def read_sqlalchemy(base: Any) -> MappedModel:
    """Read the model and mapping of all classes of a declarative base, or of a `registry`."""
    classes = base if isinstance(base, registry) else getattr(base, "registry", None)
    if not isinstance(classes, registry):
        accepted = "a declarative base of SQLAlchemy, or a registry"
        raise ModelError([Finding("the model", "not a declarative base", repr(base)[:MAX_SHOWN], accepted)])
    try:
        classes.configure(cascade=True)
        builder = _ModelBuilder(classes)
    except SQLAlchemyError as error:
        message = f"SQLAlchemy cannot configure it: {str(error).splitlines()[0]}"
        raise ModelError([Finding("the model", message)]) from error
    return builder.build()


class _ModelBuilder:
    def __init__(self, classes: registry) -> None:
        self.mappers = sorted(classes.mappers, key=lambda mapper: mapper.class_.__name__)
        self.findings: list[Finding] = []
        self.classes_by_table: dict[Any, list[str]] = {}
        for mapper in self.mappers:
            self.classes_by_table.setdefault(mapper.local_table, []).append(_name(mapper))
        self.back = dict(_pair_relationships(self.mappers))
        self.associations = list(self._select_relationships())
        self.columns = {column for each in self.associations for column in _foreign_columns(each)}

    def build(self) -> MappedModel:
        for mapper in self.mappers:
            self._check_mapping(mapper)
        if self.findings:
            raise ModelError(self.findings)
        links = {id(each): self._link(each) for each in self.associations}
        draft = Draft(
            tuple(map(self._class, self.mappers)),
            tuple(_association(each, self.back.get(each), links[id(each)]) for each in self.associations),
            tuple(self.findings),
        )
        model = validate_draft(draft)
        tables = {_name(mapper): self._table(mapper) for mapper in self.mappers}
        by_name = {
            (_name(each.parent), _association_name(each)): links[id(each)] for each in self.associations
        }
        return MappedModel(model, tables, {key: link for key, link in by_name.items() if link is not None})

    def _add_finding(
        self,
        location: str,
        message: str,
        received: str | None = None,
        accepted: str | None = None,
        hint: str | None = None,
    ) -> None:
        self.findings.append(Finding(location, message, received, accepted, hint))

    def _check_mapping(self, mapper: Mapper[Any]) -> None:
        table = mapper.local_table
        if not isinstance(table, Table):
            self._add_finding(_name(mapper), "not mapped to a table", type(table).__name__, "a table")
            return
        if mapper.concrete:
            accepted = "joined tables, or a single table with a discriminator"
            self._add_finding(_name(mapper), "concrete table inheritance is not supported", accepted=accepted)
        self._check_key(mapper, table)
        dotted = [name for name in (table.name, *(column.name for column in table.columns)) if "." in name]
        if dotted:
            self._add_finding(_name(mapper), "a dot in a name is not supported", ", ".join(dotted))
        if self._shares_table(mapper):
            self._check_discriminator(mapper)

    def _check_key(self, mapper: Mapper[Any], table: Table) -> None:
        location, keys = _name(mapper), [column.name for column in table.primary_key]
        if not keys:
            self._add_finding(location, "the table has no primary key", accepted="one column")
        elif len(keys) > 1:
            hint = "an association with attributes is a class with a key of its own and two associations"
            message = "composite primary keys are not supported"
            self._add_finding(location, message, ", ".join(keys), "one column", hint)
        elif mapper.inherits is None and list(mapper.primary_key) != list(table.primary_key):
            received = ", ".join(column.name for column in mapper.primary_key)
            self._add_finding(
                location, "the mapper has another primary key than the table", received, keys[0]
            )

    def _check_discriminator(self, mapper: Mapper[Any]) -> None:
        location, discriminator, names = (
            _name(mapper),
            mapper.polymorphic_on,
            self.classes_by_table[mapper.local_table],
        )
        if discriminator is None and location != names[0]:
            message = f"several classes share the table {mapper.local_table} without a discriminator"
            self._add_finding(
                location, message, join_words(names), "polymorphic_on, or a table for each class"
            )
        elif discriminator is not None and getattr(discriminator, "table", None) is None:
            self._add_finding(location, "the discriminator is an expression", accepted="a column")
        elif discriminator is not None and not isinstance(value := _identity(mapper), str | int | NoneType):
            self._add_finding(location, "not a value of a discriminator", repr(value), "a text or an integer")

    def _select_relationships(self) -> Iterator[OrmRelationship]:
        """Yield one relationship per association, of the class that is its source."""
        seen: set[OrmRelationship] = set()
        for mapper in self.mappers:
            for relationship in _own_relationships(mapper):
                both = [relationship, *(self.back[relationship] for _ in range(relationship in self.back))]
                if relationship in seen or (relationship.viewonly and not self._is_marked(relationship)):
                    continue
                if relationship.viewonly:
                    self._add_finding(_location(relationship), "a mark on a viewonly relationship")
                    continue
                seen.update(both)
                yield self._select_direction(both)

    def _is_marked(self, relationship: OrmRelationship) -> bool:
        """Return whether a relationship has marks, and report entries that only look like marks."""
        entries = _mark_entries(relationship)
        for key, tags in entries:
            if len(key) != 2 or not (isinstance(tags, Mapping) or key[1] == "name"):
                accepted = "info=implicit(), propagates() or association()"
                self._add_finding(_location(relationship), "not marks", f"{key!r}: {tags!r}", accepted)
        return bool(entries)

    def _select_direction(self, both: list[OrmRelationship]) -> OrmRelationship:
        marked = [relationship for relationship in both if self._is_marked(relationship)]
        if len(marked) > 1:
            message, accepted = "both directions of an association are marked", "marks on one of them"
            self._add_finding(_location(marked[0]), message, _location(marked[1]), accepted)
        owning = [
            relationship for relationship in both if relationship.direction is RelationshipDirection.MANYTOONE
        ]
        return (
            marked
            or owning
            or sorted(both, key=lambda relationship: (_name(relationship.parent), relationship.key))
        )[0]

    def _class(self, mapper: Mapper[Any]) -> DraftClass:
        name = _name(mapper)
        parents = (SourceText(_name(mapper.inherits), name),) if mapper.inherits is not None else ()
        attributes, marks = tuple(self._attributes(mapper)), tuple(self._class_marks(mapper))
        return DraftClass(SourceText(name, name), attributes, parents, marks)

    def _class_marks(self, mapper: Mapper[Any]) -> Iterable[DraftMark]:
        """Build the marks of a class, and of its mixins and abstract bases: those of a mapped parent are its own.

        The key is named by its attribute, since another attribute may have the name of the key's column.
        """
        name, mapped_above = (
            _name(mapper),
            mapper.inherits.class_.__mro__ if mapper.inherits is not None else (),
        )
        key = mapper.get_property_by_column(next(iter(mapper.local_table.primary_key))).key
        tags: dict[str, dict[str, SourceText]] = {"stored": {"key": SourceText(key, name)}}
        for cls in reversed([each for each in mapper.class_.__mro__ if each not in mapped_above]):
            marks = vars(cls).get(MARK_ATTRIBUTE, {})
            if not isinstance(marks, Mapping):
                accepted = "the decorators subscriber and stored"
                self._add_finding(name, "not marks", repr(marks)[:MAX_SHOWN], accepted)
                continue
            for mark, values in marks.items():
                written = {tag: SourceText(str(value), name) for tag, value in values.items()}
                tags[mark] = tags.get(mark, {}) | written
        return (DraftMark(mark, name, values) for mark, values in tags.items())

    def _attributes(self, mapper: Mapper[Any]) -> Iterator[DraftAttribute]:
        for key, column in self._own_columns(mapper):
            name = SourceText(key, f"{_name(mapper)}.{key}")
            yield DraftAttribute(name, normalize_type(type(column.type).__name__))

    def _own_columns(self, mapper: Mapper[Any]) -> Iterator[tuple[str, Column[Any]]]:
        """Yield attributes with their columns: no keys, no foreign keys of relationships, no discriminator.

        A class whose parent has a table of its own also gets columns that sibling classes of the parent put into that
        table. They are not attributes of the class.
        """
        inherited = set(mapper.inherits.column_attrs.keys()) if mapper.inherits is not None else set()
        for attribute in mapper.column_attrs:
            column = attribute.columns[0]
            if not isinstance(column, Column) or column.primary_key or column in self.columns:
                continue
            if column.table is not mapper.local_table:
                continue
            if attribute.key not in inherited and column is not mapper.polymorphic_on:
                yield attribute.key, column

    def _table(self, mapper: Mapper[Any]) -> ClassTable:
        columns = {key: column.name for key, column in self._own_columns(mapper)}
        above = mapper.inherits
        is_joined = above is not None and above.local_table is not mapper.local_table
        return ClassTable(
            _table_name(mapper.local_table),
            _key(mapper),
            columns,
            _key(above) if above is not None and is_joined else None,
            self._discriminator(mapper),
        )

    def _shares_table(self, mapper: Mapper[Any]) -> bool:
        return len(self.classes_by_table[mapper.local_table]) > 1

    def _discriminator(self, mapper: Mapper[Any]) -> Discriminator | None:
        """Return the discriminator if several classes share a table; otherwise the table determines the class."""
        discriminator = mapper.polymorphic_on
        if not self._shares_table(mapper) or discriminator is None:
            return None
        column, value, table = discriminator.name, _identity(mapper), discriminator.table
        if table is mapper.local_table:
            return Discriminator(str(column), value)
        key = next(str(each.name) for each in table.primary_key)
        return Discriminator(str(column), value, _table_name(table), key)

    def _link(self, relationship: OrmRelationship) -> LinkStorage | None:
        joins = [join for join in (relationship.primaryjoin, relationship.secondaryjoin) if join is not None]
        if self._is_marked(relationship) and not all(isinstance(join, BinaryExpression) for join in joins):
            message, received = "a marked relationship has a further condition", " and ".join(map(str, joins))
            accepted = "a foreign key, or a table of links, without conditions"
            self._add_finding(_location(relationship), message, received, accepted)
        if relationship.secondary is not None:
            return self._link_table(relationship)
        pairs = relationship.synchronize_pairs
        if len(pairs) != 1 or not pairs[0][0].primary_key:
            shown = ", ".join(f"{a} = {b}" for a, b in pairs) or None
            message, accepted = "not stored as one foreign key", "one column with the key of the other object"
            self._add_finding(_location(relationship), message, shown, accepted)
            return None
        column = pairs[0][1]
        owner = End.SOURCE if relationship.direction is RelationshipDirection.MANYTOONE else End.TARGET
        return ForeignKey(_table_name(column.table), column.name, owner)

    def _link_table(self, relationship: OrmRelationship) -> LinkStorage | None:
        near, far = relationship.synchronize_pairs, relationship.secondary_synchronize_pairs or []
        wrong = [pair for pair in (*near, *far) if not pair[0].primary_key]
        if len(near) != 1 or len(far) != 1 or wrong or not isinstance(relationship.secondary, Table):
            received = ", ".join(f"{a} = {b}" for a, b in wrong) or None
            accepted = "a table with one column for each end, which refers to its key"
            self._add_finding(_location(relationship), "not stored in a link table", received, accepted)
            return None
        return LinkTable(_table_name(relationship.secondary), near[0][1].name, far[0][1].name)


def _own_relationships(mapper: Mapper[Any]) -> list[OrmRelationship]:
    """List the relationships of a class itself, sorted by name."""
    inherited = set(mapper.inherits.relationships.keys()) if mapper.inherits is not None else set()
    own = (relationship for relationship in mapper.relationships if relationship.key not in inherited)
    return sorted(own, key=lambda relationship: relationship.key)


def _pair_relationships(mappers: list[Mapper[Any]]) -> Iterator[tuple[OrmRelationship, OrmRelationship]]:
    """Yield relationships with their reverse; it is enough if one of the two declares the other."""
    for mapper in mappers:
        for relationship in _own_relationships(mapper):
            name = relationship.back_populates or _backref(relationship)
            other = relationship.mapper.relationships.get(name) if name else None
            if other is not None and not (relationship.viewonly or other.viewonly):
                yield from ((relationship, other), (other, relationship))


def _backref(relationship: OrmRelationship) -> str | None:
    backref = relationship.backref
    return backref if backref is None or isinstance(backref, str) else backref[0]


def _name(mapper: Mapper[Any]) -> str:
    return mapper.class_.__name__


def _location(relationship: OrmRelationship) -> str:
    return f"{_name(relationship.parent)}.{relationship.key}"


def _association_name(relationship: OrmRelationship) -> str:
    return str(relationship.info.get((MARK_ATTRIBUTE, "name"), relationship.key))


def _key(mapper: Mapper[Any]) -> str:
    return next(str(column.name) for column in mapper.local_table.primary_key)


def _table_name(table: Any) -> str:
    return str(table.fullname)


def _foreign_columns(relationship: OrmRelationship) -> list[Any]:
    return (
        [] if relationship.secondary is not None else [column for _, column in relationship.synchronize_pairs]
    )


def _mark_entries(relationship: OrmRelationship) -> list[tuple[tuple[Any, ...], Any]]:
    return [
        (key, tags)
        for key, tags in relationship.info.items()
        if isinstance(key, tuple) and key[:1] == (MARK_ATTRIBUTE,)
    ]


def _identity(mapper: Mapper[Any]) -> Any:
    """Return the stored value of a class's discriminator: enumerations are stored by name."""
    value, discriminator = mapper.polymorphic_identity, mapper.polymorphic_on
    if isinstance(value, Enum) and discriminator is not None:
        process = discriminator.type.bind_processor(DefaultDialect())
        return value if process is None else process(value)
    return value


def _association(
    relationship: OrmRelationship, back: OrmRelationship | None, link: LinkStorage | None
) -> DraftAssociation:
    location = _location(relationship)
    marks = tuple(
        DraftMark(key[1], location, {tag: SourceText(str(value), location) for tag, value in tags.items()})
        for key, tags in _mark_entries(relationship)
        if key[1] not in ("", "name")
    )
    source = DraftEnd(
        SourceText(_name(relationship.parent), location),
        _back_cardinality(relationship, back),
        back.key if back else None,
    )
    target = DraftEnd(
        SourceText(_name(relationship.mapper), location), _cardinality(relationship), relationship.key
    )
    owner = link.owner if isinstance(link, ForeignKey) else None
    return DraftAssociation(
        _association_name(relationship), location, source, target, marks, owner, has_table=owner is None
    )


def _cardinality(relationship: OrmRelationship) -> Cardinality:
    """Return the cardinality at the target of a relationship."""
    if relationship.uselist:
        return ANY_CARDINALITY
    if relationship.direction is RelationshipDirection.MANYTOONE:
        required = all(not column.nullable for _, column in relationship.synchronize_pairs)
        return Cardinality(1 if required else 0, 1)
    return Cardinality(0, 1)


def _back_cardinality(relationship: OrmRelationship, back: OrmRelationship | None) -> Cardinality:
    """Return the cardinality at the source, from the reverse relationship or implied by the foreign key."""
    if back is not None:
        return _cardinality(back)
    if relationship.direction is RelationshipDirection.ONETOMANY:
        required = all(not column.nullable for _, column in relationship.synchronize_pairs)
        return Cardinality(1 if required else 0, 1)
    pairs = relationship.synchronize_pairs
    unique = relationship.secondary is None and all(
        column.unique or column.primary_key for _, column in pairs
    )
    return Cardinality(0, 1) if unique else ANY_CARDINALITY
