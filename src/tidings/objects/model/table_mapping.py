"""Where a model lies in a database: a table for each class, a column or a table for each association.

SQLAlchemy's mappings bring it along (`from_sqlalchemy`). Diagrams say nothing about tables, so theirs is by convention:

    class LearningMaterial        table learning_material, key id, a column for each attribute
    a class below another         a table of its own, with the key of its parent's row as its key
    many to many, `used in`       table used_in with learning_material_id and course_id
    one at an end, `gives`        column gives_id in the table at the other end, or lecturer_id if that end has a role

Tagged values say otherwise: table, key, column, source_column, target_column.
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
    find_tag,
)
from tidings.objects.model.problems import Finding, ModelError, SourceLocation


@dataclass(frozen=True, slots=True)
class Discriminator:
    """Several classes in one table: rows of this class have the value in the column; None if it has no rows itself.

    Where the classes of a table are below one with a table of its own, the column is in that one: `table` and its
    `key`, if it is another.
    """

    column: str
    value: str | int | None
    table: str | None = None
    key: str | None = None


@dataclass(frozen=True, slots=True)
class ClassTable:
    """The table of a class; `columns` has its own attributes, inherited ones are where the parent's are.

    `parent_key` is the column of the parent's table that `key` refers to, if the two have tables of their own.
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
    """A column of the table of the class at the end `owner`, with the key of the object at the other end."""

    table: str
    column: str
    owner: End


LinkStorage = LinkTable | ForeignKey


@dataclass(frozen=True, slots=True)
class MappedModel:
    """A model and where it lies: tables by class, links by source class and name of the association."""

    model: Model
    tables: Mapping[str, ClassTable]
    links: Mapping[tuple[str, str], LinkStorage]

    def link(self, association: Association) -> LinkStorage:
        return self.links[association.source, association.name]

    def references_of(self, cls: str) -> tuple[Association, ...]:
        """Associations that count as attributes of a class: its table has a column of them; they do not propagate."""
        names = {each.name for each in self.model.lineage(cls)}
        return tuple(
            each
            for each in self.model.associations
            if each.propagates is None
            and isinstance(link := self.link(each), ForeignKey)
            and each.at(link.owner) in names
        )

    def column(self, cls: str, attribute: str) -> tuple[str, str]:
        """Table and column of an attribute, which may be inherited."""
        owner = next(
            each.name
            for each in self.model.lineage(cls)
            if attribute in {own.name for own in each.attributes}
        )
        return self.tables[owner].name, self.tables[owner].columns[attribute]


def map_by_convention(draft: Draft, model: Model) -> MappedModel:
    """Where a checked draft lies; refused if two things would lie in one place."""
    by_name = {each.name.text: each for each in draft.classes}
    keys = _keys(model, by_name)
    tables = {name: _class_table(model, by_name[name], keys) for name in model.classes}
    links = {
        (said.source.cls.text, said.called): _link(said, each, tables)
        for said, each in zip(draft.associations, model.associations, strict=True)
    }
    placed = MappedModel(model, tables, links)
    findings = (*_collisions(draft, placed), *_misplaced(draft))
    if findings:
        raise ModelError(findings)
    return placed


def _class_table(model: Model, draft: DraftClass, keys: Mapping[str, str]) -> ClassTable:
    cls = model.classes[draft.name.text]
    own = {each.name for each in cls.attributes}
    columns = {
        each.name.text: _said(each.marks, "column") or each.name.text
        for each in draft.attributes
        if each.name.text in own
    }
    parent_key = None if cls.parent is None else keys[cls.parent]
    table = _said(draft.marks, "table") or to_snake_case(cls.name)
    return ClassTable(table, keys[cls.name], columns, parent_key)


def _keys(model: Model, drafts: Mapping[str, DraftClass]) -> dict[str, str]:
    """The key of each class: its own, or that of the class above it."""
    found: dict[str, str] = {}
    for name in model.classes:
        way: list[str] = []
        above: str | None = name
        while above is not None and above not in found:
            way.append(above)
            above = model.classes[above].parent
        key = DEFAULT_KEY if above is None else found[above]
        for each in reversed(way):
            key = found[each] = _said(drafts[each].marks, "key") or key
    return found


