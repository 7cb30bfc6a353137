"""Protocols of replicated logs, and the HTTP client of another provider."""

from __future__ import annotations

import json
import os
from abc import abstractmethod
from collections.abc import Collection, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from math import inf
from typing import Any, Protocol
from urllib.parse import urlencode, urlsplit

from tidings.core.lifecycle import Closeable
from tidings.errors import Gone, InputError, SetupError, TidingsError
from tidings.metadata.log import LogDraft, LogPage, Operation, page_from_json
from tidings.metadata.provider.provider import Provider
from tidings.operations.egress_policy import FetchProblem
from tidings.operations.http_client import HttpClient, HttpLimits, HttpStream, build_user_agent


class ReplicationLog(Protocol):
    """A log that a provider can follow; with `has_snapshots`, it can start from a snapshot."""

    name: str
    has_snapshots: bool

    def page(self, after: int, limit: int, wait: float) -> LogPage:
        """Return the entries after a position; wait if there are none. Raise `Gone` if they were trimmed."""

    def snapshot(self) -> AbstractContextManager[Iterator[Mapping[str, Any]]]:
        """Stream a snapshot, line by line."""

    def end(self) -> None:
        """Cancel waiting calls."""

    def close(self) -> None:
        """Release connections."""


@dataclass(frozen=True, slots=True)
class ForwardedResponse:
    """The response to a forwarded registration: an HTTP status and its JSON body."""

    status: int
    answer: dict[str, Any]

    @property
    def position(self) -> int | None:
        """The position of the entry in the log; None if it was rejected."""
        position = self.answer.get("position")
        return position if self.status == 200 and isinstance(position, int) else None


class LogKeeper(Protocol):
    """The owner of a log, which assigns positions."""

    name: str

    def forward(self, draft: LogDraft, hops: int) -> ForwardedResponse:
        """Append a valid draft to the log; `hops` is how often it was forwarded before."""


class SharedReplicationLog(Closeable):
    """A log that several providers share: each appends its registrations and applies all entries.

    The database or broker assigns positions, so there is no leader.
    """

    has_snapshots = False

    def __init__(self, name: str, provider: Provider) -> None:
        self.name, self._provider = name, provider

    @abstractmethod
    def page(self, after: int, limit: int, wait: float) -> LogPage:
        """See `ReplicationLog`."""

    @abstractmethod
    def append(self, draft: LogDraft) -> int:
        """Append a draft durably, and return its position."""

    @abstractmethod
    def last_of(self, uris: Collection[str], after: int) -> dict[str, Operation]:
        """Return the operation of the last entry after a position for each of these documents that has one."""

    @abstractmethod
    def end(self) -> None:
        """See `ReplicationLog`."""

    @contextmanager
    def snapshot(self) -> Iterator[Iterator[Mapping[str, Any]]]:
        """Raise SetupError: the database or broker has entries only, and no metadata."""
        hint = "start with the snapshot of another provider: tidings provider follow URL --once"
        raise SetupError("the log was trimmed after this provider's position", where=self.name, hint=hint)
        yield iter(())

    def forward(self, draft: LogDraft, hops: int = 0) -> ForwardedResponse:
        """Validate a draft against the state here and append it to the log.

        A document that was registered elsewhere can be removed before that is applied here: the log has its entry.
        """
        self._provider.check([draft])
        self._provider.check_removals([draft], self)
        return ForwardedResponse(200, {"uri": draft.uri, "position": self.append(draft)})


READ_TIMEOUT_SECONDS = 30.0
MAX_RESPONSE_BYTES = 200_000_000
"""The limit of a response; a page of the log is smaller."""
LIMITS = HttpLimits(connect=5.0, read=READ_TIMEOUT_SECONDS, total=inf, size=MAX_RESPONSE_BYTES)
TOKEN_SETTING = "TIDINGS_RPC_TOKEN"
"""The environment variable with the token that the providers of a backbone share."""

UNAVAILABLE_STATUSES = (401, 500, 502, 503, 504)
"""Statuses that leave a registration undecided: it may be tried again."""
HOPS_HEADER = "Tidings-Hops"
"""The header that counts how often a registration was forwarded: in a cycle of followers, it would be forever."""


class Unreachable(TidingsError):
    """Another provider does not respond, or its response is invalid."""


