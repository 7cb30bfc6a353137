"""How the changes of a random history are made: by statements that triggers see."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from tests.objects.databases import Database
from tidings.objects.model.class_model import Association
from tidings.objects.model.relational_view import quote_literal, quote_name
from tidings.objects.model.table_mapping import ForeignKey, LinkTable, MappedModel
from tidings.objects.propagation import Object, ObjectLink, Watch

Values = Mapping[str, str | None]
References = dict[Association, Object | None]
"""For associations that are a column, the object that it leads to."""


class Applying(Protocol):
    """How a change is made: by statements, or in a program."""

    def insert(self, cls: str, one: Object, values: Values, references: References) -> None: ...

    def update(self, cls: str, one: Object, values: Values, references: References) -> None:
        """`cls` is the class that has these attributes itself: the object may be of one below it."""

    def delete(self, cls: str, one: Object, from_the_lowest: bool) -> None: ...

    def link(self, new: ObjectLink, instead_of: ObjectLink | None) -> None: ...

    def unlink(self, old: ObjectLink) -> None: ...

    def watch(self, watch: Watch, cls: str) -> None:
        """`cls` is that of the subscriber."""


@dataclass(frozen=True)
class Statements:
    """One statement, or a few for an object with several rows."""

    placed: MappedModel
    database: Database

    def insert(self, cls: str, one: Object, values: Values, references: References) -> None:
        for name, row in self._rows(cls, one, values, references).items():
            columns, said = ", ".join(map(quote_name, row)), ", ".join(map(quote_literal, row.values()))
            self.database.run(f"INSERT INTO {quote_name(name)} ({columns}) VALUES ({said})")

    def _rows(
        self, cls: str, one: Object, values: Values, references: References
    ) -> dict[str, dict[str, Any]]:
        """By table, topmost first. Classes that share one have one row there, which says of which class it is."""
        found: dict[str, dict[str, Any]] = {}
        for each in reversed(list(self.placed.model.lineage(cls))):
            table = self.placed.tables[each.name]
            row = found.setdefault(table.name, {table.key: one.key})
            row |= self._row(each.name, values, references)
            kept = table.discriminator
            if kept is not None:
                found[kept.table or table.name][kept.column] = cls
        return found

    def _row(self, cls: str, values: Values, references: References) -> dict[str, Any]:
        """What the table of a class itself has of all this."""
        columns = self.placed.tables[cls].columns
        row: dict[str, Any] = {columns[name]: value for name, value in values.items() if name in columns}
        for association, other in references.items():
            link = self.placed.link(association)
            assert isinstance(link, ForeignKey)
            if association.at(link.owner) == cls:
                row[link.column] = other and other.key
        return row

    def update(self, cls: str, one: Object, values: Values, references: References) -> None:
        table, row = self.placed.tables[cls], self._row(cls, values, references)
        sets = ", ".join(f"{quote_name(column)} = {quote_literal(value)}" for column, value in row.items())
        self.database.run(f"UPDATE {quote_name(table.name)} SET {sets} WHERE {_is(table.key, one)}")

    def delete(self, cls: str, one: Object, from_the_lowest: bool) -> None:
        tables = (self.placed.tables[each.name] for each in self.placed.model.lineage(cls))
        rows = list({table.name: table.key for table in tables}.items())
        for name, key in rows if from_the_lowest else rows[-1:]:
            self.database.run(f"DELETE FROM {quote_name(name)} WHERE {_is(key, one)}")

    def link(self, new: ObjectLink, instead_of: ObjectLink | None) -> None:
        where = self._table(new)
        if instead_of is None:
            columns, row = (where.source, where.target), (new.source.key, new.target.key)
            self.database.run(
                f"INSERT INTO {quote_name(where.name)} ({', '.join(map(quote_name, columns))}) "
                f"VALUES ({', '.join(map(quote_literal, row))})"
            )
        else:
            sets = f"{_is(where.source, new.source)}, {_is(where.target, new.target)}"
            self.database.run(f"UPDATE {quote_name(where.name)} SET {sets} WHERE {_are(where, instead_of)}")

    def unlink(self, old: ObjectLink) -> None:
        where = self._table(old)
        self.database.run(f"DELETE FROM {quote_name(where.name)} WHERE {_are(where, old)}")

    def _table(self, link: ObjectLink) -> LinkTable:
        where = self.placed.link(link.association)
        assert isinstance(where, LinkTable)
        return where

    def watch(self, watch: Watch, cls: str) -> None:
        row = (cls, watch.subscriber.key, watch.cls, watch.key)
        self.database.run(f"INSERT INTO tidings_watches VALUES ({', '.join(map(quote_literal, row))})")


def _is(column: str, one: Object) -> str:
    return f"{quote_name(column)} = {quote_literal(one.key)}"


def _are(where: LinkTable, link: ObjectLink) -> str:
    return f"{_is(where.source, link.source)} AND {_is(where.target, link.target)}"
