"""Mapping of a model to tables: a table for each class, a column or a link table for each association.

SQLAlchemy classes bring their mapping along (`sqlalchemy_reader`). Diagrams do not, so theirs follows a convention:

    class LearningMaterial        table learning_material, key id, a column for each attribute
    a subclass                    a table of its own; its key is the key of the parent's row
    many to many, `used in`       table used_in with learning_material_id and course_id
    one at an end, `gives`        column gives_id in the table at the other end, or lecturer_id if that end has a role

Tagged values override it: table, key, column, source_column, target_column.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from tidings.core.suggest import printable
from tidings.objects.model.class_model import Association, End, Model
from tidings.objects.model.draft import (
    DEFAULT_KEY,
    Draft,
    DraftAssociation,
    DraftClass,
    DraftEnd,
    DraftMarks,
    Finding,
    ModelError,
    SourceLocation,
    find_tag,
)


@dataclass(frozen=True, slots=True)
class Discriminator:
    """Column that distinguishes the classes of one table, and its value for a class; None if it has no own rows.

    If the classes share a subtable, the column is in the table of the parent class: `table`, with its `key` column.
    """

    column: str
    value: str | int | None
    table: str | None = None
    key: str | None = None


@dataclass(frozen=True, slots=True)
class ClassTable:
    """Table of a class; `columns` maps its own attributes, inherited ones are in the parent's table.

    `parent_key` is the column of the parent's table that `key` refers to, if the parent has another table.
    """

    name: str
    key: str
    columns: Mapping[str, str] = field(default_factory=dict)
    parent_key: str | None = None
    discriminator: Discriminator | None = None


@dataclass(frozen=True, slots=True)
class LinkTable:
    """A table with a row for each link."""

    name: str
    source: str
    target: str


@dataclass(frozen=True, slots=True)
class ForeignKey:
    """A column in the table of the class at the end `owner`, with the key of the object at the other end."""

    table: str
    column: str
    owner: End


LinkStorage = LinkTable | ForeignKey


@dataclass(frozen=True, slots=True)
class MappedModel:
    """A model and its storage: tables by class, links by source class and name of the association."""

    model: Model
    tables: Mapping[str, ClassTable]
    links: Mapping[tuple[str, str], LinkStorage]

    def link(self, association: Association) -> LinkStorage:
        return self.links[association.source, association.name]

    def references_of(self, cls: str) -> tuple[Association, ...]:
        """Return the associations that count as attributes of a class: foreign keys that do not propagate."""
        names = {association.name for association in self.model.lineage(cls)}
        return tuple(
            association
            for association in self.model.associations
            if association.propagates is None
            and isinstance(link := self.link(association), ForeignKey)
            and association.at(link.owner) in names
        )

    def column(self, cls: str, attribute: str) -> tuple[str, str]:
        """Return table and column of an attribute, which may be inherited."""
        owner = next(
            each.name
            for each in self.model.lineage(cls)
            if attribute in {own.name for own in each.attributes}
        )
        return self.tables[owner].name, self.tables[owner].columns[attribute]


def map_by_convention(draft: Draft, model: Model) -> MappedModel:
    """Map a validated draft to tables by the convention; raise `ModelError` if tables or columns collide."""
    by_name = {each.name.text: each for each in draft.classes}
    keys = _keys(model, by_name)
    tables = {name: _class_table(model, by_name[name], keys) for name in model.classes}
    links = {
        (draft_association.source.cls.text, association.name): _link(draft_association, association, tables)
        for draft_association, association in zip(draft.associations, model.associations, strict=True)
    }
    mapped = MappedModel(model, tables, links)
    findings = (*_collisions(draft, mapped), *_misused_column_tags(draft))
    if findings:
        raise ModelError(findings)
    return mapped


def _class_table(model: Model, draft: DraftClass, keys: Mapping[str, str]) -> ClassTable:
    cls = model.classes[draft.name.text]
    own = {each.name for each in cls.attributes}
    columns = {
        attribute.name.text: _tag(attribute.marks, "column") or attribute.name.text
        for attribute in draft.attributes
        if attribute.name.text in own
    }
    parent_key = None if cls.parent is None else keys[cls.parent]
    table = _tag(draft.marks, "table") or to_snake_case(cls.name)
    return ClassTable(table, keys[cls.name], columns, parent_key)


def _keys(model: Model, drafts: Mapping[str, DraftClass]) -> dict[str, str]:
    """Return the key of each class: its own, or its parent's."""
    keys: dict[str, str] = {}
    for name in model.classes:
        path: list[str] = []
        above: str | None = name
        while above is not None and above not in keys:
            path.append(above)
            above = model.classes[above].parent
        key = DEFAULT_KEY if above is None else keys[above]
        for cls in reversed(path):
            key = keys[cls] = _tag(drafts[cls].marks, "key") or key
    return keys


