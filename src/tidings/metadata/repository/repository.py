"""A repository: a cache of a provider's resources, with local documents of its own.

    with Repository(Path(".tidings-repository")) as repository:
        repository.register_local("http://example.org/mine.rdf", body, "text/turtle")
        repository.cache.of_class("CycleProvider")

`Synchronizer` keeps it up to date, in the same process or in another one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tidings.core.atomic_files import private_folder
from tidings.core.lifecycle import Closeable
from tidings.errors import NotFound
from tidings.metadata.documents import Document, DocumentReader, check_uri
from tidings.metadata.provider.log_applier import SchemaCache
from tidings.metadata.resources import Resource
from tidings.metadata.schema.model import Schema
from tidings.metadata.sql.repository.repository_store import LocalDocument, ResourceOrigin
from tidings.store.database import sqlite_url
from tidings.store.store import Store, open_store


class ResourceCache:
    """The cached and local resources of a repository, available while the provider is not."""

    def __init__(self, store: Store) -> None:
        self._store = store
        hint = "tidings repository --provider URL --rules FILE fetches it from a provider"
        self._schemas = SchemaCache(hint)

    def schema(self) -> Schema:
        """Return the last known schema of the provider."""
        return self._schemas.context(self._store.metadata.schema()).schema

    def resources(self) -> tuple[Resource, ...]:
        """Return all resources, ordered by URI."""
        return self._store.repository.resources()

    def resource(self, uri: str) -> Resource | None:
        return self._store.repository.resource(uri)

    def of_class(self, name: str) -> tuple[Resource, ...]:
        """Return the resources of a class and its subclasses, ordered by URI."""
        schema = self.schema()
        return self._store.repository.resources(sorted(schema.at_or_below(name)))

    def members(self, rule: str) -> tuple[Resource, ...]:
        """Return the resources that a rule registers, ordered by URI."""
        return self._store.repository.members(rule)

    def version(self) -> int:
        """Return a number that differs after each change of the resources."""
        return self._store.repository.version()


@dataclass(frozen=True, slots=True)
class RepositoryStatus:
    """The name and the contents of a repository, and the provider's position. `rules` counts their resources."""

    name: str
    provider: str | None
    position: int | None
    resources: int
    local: int
    rules: Mapping[str, int]


class Repository(Closeable):
    """The repository of a home folder; `store_url` selects another store than the folder's own."""

    def __init__(self, home: Path, store_url: str | None = None) -> None:
        self.home = private_folder(home)
        self.store = open_store(store_url or sqlite_url(home / "store.db"))
        self.cache = ResourceCache(self.store)

    def close(self) -> None:
        self.store.close()

    def status(self) -> RepositoryStatus:
        """Return its position and its contents."""
        repository = self.store.repository
        cursor, counts = repository.cursor(), repository.counts()
        return RepositoryStatus(
            name=repository.name(),
            provider=None if cursor is None else cursor.provider,
            position=None if cursor is None else cursor.position,
            resources=counts.resources,
            local=counts.local,
            rules=repository.member_counts(),
        )

    def register_local(self, uri: str, body: bytes, media_type: str) -> Document:
        """Register a local document, or a new version of it, checked by the provider's schema."""
        schema = self.cache.schema()
        document = DocumentReader(schema).read(body, media_type, uri, isolate=True)
        self.store.repository.register_local(schema, document, media_type, body)
        return document

    def remove_local(self, uri: str) -> bool:
        """Remove a local document; return whether it existed."""
        check_uri(uri)
        return self.store.repository.remove_local(uri)

    def local_documents(self) -> tuple[LocalDocument, ...]:
        return self.store.repository.local_documents()

    def explain_origin(self, uri: str) -> ResourceOrigin:
        """Explain why a resource is in the repository."""
        origins = self.store.repository.explain_origins(self.cache.schema(), [uri])
        if uri not in origins:
            hint = "tidings repository list shows all resources"
            raise NotFound("there is no such resource here", received=uri, hint=hint)
        return origins[uri]
