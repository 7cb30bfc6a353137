"""Reader of models in SQLAlchemy's declarative classes, which also give the mapping to tables.

Columns are attributes, except keys and the foreign keys of relationships. A relationship is an association; two that
are each other's `back_populates` are one. Its source is the class whose relationship is marked; without a mark the one
with the foreign key; for many to many the one whose name is first in the alphabet.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sqlalchemy import Column, Table
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Mapper, RelationshipProperty, registry
from sqlalchemy.orm.interfaces import RelationshipDirection

from tidings.objects.model.class_model import ANY_CARDINALITY, Cardinality, End
from tidings.objects.model.draft import (
    Draft,
    DraftAssociation,
    DraftAttribute,
    DraftClass,
    DraftEnd,
    DraftMark,
    DraftMarks,
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

OrmRelationship = RelationshipProperty[Any]


def read_sqlalchemy(base: Any) -> MappedModel:
    """Read the model and mapping of all classes of a declarative base, or of a `registry`."""
    classes = base if isinstance(base, registry) else getattr(base, "registry", None)
    if not isinstance(classes, registry):
        accepted = "a declarative base of SQLAlchemy, or a registry"
        raise ModelError([Finding("the model", "not a declarative base", repr(base)[:80], accepted)])
    try:
        classes.configure()
    except SQLAlchemyError as error:
        what = f"SQLAlchemy cannot configure it: {str(error).splitlines()[0]}"
        raise ModelError([Finding("the model", what)]) from error
    return _ModelBuilder(classes).build()


class _ModelBuilder:
    def __init__(self, classes: registry) -> None:
        self.mappers = sorted(classes.mappers, key=lambda mapper: mapper.class_.__name__)
        self.findings: list[Finding] = []
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
        at: str,
        what: str,
        received: str | None = None,
        accepted: str | None = None,
        hint: str | None = None,
    ) -> None:
        self.findings.append(Finding(at, what, received, accepted, hint))

    def _check_mapping(self, mapper: Mapper[Any]) -> None:
        table = mapper.local_table
        if not isinstance(table, Table):
            self._add_finding(_name(mapper), "not mapped to a table", type(table).__name__, "a table")
            return
        if mapper.concrete:
            accepted = "joined tables, or a single table with a discriminator"
            self._add_finding(_name(mapper), "concrete table inheritance is not supported", accepted=accepted)
        keys = [column.name for column in table.primary_key]
        if len(keys) != 1:
            hint = "an association with attributes is a class with a key of its own and two associations"
            self._add_finding(
                _name(mapper), "composite primary keys are not supported", ", ".join(keys), "one column", hint
            )
        discriminator = mapper.polymorphic_on
        if (
            self._shares_table(mapper)
            and discriminator is not None
            and getattr(discriminator, "table", None) is None
        ):
            self._add_finding(_name(mapper), "the discriminator is an expression", accepted="a column")

    def _select_relationships(self) -> Iterator[OrmRelationship]:
        """Yield one relationship per association, of the class that is its source."""
        seen: set[OrmRelationship] = set()
        for mapper in self.mappers:
            for each in _own_relationships(mapper):
                both = [each, *(self.back[each] for _ in range(each in self.back))]
                if each in seen or (each.viewonly and not self._is_marked(each)):
                    continue
                if each.viewonly:
                    self._add_finding(_location(each), "a mark on a viewonly relationship")
                    continue
                seen.update(both)
                yield self._select_direction(both)

    def _is_marked(self, each: OrmRelationship) -> bool:
        return any(isinstance(key, tuple) and key[0] == MARK_ATTRIBUTE for key in each.info)

    def _select_direction(self, both: list[OrmRelationship]) -> OrmRelationship:
        marked = [each for each in both if self._is_marked(each)]
        if len(marked) > 1:
            what, accepted = "both directions of an association are marked", "marks on one of them"
            self._add_finding(_location(marked[0]), what, _location(marked[1]), accepted)
        owning = [each for each in both if each.direction is RelationshipDirection.MANYTOONE]
        return (marked or owning or sorted(both, key=lambda each: (_name(each.parent), each.key)))[0]

    def _class(self, mapper: Mapper[Any]) -> DraftClass:
        name = _name(mapper)
        parents = (SourceText(_name(mapper.inherits), name),) if mapper.inherits is not None else ()
        key = DraftMark("stored", name, {"key": SourceText(_key(mapper), name)})
        return DraftClass(
            SourceText(name, name), tuple(self._attributes(mapper)), parents, _class_marks(mapper, key)
        )

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
        for each in mapper.column_attrs:
            column = each.columns[0]
            if not isinstance(column, Column) or column.primary_key or column in self.columns:
                continue
            if column.table is not mapper.local_table:
                continue
            if each.key not in inherited and column is not mapper.polymorphic_on:
                yield each.key, column

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
        return sum(each.local_table is mapper.local_table for each in self.mappers) > 1

    def _discriminator(self, mapper: Mapper[Any]) -> Discriminator | None:
        """Return the discriminator if several classes share a table; otherwise the table determines the class."""
        discriminator = mapper.polymorphic_on
        if not self._shares_table(mapper) or discriminator is None:
            return None
        column, value, table = discriminator.name, mapper.polymorphic_identity, discriminator.table
        if table is mapper.local_table:
            return Discriminator(str(column), value)
        key = next(str(each.name) for each in table.primary_key)
        return Discriminator(str(column), value, _table_name(table), key)

    def _link(self, each: OrmRelationship) -> LinkStorage | None:
        if each.secondary is not None:
            return self._link_table(each)
        pairs = each.synchronize_pairs
        if len(pairs) != 1 or not pairs[0][0].primary_key:
            received = ", ".join(f"{a} = {b}" for a, b in pairs) or None
            what, accepted = "not stored as one foreign key", "one column with the key of the other object"
            self._add_finding(_location(each), what, received, accepted)
            return None
        column = pairs[0][1]
        owner = End.SOURCE if each.direction is RelationshipDirection.MANYTOONE else End.TARGET
        return ForeignKey(_table_name(column.table), column.name, owner)

    def _link_table(self, each: OrmRelationship) -> LinkStorage | None:
        near, far = each.synchronize_pairs, each.secondary_synchronize_pairs or []
        if len(near) != 1 or len(far) != 1 or not isinstance(each.secondary, Table):
            accepted = "a table with one column for each end"
            self._add_finding(_location(each), "not stored in a link table", accepted=accepted)
            return None
        return LinkTable(_table_name(each.secondary), near[0][1].name, far[0][1].name)


def _own_relationships(mapper: Mapper[Any]) -> list[OrmRelationship]:
    """List the relationships of a class itself, sorted by name."""
    inherited = set(mapper.inherits.relationships.keys()) if mapper.inherits is not None else set()
    own = (each for each in mapper.relationships if each.key not in inherited)
    return sorted(own, key=lambda each: each.key)


def _pair_relationships(mappers: list[Mapper[Any]]) -> Iterator[tuple[OrmRelationship, OrmRelationship]]:
    """Yield relationships with their reverse; it is enough if one of the two declares the other."""
    for mapper in mappers:
        for each in _own_relationships(mapper):
            name = each.back_populates or _backref(each)
            other = each.mapper.relationships.get(name) if name else None
            if other is not None and not (each.viewonly or other.viewonly):
                yield from ((each, other), (other, each))


def _backref(each: OrmRelationship) -> str | None:
    backref = each.backref
    return backref if backref is None or isinstance(backref, str) else backref[0]


def _name(mapper: Mapper[Any]) -> str:
    return mapper.class_.__name__


def _location(each: OrmRelationship) -> str:
    return f"{_name(each.parent)}.{each.key}"


def _association_name(each: OrmRelationship) -> str:
    return str(each.info.get((MARK_ATTRIBUTE, "name"), each.key))


def _key(mapper: Mapper[Any]) -> str:
    return next(str(column.name) for column in mapper.local_table.primary_key)


def _table_name(table: Any) -> str:
    return str(table.fullname)


def _foreign_columns(each: OrmRelationship) -> list[Any]:
    return [] if each.secondary is not None else [column for _, column in each.synchronize_pairs]


def _class_marks(mapper: Mapper[Any], key: DraftMark) -> DraftMarks:
    name = _name(mapper)
    marks = {"stored": key}
    for mark, values in vars(mapper.class_).get(MARK_ATTRIBUTE, {}).items():
        before = marks.get(mark)
        tags = {tag: SourceText(str(value), name) for tag, value in values.items()}
        marks[mark] = DraftMark(mark, name, {**(before.tags if before else {}), **tags})
    return tuple(marks.values())


def _association(
    each: OrmRelationship, back: OrmRelationship | None, link: LinkStorage | None
) -> DraftAssociation:
    at = _location(each)
    marks = tuple(
        DraftMark(key[1], at, {tag: SourceText(str(value), at) for tag, value in tags.items()})
        for key, tags in each.info.items()
        if isinstance(key, tuple) and key[0] == MARK_ATTRIBUTE and key[1] not in ("", "name")
    )
    source = DraftEnd(
        SourceText(_name(each.parent), at), _back_cardinality(each, back), back.key if back else None
    )
    target = DraftEnd(SourceText(_name(each.mapper), at), _cardinality(each), each.key)
    owner = link.owner if isinstance(link, ForeignKey) else None
    return DraftAssociation(
        _association_name(each), at, source, target, marks, owner, has_table=owner is None
    )


def _cardinality(each: OrmRelationship) -> Cardinality:
    """Return the cardinality at the target of a relationship."""
    if each.uselist:
        return ANY_CARDINALITY
    if each.direction is RelationshipDirection.MANYTOONE:
        required = all(not column.nullable for _, column in each.synchronize_pairs)
        return Cardinality(1 if required else 0, 1)
    return Cardinality(0, 1)


def _back_cardinality(each: OrmRelationship, back: OrmRelationship | None) -> Cardinality:
    """Return the cardinality at the source: that of the reverse relationship, or what the foreign key implies."""
    if back is not None:
        return _cardinality(back)
    if each.direction is RelationshipDirection.ONETOMANY:
        required = all(not column.nullable for _, column in each.synchronize_pairs)
        return Cardinality(1 if required else 0, 1)
    unique = each.secondary is None and all(column.unique for _, column in each.synchronize_pairs)
    return Cardinality(0, 1) if unique else ANY_CARDINALITY
