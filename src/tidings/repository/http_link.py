"""A provider that `tidings serve` runs, asked over HTTP."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, TypeVar
from urllib.parse import quote

import httpx

from tidings.backbone.peer import READ_SECONDS, Peer
from tidings.errors import InputError, TidingsError
from tidings.metadata.as_json import natural
from tidings.metadata.change_sets import ChangeSet, State, changes_from_json, state_from_json
from tidings.repository.links import SchemaText, Standing
from tidings.store.repositories import scope_of

T = TypeVar("T")

LONGEST_NUMBER = 19
LONG_SECONDS = 300.0
"""How long an answer may take for which a provider looks at everything it has."""


class HttpLink(Peer):
    """A link to the provider at an address."""

    def __init__(self, url: str, repository: str, token: str | None = None) -> None:
        super().__init__(url, token)
        scope_of(repository)
        self._base = f"/metadata/repositories/{quote(repository, safe='')}"

    def standing(self) -> Standing:
        found = self.status()
        try:
            return Standing(str(found["provider"]), natural(found["position"]), found["leader"] is None)
        except (KeyError, TypeError, ValueError) as error:
            raise self._no_provider(json.dumps(found).encode()) from error

    def schema(self) -> SchemaText:
        with self._answered("GET", "/metadata/schema") as response:
            if response.status_code != 200:
                raise self._refusal(response)
            kind = response.headers.get("content-type", "").partition(";")[0].strip()
            tag = response.headers.get("etag", "").strip('"')
            body = self._body(response)
        if not (tag.isascii() and tag.isdecimal() and len(tag) < LONGEST_NUMBER):
            raise self._no_provider(body)
        return SchemaText(int(tag), kind, body)

    def rules(self) -> dict[str, str]:
        return {name: str(text) for name, text in self._json("GET", f"{self._base}/rules").items()}

    def set_rules(self, rules: Mapping[str, str]) -> None:
        body = json.dumps(dict(rules)).encode()
        self._json("PUT", f"{self._base}/rules", content=body, timeout=LONG_SECONDS)

    def changes(self, after: int, limit: int, wait: float) -> ChangeSet:
        asked = {"after": str(after), "limit": str(limit), "wait": f"{wait:g}"}
        path, most = f"{self._base}/changes", wait + READ_SECONDS
        return self._told(changes_from_json, self._json("GET", path, params=asked, timeout=most))

    def state(self) -> State:
        return self._told(state_from_json, self._json("GET", f"{self._base}/state", timeout=LONG_SECONDS))

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