def _link(said: DraftAssociation, association: Association, tables: Mapping[str, ClassTable]) -> LinkStorage:
    owner = said.holder
    if owner is None:
        return _link_table(said)
    far = said.target if owner is End.SOURCE else said.source
    column = _said(said.marks, "column") or f"{to_snake_case(far.role or said.called)}_id"
    return ForeignKey(tables[association.at(owner)].name, column, owner)


def _link_table(said: DraftAssociation) -> LinkTable:
    table = _said(said.marks, "table") or _links_name(said)
    is_loop = said.source.cls.text == said.target.cls.text
    source = _said(said.marks, "source_column") or _link_column(said.source, is_loop, "source")
    target = _said(said.marks, "target_column") or _link_column(said.target, is_loop, "target")
    return LinkTable(table, source, target)


def _links_name(said: DraftAssociation) -> str:
    """Without a word of its own it cannot be called as its target, whose table has that name."""
    if said.name or said.target.role:
        return to_snake_case(said.called)
    return f"{to_snake_case(said.source.cls.text)}_{to_snake_case(said.target.cls.text)}"


def _link_column(end: DraftEnd, is_loop: bool, word: str) -> str:
    """A class that is linked to itself cannot give both columns its name."""
    return f"{to_snake_case((end.role or word) if is_loop else end.cls.text)}_id"


def _said(marks: DraftMarks, key: str) -> str | None:
    found = find_tag(marks, key)
    return None if found is None else found.text


def to_snake_case(name: str) -> str:
    """`LearningMaterial` is learning_material, `used in` is used_in, `HTTPServer` is http_server."""
    parted = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name)
    return re.sub(r"\W+", "_", parted).strip("_").lower() or "_"


def _collisions(draft: Draft, placed: MappedModel) -> Iterator[Finding]:
    """Databases take `Course` and `course` for one name, so these must differ, too."""
    spots = {each.name.text: each.name.at for each in draft.classes}
    taken = {table.name.lower(): f"the class {name}" for name, table in reversed(list(placed.tables.items()))}
    columns: dict[tuple[str, str], str] = {}
    for name, table in placed.tables.items():
        if taken[table.name.lower()] != f"the class {name}":
            yield _same_table(spots[name], table.name, taken[table.name.lower()])
        columns[table.name.lower(), table.key.lower()] = "the key"
        for attribute, column in table.columns.items():
            yield from _column(columns, spots[name], table.name, column, f"the attribute {attribute}")
    for said in draft.associations:
        link = placed.links[said.source.cls.text, said.called]
        if isinstance(link, ForeignKey):
            yield from _column(columns, said.at, link.table, link.column, f"the association {said.called}")
            continue
        if link.name.lower() in taken:
            yield _same_table(said.at, link.name, taken[link.name.lower()])
        taken.setdefault(link.name.lower(), f"the association {said.called} of {said.source.cls.text}")
        if link.source.lower() == link.target.lower():
            what, accepted = (
                "both ends would lie in one column",
                "source_column and target_column that differ",
            )
            yield Finding(said.at, what, printable(link.source), accepted)


def _misplaced(draft: Draft) -> Iterator[Finding]:
    """Columns are said of a table that there is."""
    for each in draft.associations:
        for key in ("column",) if each.holder is None else ("source_column", "target_column"):
            said = find_tag(each.marks, key)
            if said is not None:
                held = "a table of links" if each.holder is None else "one column"
                accepted = "source_column and target_column" if each.holder is None else "column"
                yield Finding(said.at, f"{printable(each.called)} lies in {held}", key, accepted)


def _same_table(spot: SourceLocation, table: str, other: str) -> Finding:
    what = f"this would lie in the table of {printable(other)}"
    return Finding(spot, what, printable(table), hint="say another one: <<stored {table = ...}>>")


def _column(
    columns: dict[tuple[str, str], str], spot: SourceLocation, table: str, column: str, what: str
) -> Iterator[Finding]:
    before = columns.setdefault((table.lower(), column.lower()), what)
    if before is not what:
        said = f"{printable(what)} would lie in the column of {printable(before)}"
        yield Finding(spot, said, printable(f"{table}.{column}"), hint="say another one: {column = ...}")
