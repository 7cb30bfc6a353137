"""How the changes of a random history are applied: here by statements that triggers see."""

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
"""For associations stored in a column, the object that it refers to."""


class ChangeTarget(Protocol):
    """A target of changes: a database or a program."""

    def insert(self, cls: str, instance: Object, values: Values, references: References) -> None: ...

    def update(self, cls: str, instance: Object, values: Values, references: References) -> None:
        """Update attributes of `cls` itself: the class of the object may be one below it."""

    def delete(self, cls: str, instance: Object, lowest_first: bool) -> None: ...

    def link(self, new: ObjectLink, replaced: ObjectLink | None) -> None: ...

    def unlink(self, old: ObjectLink) -> None: ...

    def watch(self, watch: Watch, cls: str) -> None:
        """Add a watch of a subscriber of class `cls`."""


@dataclass(frozen=True)
class Statements:
    """Applies a change by one statement, or by a few for an object with several rows."""

    mapped: MappedModel
    database: Database

    def insert(self, cls: str, instance: Object, values: Values, references: References) -> None:
        for name, row in self._rows(cls, instance, values, references).items():
            columns, literals = ", ".join(map(quote_name, row)), ", ".join(map(quote_literal, row.values()))
            self.database.run(f"INSERT INTO {quote_name(name)} ({columns}) VALUES ({literals})")

    def _rows(
        self, cls: str, instance: Object, values: Values, references: References
    ) -> dict[str, dict[str, Any]]:
        """Return the rows by table, topmost first.

        Classes that share a table share a row, whose discriminator names the class.
        """
        rows: dict[str, dict[str, Any]] = {}
        for each in reversed(list(self.mapped.model.lineage(cls))):
            table = self.mapped.tables[each.name]
            row = rows.setdefault(table.name, {table.key: instance.key})
            row |= self._row(each.name, values, references)
            discriminator = table.discriminator
            if discriminator is not None:
                rows[discriminator.table or table.name][discriminator.column] = cls
        return rows

    def _row(self, cls: str, values: Values, references: References) -> dict[str, Any]:
        """Return the values that the table of a class has itself."""
        columns = self.mapped.tables[cls].columns
        row: dict[str, Any] = {columns[name]: value for name, value in values.items() if name in columns}
        for association, other in references.items():
            link = self.mapped.link(association)
            assert isinstance(link, ForeignKey)
            if association.at(link.owner) == cls:
                row[link.column] = other and other.key
        return row

    def update(self, cls: str, instance: Object, values: Values, references: References) -> None:
        table, row = self.mapped.tables[cls], self._row(cls, values, references)
        sets = ", ".join(f"{quote_name(column)} = {quote_literal(value)}" for column, value in row.items())
        self.database.run(f"UPDATE {quote_name(table.name)} SET {sets} WHERE {_is(table.key, instance)}")

    def delete(self, cls: str, instance: Object, lowest_first: bool) -> None:
        tables = (self.mapped.tables[each.name] for each in self.mapped.model.lineage(cls))
        rows = list({table.name: table.key for table in tables}.items())
        for name, key in rows if lowest_first else rows[-1:]:
            self.database.run(f"DELETE FROM {quote_name(name)} WHERE {_is(key, instance)}")

    def link(self, new: ObjectLink, replaced: ObjectLink | None) -> None:
        table = self._table(new)
        if replaced is None:
            columns, row = (table.source, table.target), (new.source.key, new.target.key)
            self.database.run(
                f"INSERT INTO {quote_name(table.name)} ({', '.join(map(quote_name, columns))}) "
                f"VALUES ({', '.join(map(quote_literal, row))})"
            )
        else:
            sets = f"{_is(table.source, new.source)}, {_is(table.target, new.target)}"
            self.database.run(f"UPDATE {quote_name(table.name)} SET {sets} WHERE {_are(table, replaced)}")

    def unlink(self, old: ObjectLink) -> None:
        table = self._table(old)
        self.database.run(f"DELETE FROM {quote_name(table.name)} WHERE {_are(table, old)}")

    def _table(self, link: ObjectLink) -> LinkTable:
        table = self.mapped.link(link.association)
        assert isinstance(table, LinkTable)
        return table

    def watch(self, watch: Watch, cls: str) -> None:
        row = (cls, watch.subscriber.key, watch.cls, watch.key)
        self.database.run(f"INSERT INTO tidings_watches VALUES ({', '.join(map(quote_literal, row))})")


def _is(column: str, instance: Object) -> str:
    return f"{quote_name(column)} = {quote_literal(instance.key)}"


def _are(table: LinkTable, link: ObjectLink) -> str:
    return f"{_is(table.source, link.source)} AND {_is(table.target, link.target)}"
