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

from tidings.metadata.resources import Ref, Resource
from tidings.metadata.sql import resource_rows
from tidings.metadata.sql.connections import StorePart, reading, reading_snapshot
from tidings.metadata.sql.resource_rows import REFERENCE_KIND
from tidings.metadata.sql.tables import INDEXED_LENGTH, metadata_atoms, metadata_resources


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

    resource: Resource
    classes: Mapping[str, str]
    referrers: tuple[ReferrerRow, ...]


class BrowseQueries(StorePart):
    """Browsing queries over the metadata of a store."""

    def counts(self) -> dict[str, int]:
        """Count the resources of each class, without those of subclasses."""
        cls = metadata_resources.c["class"]
        return dict(tuple(row) for row in self._rows(select(cls, func.count()).group_by(cls)))

    @reading
    def instances(
        self, connection: Connection, classes: Iterable[str], after: str, limit: int
    ) -> tuple[InstanceRow, ...]:
        """Return the first `limit` resources of classes after a URI."""
        c = metadata_resources.c
        query = select(c.uri, c["class"]).where(c.uri > after).order_by(c.uri).limit(limit)
        # One class at a time: for several at once, SQLite would scan the resources of all classes.
        pages = (connection.execute(query.where(c["class"] == cls)) for cls in classes)
        return tuple(sorted(InstanceRow(*row) for page in pages for row in page)[:limit])

    @reading_snapshot
    def resource(
        self, connection: Connection, uri: str, properties: Iterable[str], after: ReferrerCursor, limit: int
    ) -> ResourceRecord | None:
        """Load a resource, and its first `limit` referrers by these properties after a cursor."""
        resource = resource_rows.load_resources(connection, [uri]).get(uri)
        if resource is None:
            return None
        values = resource.values.values()
        targets = {value.uri for each in values for value in each if isinstance(value, Ref)}
        classes = resource_rows.load_classes(connection, targets)
        return ResourceRecord(resource, classes, _referrers(connection, uri, properties, after, limit))

    def referrers(self, uri: str, properties: Iterable[str], limit: int) -> tuple[ReferrerRow, ...]:
        """Return the referrers of a resource, which need not exist."""
        return self._call(_referrers, uri, properties, ReferrerCursor(), limit)

    def neighbours(self, document: str, limit: int) -> tuple[str, ...]:
        """Return the URIs of the first resources of a document."""
        c = metadata_resources.c
        query = select(c.uri).where(c.document == document).order_by(c.uri).limit(limit)
        return tuple(row.uri for row in self._rows(query))


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
