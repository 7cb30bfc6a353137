"""A provider in the same process: nothing lies between."""

from __future__ import annotations

from collections.abc import Mapping
from threading import Event
from time import monotonic

from tidings.backbone.peer import Unreachable
from tidings.metadata.change_sets import ChangeSet, State
from tidings.provider import Provider
from tidings.repository.links import SchemaText, Standing
from tidings.store import Store
from tidings.store.repositories import scope_of

LOOK_SECONDS = 0.1


class DirectLink:
    """A link to the provider of a store."""

    def __init__(self, store: Store, repository: str) -> None:
        self.name = store.database.name
        self._store, self._repository = store, repository
        self._provider, self._ended = Provider(store), Event()

    def standing(self) -> Standing:
        found = self._store.backbone.status()
        return Standing(found.provider, found.position, found.leader is None)

    def schema(self) -> SchemaText:
        file = self._store.metadata.schema()
        if file is None:
            raise Unreachable("the provider has no schema yet", where=self.name)
        return SchemaText(file.version, file.media_type, file.body)

    def rules(self) -> dict[str, str]:
        return self._store.repositories.rules(self._repository)

    def set_rules(self, rules: Mapping[str, str]) -> None:
        self._provider.set_rules(rules, self._repository, scope_of(self._repository))

    def changes(self, after: int, limit: int, wait: float) -> ChangeSet:
        until = monotonic() + wait
        while True:
            told = self._store.repositories.changes(self._repository, after, limit)
            left = until - monotonic()
            if told.sequence > after or left <= 0 or self._ended.wait(min(left, LOOK_SECONDS)):
                self._store.repositories.acknowledge(self._repository, after)
                return told

    def state(self) -> State:
        return self._store.repositories.state(self._repository)

    def forget(self) -> None:
        self.set_rules({})
        self._store.repositories.forget(self._repository)

    def end(self) -> None:
        self._ended.set()

    def close(self) -> None:
        """The store belongs to somebody else."""
