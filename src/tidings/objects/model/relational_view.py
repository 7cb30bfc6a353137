"""Relational view of a mapped model, from which triggers are generated: tables of objects and link relations."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256

from tidings.core.suggest import printable
from tidings.objects.model.class_model import Association, End, MarkLimits, Model
from tidings.objects.model.table_mapping import ForeignKey, LinkTable, MappedModel

NAME_PREFIX = "tidings_"
"""Prefix of everything that is installed; nothing else is ever changed."""

MAX_NAME_LENGTH = 60
"""PostgreSQL silently truncates names after 63 bytes; two names that differ only behind that would be one."""

MAX_COMMENT_LENGTH = 300


def quote_name(name: str) -> str:
    """Quote a name of the user's: `"order"`, or with a schema `"sales"."order"`."""
    return ".".join('"' + part.replace('"', '""') + '"' for part in name.split("."))


def quote_literal(value: str | int | None) -> str:
    """Write a value as an SQL literal."""
    if value is None:
        return "NULL"
    return str(value) if isinstance(value, int) else "'" + value.replace("'", "''") + "'"


def quote_literals(values: Iterable[str | int]) -> str:
    return ", ".join(quote_literal(value) for value in values)


def build_name(*parts: str) -> str:
    """Build a descriptive name with our prefix: `tidings_used_in_linked`.

    A name that is too long or has other characters ends with a hash of all parts, so that names never collide.
    """
    whole = "_".join(parts)
    plain = re.sub(r"[^a-z0-9_]+", "_", whole.lower())
    if plain == whole and len(NAME_PREFIX + plain) <= MAX_NAME_LENGTH:
        return NAME_PREFIX + plain
    digest = sha256("|".join(parts).encode()).hexdigest()[:8]
    return f"{NAME_PREFIX}{plain[: MAX_NAME_LENGTH - len(NAME_PREFIX) - 9]}_{digest}"


def indent_sql(sql: str, by: int = 4) -> str:
    return "\n".join(" " * by + line if line else line for line in sql.split("\n"))


def format_comment(words: str) -> str:
    """Write a comment of one line: a line break in a name would turn the rest into a statement."""
    return f"-- {printable(words, MAX_COMMENT_LENGTH)}"


@dataclass(frozen=True, slots=True)
class ObjectTable:
    """A table with objects of a family, and pairs of attribute or association name and column."""

    table: str
    key: str
    family: str
    columns: tuple[tuple[str, str], ...]
    is_topmost: bool
    has_others: bool


