"""Looking around in metadata: how many resources classes have, which, and who refers to whom.

There are no indexes for this, since each would make every registration dearer. What refers to a resource is asked for
property by property: the index of values begins with the property, and a schema has few that are references. SQLite's
indexes end with the primary key, so that there a page costs what is on it; PostgreSQL sorts what refers to one
resource by one property.
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
    """A resource of a class, or of one below it."""

    uri: str
    cls: str


class ReferrerRow(NamedTuple):
    """A resource that refers to another: by which property, and whether strongly."""

    property: str
    uri: str
    cls: str
    is_strong: bool


class ReferrerCursor(NamedTuple):
    """The referrer that a page ended with."""

    property: str = ""
    uri: str = ""


@dataclass(frozen=True, slots=True)
class ResourceRecord:
    """A resource with the classes of what it refers to, as far as that is there, and with who refers to it."""

    placed: StoredResource
    classes: Mapping[str, str]
    referrers: tuple[ReferrerRow, ...]


class BrowseQueries:
    """The metadata of a store, for those who look around."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def counts(self) -> dict[str, int]:
        """How many resources each class has itself, without those of the classes below it."""
        cls = metadata_resources.c["class"]
        with self._database.read() as connection:
            return dict(tuple(row) for row in connection.execute(select(cls, func.count()).group_by(cls)))

    def instances(self, classes: Iterable[str], after: str, limit: int) -> tuple[InstanceRow, ...]:
        """The first `limit` resources of these classes whose URIs come after another."""
        c = metadata_resources.c
        wanted = select(c.uri, c["class"]).where(c.uri > after).order_by(c.uri).limit(limit)
        with self._database.read() as connection:
            # Class by class: for several at once, SQLite would walk through the resources of all classes.
            found = [
                InstanceRow(*row)
                for cls in classes
                for row in connection.execute(wanted.where(c["class"] == cls))
            ]
        return tuple(sorted(found)[:limit])

    def resource(
        self, uri: str, properties: Iterable[str], after: ReferrerCursor, limit: int
    ) -> ResourceRecord | None:
        """A resource, and the first `limit` after a mark of those that refer to it by one of these properties."""
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
        """Who refers to a resource, whether that is there or not."""
        with self._database.read() as connection:
            return _referrers(connection, uri, properties, ReferrerCursor(), limit)

    def neighbours(self, document: str, limit: int) -> tuple[str, ...]:
        """The first resources of a document."""
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
