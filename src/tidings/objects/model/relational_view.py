"""A placed model as triggers look at it: rows of tables, and relations of two columns."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tidings.objects.model.class_model import Association, End, MarkLimits, Model
from tidings.objects.model.sql_text import quote_literal, quote_literals, quote_name
from tidings.objects.model.table_mapping import ForeignKey, LinkTable, MappedModel


@dataclass(frozen=True, slots=True)
class ObjectTable:
    """A table with objects of a family, and the columns whose changes count, each with the name of what it holds."""

    table: str
    key: str
    family: str
    columns: tuple[tuple[str, str], ...]
    is_topmost: bool
    has_others: bool


@dataclass(frozen=True, slots=True)
class LinkRelation:
    """Where the links of an association are: a table, a column with keys of sources and one with keys of targets.

    A foreign key is one of the two, the `reference`; the other is the key of the table. A table of links has none.
    """

    association: Association
    table: str
    source: str
    target: str
    reference: str | None = None

    def column(self, end: End) -> str:
        return self.source if end is End.SOURCE else self.target


@dataclass(frozen=True, slots=True)
class DirectedAssociation:
    """A marked association in the direction of its mark: from the object that changed to the one it concerns."""

    relation: LinkRelation
    near_family: str
    far_family: str
    far_end: End
    limits: MarkLimits

    @property
    def near_class(self) -> str:
        return self.relation.association.at(self.far_end.other)

    @property
    def far_class(self) -> str:
        return self.relation.association.at(self.far_end)

    @property
    def near(self) -> str:
        return self.relation.column(self.far_end.other)

    @property
    def far(self) -> str:
        return self.relation.column(self.far_end)

    @property
    def name(self) -> str:
        return self.relation.association.name

    @property
    def forwards(self) -> bool:
        return self.far_end is End.TARGET


@dataclass(frozen=True)
class RelationalView:
    """Everything that generating needs to know about where a model lies."""

    placed: MappedModel

    @property
    def model(self) -> Model:
        return self.placed.model

    def families(self) -> list[str]:
        return list(dict.fromkeys(self.model.family(name) for name in self.model.classes))

    def members(self, family: str) -> list[str]:
        """A class and all below it."""
        return [family, *self.model.subclasses_of(family)]

    def family_of(self, name: str) -> str:
        """The family of a class that is an expression itself: a seminar is watched as the course that it is."""
        below = [each for each in self.model.classes if each != self.model.family(each)]
        if not below:
            return name
        cases = "".join(
            f" WHEN {quote_literal(each)} THEN {quote_literal(self.model.family(each))}" for each in below
        )
        return f"CASE {name}{cases} ELSE {name} END"

    def below(self, family: str) -> list[str]:
        """The classes below a class, lowest first."""
        return sorted(self.model.subclasses_of(family), key=lambda each: -len(list(self.model.lineage(each))))

    def rows(self) -> Iterator[ObjectTable]:
        """Each table of objects once, also if it has several classes."""
        for name, classes in self._by_table().items():
            first = self.placed.tables[classes[0]]
            family = self.model.family(classes[0])
            tables = {self.placed.tables[each].name for each in self.members(family)}
            columns = tuple(column for each in classes for column in self._columns(each))
            topmost = name == self.placed.tables[family].name
            yield ObjectTable(name, first.key, family, columns, topmost, len(tables) > 1)

    def _by_table(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for name, table in self.placed.tables.items():
            found.setdefault(table.name, []).append(name)
        return found

    def _columns(self, cls: str) -> Iterator[tuple[str, str]]:
        """Attributes, and references: a course that gets another lecturer is updated. What propagates is a link."""
        yield from self.placed.tables[cls].columns.items()
        for each in self.model.associations:
            link = self.placed.link(each)
            if isinstance(link, ForeignKey) and each.propagates is None and each.at(link.owner) == cls:
                yield each.name, link.column

    def propagating(self) -> list[DirectedAssociation]:
        return [
            self._way(each, each.propagates.towards, each.propagates.limits)
            for each in self.model.associations
            if each.propagates is not None
        ]

    def implicit(self) -> list[DirectedAssociation]:
        return [
            self._way(each, each.implicit.told, each.implicit.limits)
            for each in self.model.associations
            if each.implicit is not None
        ]

    def _way(self, association: Association, far: End, limits: MarkLimits) -> DirectedAssociation:
        near_family = self.model.family(association.at(far.other))
        return DirectedAssociation(
            self._relation(association), near_family, self.model.family(association.at(far)), far, limits
        )

    def _relation(self, association: Association) -> LinkRelation:
        link = self.placed.link(association)
        if isinstance(link, LinkTable):
            return LinkRelation(association, link.name, link.source, link.target)
        owner = association.at(link.owner)
        above = [self.placed.tables[each.name] for each in self.model.lineage(owner)]
        key = next((each.key for each in above if each.name == link.table), above[0].key)
        source, target = (key, link.column) if link.owner is End.SOURCE else (link.column, key)
        return LinkRelation(association, link.table, source, target, link.column)

    def exists(self, cls: str, key: str) -> str:
        """Whether an object has a row; `key` is an expression of the column's own type."""
        table = self.placed.tables[cls]
        return f"EXISTS (SELECT 1 FROM {quote_name(table.name)} AS o WHERE o.{quote_name(table.key)} = {key})"

    def is_a(self, cls: str, key: str) -> str | None:
        """Whether an object of the family is of a class; None if all of them are."""
        if cls == self.model.family(cls):
            return None
        table, kept = self.placed.tables[cls], self.placed.tables[cls].discriminator
        if kept is None:
            return self.exists(cls, key)
        below = [self.placed.tables[each] for each in self.members(cls)]
        values = [
            each.discriminator.value
            for each in below
            if each.discriminator is not None and each.discriminator.value is not None
        ]
        there, its_key = quote_name(kept.table or table.name), quote_name(kept.key or table.key)
        tests = [f"o.{quote_name(kept.column)} IN ({quote_literals(values)})"] if values else []
        found = [
            f"EXISTS (SELECT 1 FROM {there} AS o WHERE o.{its_key} = {key} AND {test})" for test in tests
        ]
        found += [
            self.exists(each, key)
            for each in self.members(cls)
            if self.placed.tables[each].name != table.name
        ]
        return f"({' OR '.join(found)})" if found else "1 = 0"

    def class_of(self, family: str, key: str) -> str:
        """The class that an object is made of: the lowest of those that have a row of it."""
        below = self.below(family)
        if not below:
            return quote_literal(family)
        cases = "".join(f" WHEN {self.is_a(each, key)} THEN {quote_literal(each)}" for each in below)
        return f"CASE{cases} ELSE {quote_literal(family)} END"
