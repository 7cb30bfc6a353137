"""What a repository holds, for whoever asks: resources that came from a provider, and local ones among them.

    cache = Cache(store)
    cache.of_class("CycleProvider")

Nobody else is asked: it answers as well while the provider cannot be reached.
"""

from __future__ import annotations

from tidings.errors import SetupError
from tidings.metadata.resources import Resource
from tidings.metadata.schema import Schema
from tidings.metadata.schema_reading import read_schema
from tidings.publications import rdf
from tidings.store import Store


class Cache:
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
            self._read = file.version, read_schema(rdf.decode(file.body, file.media_type))
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
