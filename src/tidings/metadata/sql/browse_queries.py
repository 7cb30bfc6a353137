"""Queries for browsing metadata: counts of classes, their resources, and references between resources.

There are no indexes for this, since each would slow down every registration. Referrers are found property by property:
the index of values begins with the property, and few properties of a schema are references. SQLite's indexes end with
the primary key, so a page costs only its rows; PostgreSQL sorts the referrers of one property.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from sqlalchemy import Connection, Text, and_, func, literal_column, select

from tidings.metadata.resources import Ref
from tidings.metadata.sql import resource_rows
from tidings.metadata.sql.resource_rows import REFERENCE_KIND, StoredResource
from tidings.metadata.sql.tables import INDEXED_LENGTH, metadata_atoms, metadata_resources
from tidings.store.database import Database


class InstanceRow(NamedTuple):
    """A resource of a class or a subclass."""

    uri: str
    cls: str


class ReferrerRow(NamedTuple):
    """A resource that refers to another, with the property and the strength of the reference."""

    property: str
    uri: str
    cls: str
    is_strong: bool


class ReferrerCursor(NamedTuple):
    """The last referrer of a page."""

    property: str = ""
    uri: str = ""


@dataclass(frozen=True, slots=True)
class ResourceRecord:
    """A resource with the classes of its existing targets, and with its referrers."""

    placed: StoredResource
    classes: Mapping[str, str]
    referrers: tuple[ReferrerRow, ...]


class BrowseQueries:
    """Browsing queries over the metadata of a store."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def counts(self) -> dict[str, int]:
        """Count the resources of each class, without those of subclasses."""
        cls = metadata_resources.c["class"]
        with self._database.read() as connection:
            return dict(tuple(row) for row in connection.execute(select(cls, func.count()).group_by(cls)))

    def instances(self, classes: Iterable[str], after: str, limit: int) -> tuple[InstanceRow, ...]:
        """Return the first `limit` resources of classes after a URI."""
        c = metadata_resources.c
        wanted = select(c.uri, c["class"]).where(c.uri > after).order_by(c.uri).limit(limit)
        with self._database.read() as connection:
            # One class at a time: for several at once, SQLite would scan the resources of all classes.
            found = [
                InstanceRow(*row)
                for cls in classes
                for row in connection.execute(wanted.where(c["class"] == cls))
            ]
        return tuple(sorted(found)[:limit])

    def resource(
        self, uri: str, properties: Iterable[str], after: ReferrerCursor, limit: int
    ) -> ResourceRecord | None:
        """Load a resource, and its first `limit` referrers by these properties after a cursor."""
        with self._database.moment() as connection:
            placed = resource_rows.load_resources(connection, [uri]).get(uri)
            if placed is None:
                return None
            values = placed.resource.values.values()
            targets = {value.uri for each in values for value in each if isinstance(value, Ref)}
            places = resource_rows.load_places(connection, targets)
            classes = {target: cls for target, (cls, _) in places.items()}
            return ResourceRecord(placed, classes, _referrers(connection, uri, properties, after, limit))

    def referrers(self, uri: str, properties: Iterable[str], limit: int) -> tuple[ReferrerRow, ...]:
        """Return the referrers of a resource, which need not exist."""
        with self._database.read() as connection:
            return _referrers(connection, uri, properties, ReferrerCursor(), limit)

    def neighbours(self, document: str, limit: int) -> tuple[str, ...]:
        """Return the URIs of the first resources of a document."""
        c = metadata_resources.c
        wanted = select(c.uri).where(c.document == document).order_by(c.uri).limit(limit)
        with self._database.read() as connection:
            return tuple(connection.execute(wanted).scalars())


def _referrers(
    connection: Connection, uri: str, properties: Iterable[str], after: ReferrerCursor, limit: int
) -> tuple[ReferrerRow, ...]:
    c = metadata_atoms.c
    # As the index has it, without parameters. And not `value = ?`: SQLite would put that into the start, and the
    # index has no such start.
    start = literal_column(f"substr(metadata_atoms.value, 1, {INDEXED_LENGTH})", Text) == uri[:INDEXED_LENGTH]
    same = and_(c.value >= uri, c.value <= uri)
    wanted = select(c.property, c.uri, c["class"], c.strong).where(start, same, c.kind == REFERENCE_KIND)
    found: list[ReferrerRow] = []
    for name in sorted(properties):
        if name < after.property or len(found) == limit:
            continue
        seen = after.uri if name == after.property else ""
        page = wanted.where(c.property == name, c.uri > seen).order_by(c.uri).limit(limit - len(found))
        found += (ReferrerRow(*row[:3], row.strong is not None) for row in connection.execute(page))
    return tuple(found)
