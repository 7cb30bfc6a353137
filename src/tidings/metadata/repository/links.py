"""Links from a repository to a provider: over HTTP, or in the same process."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from threading import Event
from time import monotonic
from typing import Any, Protocol, TypeVar
from urllib.parse import quote

from tidings.errors import InputError, TidingsError
from tidings.metadata.change_sets import ChangeSet, RepositoryState, changes_from_json, state_from_json
from tidings.metadata.provider.provider import Provider
from tidings.metadata.replication.peer import READ_TIMEOUT_SECONDS, Peer, Unreachable
from tidings.metadata.resources import parse_natural
from tidings.metadata.sql.metadata_reader import SchemaFile
from tidings.metadata.sql.repository_feeds import repository_scope
from tidings.operations.http_client import HttpStream
from tidings.store.store import Store


@dataclass(frozen=True, slots=True)
class ProviderPosition:
    """The position of a provider in the log. `leads` if the log is its own, so that no provider is ahead of it."""

    provider: str
    position: int
    leads: bool


class ProviderLink(Protocol):
    """A link to a provider for one repository. Methods raise `Gone` for trimmed data, and `Unreachable`."""

    name: str

    def provider_position(self) -> ProviderPosition:
        """Return the position of the provider."""

    def schema(self) -> SchemaFile:
        """Return its schema."""

    def rules(self) -> dict[str, str]:
        """Return the rules of this repository at the provider."""

    def set_rules(self, rules: Mapping[str, str]) -> None:
        """Replace the rules of this repository at the provider."""

    def changes(self, after: int, limit: int, wait: float) -> ChangeSet:
        """Return the moves after a sequence number; wait for them if there are none."""

    def state(self) -> RepositoryState:
        """Return all members of all rules, with the resources they need."""

    def forget(self) -> None:
        """Delete this repository's rules and cursor at the provider."""

    def end(self) -> None:
        """Cancel waiting requests."""

    def close(self) -> None:
        """Release connections."""


POLL_SECONDS = 0.1


class DirectLink:
    """A link to the provider of a store in the same process."""

    def __init__(self, store: Store, repository: str) -> None:
        self.name = store.database.name
        self._store, self._repository = store, repository
        self._provider, self._ended = Provider(store), Event()

    def provider_position(self) -> ProviderPosition:
        status = self._store.replication.status()
        return ProviderPosition(status.provider, status.position, status.leader is None)

    def schema(self) -> SchemaFile:
        file = self._store.metadata.schema()
        if file is None:
            raise Unreachable("the provider has no schema yet", where=self.name)
        return file

    def rules(self) -> dict[str, str]:
        return self._store.repositories.rules(self._repository)

    def set_rules(self, rules: Mapping[str, str]) -> None:
        self._provider.set_rules(rules, self._repository, repository_scope(self._repository))

    def changes(self, after: int, limit: int, wait: float) -> ChangeSet:
        until = monotonic() + wait
        while True:
            changes = self._store.repositories.changes(self._repository, after, limit)
            left = until - monotonic()
            if changes.sequence > after or left <= 0 or self._ended.wait(min(left, POLL_SECONDS)):
                self._store.repositories.acknowledge(self._repository, after)
                return changes

    def state(self) -> RepositoryState:
        return self._store.repositories.state(self._repository)

    def forget(self) -> None:
        self.set_rules({})
        self._store.repositories.forget(self._repository)

    def end(self) -> None:
        self._ended.set()

    def close(self) -> None:
        """Do nothing: the store belongs to the caller."""


T = TypeVar("T")

MAX_NUMBER_DIGITS = 19
LONG_TIMEOUT_SECONDS = 300.0
"""The timeout of requests for which a provider reads all its data."""


class HttpLink(Peer):
    """A link over HTTP to a provider that `tidings serve` runs."""

    def __init__(self, url: str, repository: str, token: str | None = None) -> None:
        super().__init__(url, token)
        repository_scope(repository)
        self._base = f"/metadata/repositories/{quote(repository, safe='')}"

    def provider_position(self) -> ProviderPosition:
        status = self.status()
        try:
            position = parse_natural(status["position"])
            return ProviderPosition(str(status["provider"]), position, status["leader"] is None)
        except (KeyError, TypeError, ValueError) as error:
            raise self._invalid_response(json.dumps(status).encode()) from error

    def schema(self) -> SchemaFile:
        with self._request("GET", "/metadata/schema") as response:
            if response.status != 200:
                raise self._error(response)
            kind = response.headers.get("content-type", "").partition(";")[0].strip()
            tag = response.headers.get("etag", "").strip('"')
            body = response.read()
        if not (tag.isascii() and tag.isdecimal() and len(tag) < MAX_NUMBER_DIGITS):
            raise self._invalid_response(body)
        return SchemaFile(kind, body, int(tag))

    def rules(self) -> dict[str, str]:
        return {name: str(text) for name, text in self._json("GET", f"{self._base}/rules").items()}

    def set_rules(self, rules: Mapping[str, str]) -> None:
        body = json.dumps(dict(rules)).encode()
        self._json("PUT", f"{self._base}/rules", content=body, timeout=LONG_TIMEOUT_SECONDS)

    def changes(self, after: int, limit: int, wait: float) -> ChangeSet:
        params = {"after": str(after), "limit": str(limit), "wait": f"{wait:g}"}
        path, timeout = f"{self._base}/changes", wait + READ_TIMEOUT_SECONDS
        return self._parse(changes_from_json, self._json("GET", path, params=params, timeout=timeout))

    def state(self) -> RepositoryState:
        return self._parse(
            state_from_json, self._json("GET", f"{self._base}/state", timeout=LONG_TIMEOUT_SECONDS)
        )

    def forget(self) -> None:
        """Delete this repository at the provider; one that is unknown there is already deleted."""
        with self._request("DELETE", self._base) as response:
            if response.status not in (200, 404):
                raise self._error(response)

    def _parse(self, parse: Callable[[Mapping[str, Any]], T], response: Mapping[str, Any]) -> T:
        try:
            return parse(response)
        except InputError as problem:
            raise self._invalid_response(json.dumps(response).encode()) from problem

    def _error(self, response: HttpStream) -> TidingsError:
        """Turn rejected rules into an InputError: trying again would not help."""
        if response.status != 422:
            return super()._error(response)
        reason = self._parse_record(response.read()).get("message", "no reason given")
        return InputError(f"the provider at {self.name} rejects the rules: {reason}")