def _link(draft: DraftAssociation, association: Association, tables: Mapping[str, ClassTable]) -> LinkStorage:
    owner = draft.owning_end
    if owner is None:
        return _link_table(draft)
    far = draft.target if owner is End.SOURCE else draft.source
    column = _tag(draft.marks, "column") or f"{to_snake_case(far.role or association.name)}_id"
    return ForeignKey(tables[association.at(owner)].name, column, owner)


def _link_table(draft: DraftAssociation) -> LinkTable:
    table = _tag(draft.marks, "table") or _link_table_name(draft)
    is_loop = draft.source.cls.text == draft.target.cls.text
    source = _tag(draft.marks, "source_column") or _link_column(draft.source, is_loop, "source")
    target = _tag(draft.marks, "target_column") or _link_column(draft.target, is_loop, "target")
    return LinkTable(table, source, target)


def _link_table_name(draft: DraftAssociation) -> str:
    """Name a link table; by default after both classes, since the table of the target has the target's name."""
    if draft.name or draft.target.role:
        return to_snake_case(draft.effective_name)
    return f"{to_snake_case(draft.source.cls.text)}_{to_snake_case(draft.target.cls.text)}"


def _link_column(end: DraftEnd, is_loop: bool, default: str) -> str:
    """Name a column after its class, unless a class is linked to itself: then the two columns would collide."""
    return f"{to_snake_case((end.role or default) if is_loop else end.cls.text)}_id"


def _tag(marks: DraftMarks, key: str) -> str | None:
    tag = find_tag(marks, key)
    return None if tag is None else tag.text


def to_snake_case(name: str) -> str:
    """`LearningMaterial` is learning_material, `used in` is used_in, `HTTPServer` is http_server."""
    separated = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name)
    return re.sub(r"\W+", "_", separated).strip("_").lower() or "_"


def _collisions(draft: Draft, mapped: MappedModel) -> Iterator[Finding]:
    """Find tables and columns of the same name, ignoring case: databases treat `Course` and `course` alike."""
    locations = {cls.name.text: cls.name.at for cls in draft.classes}
    tables = {table.name.lower(): f"the class {name}" for name, table in reversed([*mapped.tables.items()])}
    columns: dict[tuple[str, str], str] = {}
    for name, table in mapped.tables.items():
        if tables[table.name.lower()] != f"the class {name}":
            yield _table_collision(locations[name], table.name, tables[table.name.lower()])
        columns[table.name.lower(), table.key.lower()] = "the key"
        for attribute, column in table.columns.items():
            description = f"the attribute {attribute}"
            yield from _column_collision(columns, locations[name], table.name, column, description)
    for association in draft.associations:
        name, source = association.effective_name, association.source.cls.text
        link = mapped.links[source, name]
        if isinstance(link, ForeignKey):
            description = f"the association {name}"
            yield from _column_collision(columns, association.at, link.table, link.column, description)
            continue
        if link.name.lower() in tables:
            yield _table_collision(association.at, link.name, tables[link.name.lower()])
        tables.setdefault(link.name.lower(), f"the association {name} of {source}")
        if link.source.lower() == link.target.lower():
            accepted = "source_column and target_column that differ"
            yield Finding(
                association.at, "both ends would be stored in one column", printable(link.source), accepted
            )


def _misused_column_tags(draft: Draft) -> Iterator[Finding]:
    """Find tags for columns that do not exist: `column` of a link table, `source_column` of a foreign key."""
    for association in draft.associations:
        has_table = association.owning_end is None
        for key in ("column",) if has_table else ("source_column", "target_column"):
            tag = find_tag(association.marks, key)
            if tag is not None:
                storage = "a link table" if has_table else "one column"
                accepted = "source_column and target_column" if has_table else "column"
                message = f"{printable(association.effective_name)} is stored in {storage}"
                yield Finding(tag.at, message, key, accepted)


def _table_collision(location: SourceLocation, table: str, other: str) -> Finding:
    message = f"this would be stored in the table of {printable(other)}"
    return Finding(location, message, printable(table), hint="set another table: <<stored {table = ...}>>")


def _column_collision(
    columns: dict[tuple[str, str], str], location: SourceLocation, table: str, column: str, description: str
) -> Iterator[Finding]:
    earlier = columns.setdefault((table.lower(), column.lower()), description)
    if earlier is not description:
        problem = f"{printable(description)} would be stored in the column of {printable(earlier)}"
        yield Finding(
            location, problem, printable(f"{table}.{column}"), hint="set another column: {column = ...}"
        )
