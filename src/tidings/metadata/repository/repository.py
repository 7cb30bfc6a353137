"""A repository: its home, what it holds, and what is of it alone.

    with Repository(Path(".tidings-repository")) as repository:
        repository.register_local("http://example.org/mine.rdf", body, "text/turtle")
        repository.cache.of_class("CycleProvider")

`Syncing` keeps it up to date, in the same process or in another one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tidings.core.atomic_files import private_folder
from tidings.core.closeable import Closeable
from tidings.errors import Absent, SetupError
from tidings.graphs.rdf import rdf_decoder
from tidings.metadata.documents import Document, DocumentReader, check_uri
from tidings.metadata.resources import Resource
from tidings.metadata.schema.model import Schema
from tidings.metadata.schema.schema_parser import parse_schema
from tidings.metadata.sql.repository.repository_store import LocalDocument, ResourceOrigin
from tidings.store.database import sqlite_url
from tidings.store.store import Store, open_store

# What a repository holds, for whoever asks: resources that came from a provider, and local ones among them.
#
#     cache = Cache(store)
#     cache.of_class("CycleProvider")
#
# Nobody else is asked: it answers as well while the provider cannot be reached.


class ResourceCache:
    """The resources of a repository's store."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._read: tuple[int, Schema] | None = None

    def schema(self) -> Schema:
        """The provider's schema, as it was when the repository heard of it last."""
        file = self._store.metadata.schema()
        if file is None:
            hint = "tidings repository --provider URL --rules FILE brings it with the first answer"
            raise SetupError("the repository has no schema yet", hint=hint)
        if self._read is None or self._read[0] != file.version:
            self._read = file.version, parse_schema(rdf_decoder.decode(file.body, file.media_type))
        return self._read[1]

    def resources(self) -> tuple[Resource, ...]:
        """All resources, in the order of their URIs."""
        return self._store.repository.resources()

    def resource(self, uri: str) -> Resource | None:
        return self._store.repository.resource(uri)

    def of_class(self, name: str) -> tuple[Resource, ...]:
        """The resources of a class and of those below it, in the order of their URIs."""
        schema = self.schema()
        return self._store.repository.resources(sorted(schema.at_or_below(name)))

    def members(self, rule: str) -> tuple[Resource, ...]:
        """The resources that a rule registers, in the order of their URIs."""
        return self._store.repository.members(rule)

    def version(self) -> int:
        """A number that is another one after each change of what is held."""
        return self._store.repository.version()


@dataclass(frozen=True, slots=True)
class RepositoryStatus:
    """What a repository is called, where it is, and what it holds. Rules are counted by their resources."""

    name: str
    provider: str | None
    position: int | None
    resources: int
    local: int
    rules: Mapping[str, int]


class Repository(Closeable):
    """The repository of a home folder; `store_url` names another store than the folder's own."""

    def __init__(self, home: Path, store_url: str | None = None) -> None:
        self.home = private_folder(home)
        self.store = open_store(store_url or sqlite_url(home / "store.db"))
        self.cache = ResourceCache(self.store)

    def close(self) -> None:
        self.store.close()

    def status(self) -> RepositoryStatus:
        """Where it is, and what it holds."""
        kept = self.store.repository
        cursor, counts = kept.cursor(), kept.counts()
        return RepositoryStatus(
            name=kept.name(),
            provider=None if cursor is None else cursor.provider,
            position=None if cursor is None else cursor.position,
            resources=counts.resources,
            local=counts.local,
            rules=kept.member_counts(),
        )

    def register_local(self, uri: str, body: bytes, media_type: str) -> Document:
        """Keep a document here alone, or a new version of it. It is checked by the provider's schema."""
        schema = self.cache.schema()
        document = DocumentReader(schema).read(body, media_type, uri, isolate=True)
        self.store.repository.register_local(schema, document, media_type, body)
        return document

    def remove_local(self, uri: str) -> bool:
        """Remove a local document, and say whether there was one."""
        check_uri(uri)
        return self.store.repository.remove_local(uri)

    def local_documents(self) -> tuple[LocalDocument, ...]:
        return self.store.repository.local_documents()

    def why(self, uri: str) -> ResourceOrigin:
        """Why a resource is here."""
        found = self.store.repository.why(self.cache.schema(), [uri])
        if uri not in found:
            hint = "tidings repository list shows what there is"
            raise Absent("there is no such resource here", received=uri, hint=hint)
        return found[uri]
