"""How a repository reaches a provider, whatever lies between: over HTTP, or in the same process."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from threading import Event
from time import monotonic
from typing import Any, Protocol, TypeVar
from urllib.parse import quote

import httpx

from tidings.errors import InputError, TidingsError
from tidings.metadata.change_sets import ChangeSet, RepositoryState, changes_from_json, state_from_json
from tidings.metadata.provider.provider import Provider
from tidings.metadata.replication.peer import READ_TIMEOUT_SECONDS, Peer, Unreachable
from tidings.metadata.resources import parse_natural
from tidings.metadata.sql.repository_feeds import repository_scope
from tidings.store.store import Store


@dataclass(frozen=True, slots=True)
class ProviderPosition:
    """Where a provider is in the log. `leads` if the log is its own, so that nobody is ahead of it."""

    provider: str
    position: int
    leads: bool


@dataclass(frozen=True, slots=True)
class SchemaSource:
    """A provider's schema as it is written there; `version` is told with each change set."""

    version: int
    media_type: str
    body: bytes


class ProviderLink(Protocol):
    """A way to a provider, for one repository. What is not there any more is `Gone`; who cannot be reached is
    `Unreachable`."""

    name: str

    def standing(self) -> ProviderPosition:
        """Where the provider is."""

    def schema(self) -> SchemaSource:
        """Its schema."""

    def rules(self) -> dict[str, str]:
        """The rules that it has of this repository."""

    def set_rules(self, rules: Mapping[str, str]) -> None:
        """Make these the rules that it has of this repository."""

    def changes(self, after: int, limit: int, wait: float) -> ChangeSet:
        """What moved after a number; if nothing did, that is waited for."""

    def state(self) -> RepositoryState:
        """All members of all rules, with what belongs to them."""

    def forget(self) -> None:
        """Have this repository's rules, and what it was told, forgotten there."""

    def end(self) -> None:
        """Let nobody wait any more."""

    def close(self) -> None:
        """Let go of what is held."""


# A provider in the same process: nothing lies between.


POLL_SECONDS = 0.1


class DirectLink:
    """A link to the provider of a store."""

    def __init__(self, store: Store, repository: str) -> None:
        self.name = store.database.name
        self._store, self._repository = store, repository
        self._provider, self._ended = Provider(store), Event()

    def standing(self) -> ProviderPosition:
        found = self._store.replication.status()
        return ProviderPosition(found.provider, found.position, found.leader is None)

    def schema(self) -> SchemaSource:
        file = self._store.metadata.schema()
        if file is None:
            raise Unreachable("the provider has no schema yet", where=self.name)
        return SchemaSource(file.version, file.media_type, file.body)

    def rules(self) -> dict[str, str]:
        return self._store.repositories.rules(self._repository)

    def set_rules(self, rules: Mapping[str, str]) -> None:
        self._provider.set_rules(rules, self._repository, repository_scope(self._repository))

    def changes(self, after: int, limit: int, wait: float) -> ChangeSet:
        until = monotonic() + wait
        while True:
            told = self._store.repositories.changes(self._repository, after, limit)
            left = until - monotonic()
            if told.sequence > after or left <= 0 or self._ended.wait(min(left, POLL_SECONDS)):
                self._store.repositories.acknowledge(self._repository, after)
                return told

    def state(self) -> RepositoryState:
        return self._store.repositories.state(self._repository)

    def forget(self) -> None:
        self.set_rules({})
        self._store.repositories.forget(self._repository)

    def end(self) -> None:
        self._ended.set()

    def close(self) -> None:
        """The store belongs to somebody else."""


# A provider that `tidings serve` runs, asked over HTTP.


T = TypeVar("T")

MAX_NUMBER_DIGITS = 19
LONG_TIMEOUT_SECONDS = 300.0
"""How long an answer may take for which a provider looks at everything it has."""


class HttpLink(Peer):
    """A link to the provider at an address."""

    def __init__(self, url: str, repository: str, token: str | None = None) -> None:
        super().__init__(url, token)
        repository_scope(repository)
        self._base = f"/metadata/repositories/{quote(repository, safe='')}"

    def standing(self) -> ProviderPosition:
        found = self.status()
        try:
            return ProviderPosition(
                str(found["provider"]), parse_natural(found["position"]), found["leader"] is None
            )
        except (KeyError, TypeError, ValueError) as error:
            raise self._no_provider(json.dumps(found).encode()) from error

    def schema(self) -> SchemaSource:
        with self._answered("GET", "/metadata/schema") as response:
            if response.status_code != 200:
                raise self._refusal(response)
            kind = response.headers.get("content-type", "").partition(";")[0].strip()
            tag = response.headers.get("etag", "").strip('"')
            body = self._body(response)
        if not (tag.isascii() and tag.isdecimal() and len(tag) < MAX_NUMBER_DIGITS):
            raise self._no_provider(body)
        return SchemaSource(int(tag), kind, body)

    def rules(self) -> dict[str, str]:
        return {name: str(text) for name, text in self._json("GET", f"{self._base}/rules").items()}

    def set_rules(self, rules: Mapping[str, str]) -> None:
        body = json.dumps(dict(rules)).encode()
        self._json("PUT", f"{self._base}/rules", content=body, timeout=LONG_TIMEOUT_SECONDS)

    def changes(self, after: int, limit: int, wait: float) -> ChangeSet:
        asked = {"after": str(after), "limit": str(limit), "wait": f"{wait:g}"}
        path, most = f"{self._base}/changes", wait + READ_TIMEOUT_SECONDS
        return self._told(changes_from_json, self._json("GET", path, params=asked, timeout=most))

    def state(self) -> RepositoryState:
        return self._told(
            state_from_json, self._json("GET", f"{self._base}/state", timeout=LONG_TIMEOUT_SECONDS)
        )

    def forget(self) -> None:
        """One that is not known there is forgotten already."""
        with self._answered("DELETE", self._base) as response:
            if response.status_code not in (200, 404):
                raise self._refusal(response)

    def _told(self, read: Callable[[Mapping[str, Any]], T], answer: Mapping[str, Any]) -> T:
        try:
            return read(answer)
        except InputError as problem:
            raise self._no_provider(json.dumps(answer).encode()) from problem

    def _refusal(self, response: httpx.Response) -> TidingsError:
        """What is wrong with rules is the fault of who wrote them; trying again would not help."""
        if response.status_code != 422:
            return super()._refusal(response)
        said = self._parsed(self._body(response)).get("message", "nothing about why")
        return InputError(f"the provider at {self.name} refuses the rules: {said}")
