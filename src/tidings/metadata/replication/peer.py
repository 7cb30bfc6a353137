"""HTTP client of another provider: its log, its snapshot, and forwarded registrations."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from threading import Event, Lock
from typing import Any
from urllib.parse import urlsplit

import httpx

from tidings.core.closeable import Closeable
from tidings.errors import Gone, InputError, TidingsError
from tidings.metadata.log import LogDraft, LogPage, Operation, page_from_json
from tidings.metadata.replication.log_protocol import ForwardedResponse

CONNECT_TIMEOUT_SECONDS, READ_TIMEOUT_SECONDS = 5.0, 30.0
MAX_RESPONSE_BYTES = 200_000_000
"""The limit of a response; a page of the log is smaller."""
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
        known = token or os.environ.get(TOKEN_SETTING)
        headers = {"Authorization": f"Bearer {known}"} if known else {}
        times = httpx.Timeout(READ_TIMEOUT_SECONDS, connect=CONNECT_TIMEOUT_SECONDS)
        self._client = httpx.Client(base_url=self.name, headers=headers, timeout=times, trust_env=False)
        self._sockets: list[Any] = []
        self._ended, self._guard = Event(), Lock()

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
            if response.status_code != 200:
                raise self._error(response)
            yield map(self._parsed, self._lines(response))

    def forward(self, draft: LogDraft, hops: int) -> ForwardedResponse:
        """Forward a registration. A rejection is a response, too."""
        method, path = _ENDPOINTS[draft.what]
        params = {} if draft.what is Operation.SCHEMA else {"uri": draft.uri}
        headers = {HOPS_HEADER: str(hops + 1)}
        if draft.media_type:
            headers["Content-Type"] = draft.media_type
        with self._request(method, path, params=params, headers=headers, content=draft.body) as response:
            if response.status_code in UNAVAILABLE_STATUSES:
                raise self._error(response)
            return ForwardedResponse(response.status_code, self._parsed(self._body(response)))

    def end(self) -> None:
        """Cancel the current request, and reject further ones."""
        self._ended.set()
        with self._guard, suppress(OSError):  # the connection may have ended by itself
            for each in self._sockets:
                each.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self._client.close()

    def _json(self, method: str, path: str, **more: Any) -> dict[str, Any]:
        with self._request(method, path, **more) as response:
            if response.status_code != 200:
                raise self._error(response)
            return self._parsed(self._body(response))

    @contextmanager
    def _request(self, method: str, path: str, **more: Any) -> Iterator[httpx.Response]:
        if self._ended.is_set():
            raise Unreachable("the connection is closed", where=self.name)
        extensions = {"trace": self._remember_socket}
        try:
            with self._client.stream(method, path, extensions=extensions, **more) as response:
                yield response
        except (httpx.HTTPError, httpx.StreamError) as error:
            what, hint = "the provider does not respond", "is `tidings serve` running there?"
            received = str(error) or type(error).__name__
            raise Unreachable(what, where=self.name, received=received, hint=hint) from error

    def _remember_socket(self, name: str, info: Mapping[str, Any]) -> None:
        """Trace the steps of a request: TLS replaces the socket of the connection."""
        if name in ("connection.connect_tcp.complete", "connection.start_tls.complete"):
            with self._guard:
                self._sockets = [info["return_value"].get_extra_info("socket")]
            if self._ended.is_set():  # while it was connecting
                self.end()

    def _body(self, response: httpx.Response) -> bytes:
        parts, size = [], 0
        for chunk in response.iter_bytes():
            parts.append(chunk)
            size += len(chunk)
            if size > MAX_RESPONSE_BYTES:
                raise Unreachable(
                    "the response is too large", where=self.name, accepted=f"{MAX_RESPONSE_BYTES:,} bytes"
                )
        return b"".join(parts)

    def _lines(self, response: httpx.Response) -> Iterator[bytes]:
        """Yield lines, each limited to the size of a response."""
        parts, size = [], 0
        for chunk in response.iter_bytes():
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
        if rest := b"".join(parts):
            yield rest

    def _parsed(self, body: bytes) -> dict[str, Any]:
        try:
            record = json.loads(body)
        except (ValueError, RecursionError) as error:  # nested too deeply
            raise self._invalid_response(body) from error
        if not isinstance(record, dict):
            raise self._invalid_response(body)
        return record

    def _error(self, response: httpx.Response) -> TidingsError:
        body = self._body(response)
        if response.status_code == 410:
            problem = self._parsed(body)
            message = str(problem.get("message", problem))[:500]
            return Gone("the provider no longer has it", where=self.name, received=message)
        shown = f"{response.status_code} {_error_message(body)}"
        hint = f"set {TOKEN_SETTING} to the value it has there" if response.status_code == 401 else None
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