class Peer(Closeable):
    """Client of the provider at an address. One thread sends requests; any other may call `end`."""

    has_snapshots = True

    def __init__(self, url: str, token: str | None = None) -> None:
        self.name = normalize_peer_url(url)
        secret = token or os.environ.get(TOKEN_SETTING)
        self._headers = {"user-agent": build_user_agent("metadata provider"), "accept-encoding": "gzip"}
        self._headers |= {"authorization": f"Bearer {secret}"} if secret else {}
        self._client = HttpClient(LIMITS)

    def status(self, seconds: float = READ_TIMEOUT_SECONDS) -> dict[str, Any]:
        """Fetch its id, position and leader."""
        return self._json("GET", "/metadata/status", timeout=seconds)

    def page(self, after: int, limit: int, wait: float) -> LogPage:
        """Fetch a page of its log by long polling."""
        params = {"after": str(after), "limit": str(limit), "wait": f"{wait:g}"}
        return page_from_json(
            self._json("GET", "/metadata/log", params=params, timeout=wait + READ_TIMEOUT_SECONDS)
        )

    @contextmanager
    def snapshot(self) -> Iterator[Iterator[Mapping[str, Any]]]:
        """Stream a snapshot, line by line; a truncated response is an error."""
        with self._request("GET", "/metadata/snapshot") as response:
            if response.status != 200:
                raise self._error(response)
            yield map(self._parse_record, self._lines(response))

    def forward(self, draft: LogDraft, hops: int) -> ForwardedResponse:
        """Forward a registration. A rejection is a response, too."""
        method, path = _ENDPOINTS[draft.what]
        params = {} if draft.what is Operation.SCHEMA else {"uri": draft.uri}
        headers = {HOPS_HEADER: str(hops + 1)}
        if draft.media_type:
            headers["Content-Type"] = draft.media_type
        with self._request(method, path, params=params, headers=headers, content=draft.body) as response:
            if response.status in UNAVAILABLE_STATUSES:
                raise self._error(response)
            return ForwardedResponse(response.status, self._parse_record(response.read()))

    def end(self) -> None:
        """Cancel the current request, and reject further ones."""
        self._client.end()

    def close(self) -> None:
        self._client.close()

    def _json(self, method: str, path: str, **options: Any) -> dict[str, Any]:
        with self._request(method, path, **options) as response:
            if response.status != 200:
                raise self._error(response)
            return self._parse_record(response.read())

    @contextmanager
    def _request(
        self,
        method: str,
        path: str,
        params: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        content: bytes = b"",
        timeout: float = READ_TIMEOUT_SECONDS,
    ) -> Iterator[HttpStream]:
        url = self.name + path + (f"?{urlencode(params)}" if params else "")
        host, sent = urlsplit(self.name).hostname, self._headers | dict(headers or {})
        try:
            with self._client.stream(method, url, sent, content, host, timeout) as response:
                yield response
        except FetchProblem as problem:
            message, hint = "the provider does not respond", "is `tidings serve` running there?"
            received = f"{problem.what}: {problem.received}" if problem.received else problem.what
            raise Unreachable(message, where=self.name, received=received, hint=hint) from problem

    def _lines(self, response: HttpStream) -> Iterator[bytes]:
        """Yield lines, each limited to the size of a response."""
        parts, size = [], 0
        for chunk in response.chunks():
            first, *others = chunk.split(b"\n")
            parts.append(first)
            for other in others:
                yield b"".join(parts)
                parts, size = [other], 0
            size += len(parts[-1])
            if size > MAX_RESPONSE_BYTES:
                raise Unreachable(
                    "a line is too long", where=self.name, accepted=f"{MAX_RESPONSE_BYTES:,} bytes"
                )
        if last_line := b"".join(parts):
            yield last_line

    def _parse_record(self, body: bytes) -> dict[str, Any]:
        try:
            record = json.loads(body)
        except (ValueError, RecursionError) as error:  # nested too deeply
            raise self._invalid_response(body) from error
        if not isinstance(record, dict):
            raise self._invalid_response(body)
        return record

    def _error(self, response: HttpStream) -> TidingsError:
        body = response.read()
        if response.status == 410:
            problem = self._parse_record(body)
            message = str(problem.get("message", problem))[:500]
            return Gone("the provider no longer has it", where=self.name, received=message)
        shown = f"{response.status} {_error_message(body)}"
        hint = f"set {TOKEN_SETTING} to the value it has there" if response.status == 401 else None
        return Unreachable("the provider rejects the request", where=self.name, received=shown, hint=hint)

    def _invalid_response(self, body: bytes) -> Unreachable:
        shown = body[:200].decode(errors="replace")
        return Unreachable("this is not the response of a provider", where=self.name, received=shown)


_ENDPOINTS = {
    Operation.REGISTER: ("PUT", "/metadata/documents"),
    Operation.REMOVE: ("DELETE", "/metadata/documents"),
    Operation.SCHEMA: ("PUT", "/metadata/schema"),
}


def _error_message(body: bytes) -> str:
    """Return the message of an error response, or its beginning."""
    try:
        record = json.loads(body)
    except (ValueError, RecursionError):
        record = None
    message = record.get("message") if isinstance(record, dict) else None
    return str(message)[:500] if message else body[:200].decode(errors="replace")


def normalize_peer_url(url: str) -> str:
    """Check the address of a provider and remove a trailing slash."""
    accepted = "http://HOST:PORT"
    try:
        parts = urlsplit(url)
        right = (
            parts.scheme in ("http", "https")
            and bool(parts.hostname)
            and (parts.port is None or parts.port > 0)
        )
    except ValueError:
        right = False
    if not right or parts.query or parts.fragment:
        raise InputError("not an address of a provider", received=url[:200], accepted=accepted)
    if parts.username or parts.password:
        hint = f"set a token with the environment variable {TOKEN_SETTING}"
        raise InputError(
            "the address of a provider cannot contain a user or password", accepted=accepted, hint=hint
        )
    return url.rstrip("/")
