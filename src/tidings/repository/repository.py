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

from tidings.closing import Closing
from tidings.errors import Absent
from tidings.metadata.documents import Document, Reader, check_uri
from tidings.private import private_folder
from tidings.repository.cache import Cache
from tidings.store import open_store, sqlite_url
from tidings.store.repository import LocalDocument, Why


@dataclass(frozen=True, slots=True)
class Status:
    """What a repository is called, where it is, and what it holds. Rules are counted by their resources."""

    name: str
    provider: str | None
    position: int | None
    resources: int
    local: int
    rules: Mapping[str, int]


class Repository(Closing):
    """The repository of a home folder; `store_url` names another store than the folder's own."""

    def __init__(self, home: Path, store_url: str | None = None) -> None:
        self.home = private_folder(home)
        self.store = open_store(store_url or sqlite_url(home / "store.db"))
        self.cache = Cache(self.store)

    def close(self) -> None:
        self.store.close()

    def status(self) -> Status:
        """Where it is, and what it holds."""
        kept = self.store.repository
        cursor, counts = kept.cursor(), kept.counts()
        return Status(
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
        document = Reader(schema).read(body, media_type, uri, isolate=True)
        self.store.repository.register_local(schema, document, media_type, body)
        return document

    def remove_local(self, uri: str) -> bool:
        """Remove a local document, and say whether there was one."""
        check_uri(uri)
        return self.store.repository.remove_local(uri)

    def local_documents(self) -> tuple[LocalDocument, ...]:
        return self.store.repository.local_documents()

    def why(self, uri: str) -> Why:
        """Why a resource is here."""
        found = self.store.repository.why(self.cache.schema(), [uri])
        if uri not in found:
            hint = "tidings repository list shows what there is"
            raise Absent("there is no such resource here", received=uri, hint=hint)
        return found[uri]