@dataclass(frozen=True, slots=True)
class LinkRelation:
    """Storage of an association's links: a table, its column with keys of sources and the one with keys of targets.

    For a foreign key, `reference` is that one of the two columns; the other is the key of the table. A link table has
    no reference.
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
    """A marked association in the direction of its mark: from the changed object (near) to the other (far)."""

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
    """Queries on a mapped model, and SQL expressions about its objects."""

    mapped: MappedModel

    @property
    def model(self) -> Model:
        return self.mapped.model

    def families(self) -> list[str]:
        return list(dict.fromkeys(self.model.family(name) for name in self.model.classes))

    @cached_property
    def _descendants(self) -> Mapping[str, Sequence[str]]:
        descendants: dict[str, list[str]] = {name: [] for name in self.model.classes}
        for name in self.model.classes:
            for above in list(self.model.lineage(name))[1:]:
                descendants[above.name].append(name)
        return descendants

    def members(self, family: str) -> list[str]:
        """List a class and its descendants."""
        return [family, *self._descendants[family]]

    def family_of(self, name: str) -> str:
        """Build the SQL expression of the family of a class, given as an expression: a seminar is a course."""
        below = [each for each in self.model.classes if each != self.model.family(each)]
        if not below:
            return name
        cases = "".join(
            f" WHEN {quote_literal(each)} THEN {quote_literal(self.model.family(each))}" for each in below
        )
        return f"CASE {name}{cases} ELSE {name} END"

    def below(self, family: str) -> list[str]:
        """List the descendants of a class, deepest first."""
        return sorted(self._descendants[family], key=lambda each: -len(list(self.model.lineage(each))))

    def rows(self) -> Iterator[ObjectTable]:
        """Yield each table of objects once, even if several classes share it."""
        for name, classes in self._by_table().items():
            first = self.mapped.tables[classes[0]]
            family = self.model.family(classes[0])
            tables = {self.mapped.tables[each].name for each in self.members(family)}
            columns = tuple(column for each in classes for column in self._columns(each))
            topmost = name == self.mapped.tables[family].name
            yield ObjectTable(name, first.key, family, columns, topmost, len(tables) > 1)

    def _by_table(self) -> dict[str, list[str]]:
        classes: dict[str, list[str]] = {}
        for name, table in self.mapped.tables.items():
            classes.setdefault(table.name, []).append(name)
        return classes

    def _columns(self, cls: str) -> Iterator[tuple[str, str]]:
        """Yield attributes and references: a course with a new lecturer is updated.

        Propagating associations are not references: their changes are links.
        """
        yield from self.mapped.tables[cls].columns.items()
        yield from self._references.get(cls, ())

    @cached_property
    def _references(self) -> Mapping[str, Sequence[tuple[str, str]]]:
        references: dict[str, list[tuple[str, str]]] = {}
        for association in self.model.associations:
            link = self.mapped.link(association)
            if isinstance(link, ForeignKey) and association.propagates is None:
                references.setdefault(association.at(link.owner), []).append((association.name, link.column))
        return references

    def propagating(self) -> list[DirectedAssociation]:
        return [
            self._direct(association, association.propagates.towards, association.propagates.limits)
            for association in self.model.associations
            if association.propagates is not None
        ]

    def implicit(self) -> list[DirectedAssociation]:
        return [
            self._direct(association, association.implicit.notified, association.implicit.limits)
            for association in self.model.associations
            if association.implicit is not None
        ]

    def _direct(self, association: Association, far: End, limits: MarkLimits) -> DirectedAssociation:
        near_family = self.model.family(association.at(far.other))
        return DirectedAssociation(
            self._relation(association), near_family, self.model.family(association.at(far)), far, limits
        )

    def _relation(self, association: Association) -> LinkRelation:
        link = self.mapped.link(association)
        if isinstance(link, LinkTable):
            return LinkRelation(association, link.name, link.source, link.target)
        owner = association.at(link.owner)
        above = [self.mapped.tables[each.name] for each in self.model.lineage(owner)]
        key = next((each.key for each in above if each.name == link.table), above[0].key)
        source, target = (key, link.column) if link.owner is End.SOURCE else (link.column, key)
        return LinkRelation(association, link.table, source, target, link.column)

    def exists(self, cls: str, key: str) -> str:
        """Build the test whether an object has a row; `key` is an expression of the column's own type."""
        table = self.mapped.tables[cls]
        return f"EXISTS (SELECT 1 FROM {quote_name(table.name)} AS o WHERE o.{quote_name(table.key)} = {key})"

    def is_a(self, cls: str, key: str) -> str | None:
        """Build the test whether an object of the family is of a class; None if all of them are."""
        if cls == self.model.family(cls):
            return None
        table, discriminator = self.mapped.tables[cls], self.mapped.tables[cls].discriminator
        if discriminator is None:
            return self.exists(cls, key)
        below = [self.mapped.tables[member] for member in self.members(cls)]
        values = [
            member.discriminator.value
            for member in below
            if member.discriminator is not None and member.discriminator.value is not None
        ]
        tests = []
        if values:
            owner = quote_name(discriminator.table or table.name)
            owner_key = quote_name(discriminator.key or table.key)
            test = f"o.{quote_name(discriminator.column)} IN ({quote_literals(values)})"
            tests.append(f"EXISTS (SELECT 1 FROM {owner} AS o WHERE o.{owner_key} = {key} AND {test})")
        tests += [
            self.exists(member, key)
            for member in self.members(cls)
            if self.mapped.tables[member].name != table.name
        ]
        return f"({' OR '.join(tests)})" if tests else "1 = 0"

    def class_of(self, family: str, key: str) -> str:
        """Build the expression of an object's class: the deepest class that has a row of it."""
        below = self.below(family)
        if not below:
            return quote_literal(family)
        cases = "".join(f" WHEN {self.is_a(each, key)} THEN {quote_literal(each)}" for each in below)
        return f"CASE{cases} ELSE {quote_literal(family)} END"
