"""Another provider, asked over HTTP: for its log, for a snapshot, and to register something."""

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
"""Bytes of an answer; a page of the log has fewer."""
TOKEN_SETTING = "TIDINGS_RPC_TOKEN"
"""The variable of the environment with the token that the providers of a backbone share."""

UNAVAILABLE_STATUSES = (401, 500, 502, 503, 504)
"""What is no answer to a registration: it may be asked again."""
HOPS_HEADER = "Tidings-Hops"
"""The header that says how often a registration was handed on: providers that follow each other in a circle would do so
for ever."""


class Unreachable(TidingsError):
    """Another provider does not answer, or not as a provider."""


class Peer(Closeable):
    """A provider at an address. It is asked by one thread; any other may end that."""

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
        """Where it stands; `seconds` is how long that may take."""
        return self._json("GET", "/metadata/status", timeout=seconds)

    def page(self, after: int, limit: int, wait: float) -> LogPage:
        """A page of its log."""
        asked = {"after": str(after), "limit": str(limit), "wait": f"{wait:g}"}
        return page_from_json(
            self._json("GET", "/metadata/log", params=asked, timeout=wait + READ_TIMEOUT_SECONDS)
        )

    @contextmanager
    def snapshot(self) -> Iterator[Iterator[Mapping[str, Any]]]:
        """Everything it has, line by line; an answer that was cut short is an error."""
        with self._answered("GET", "/metadata/snapshot") as response:
            if response.status_code != 200:
                raise self._refusal(response)
            yield map(self._parsed, self._lines(response))

    def forward(self, draft: LogDraft, hops: int) -> ForwardedResponse:
        """Have something registered there. What is refused is an answer, too."""
        method, path = _ENDPOINTS[draft.what]
        params = {} if draft.what is Operation.SCHEMA else {"uri": draft.uri}
        said = {HOPS_HEADER: str(hops + 1)} | ({"Content-Type": draft.media_type} if draft.media_type else {})
        with self._answered(method, path, params=params, headers=said, content=draft.body) as response:
            if response.status_code in UNAVAILABLE_STATUSES:
                raise self._refusal(response)
            return ForwardedResponse(response.status_code, self._parsed(self._body(response)))

    def end(self) -> None:
        """End what is under way: it fails. Nothing can be asked after that."""
        self._ended.set()
        with self._guard, suppress(OSError):  # the connection ended by itself just now
            for each in self._sockets:
                each.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self._client.close()

    def _json(self, method: str, path: str, **more: Any) -> dict[str, Any]:
        with self._answered(method, path, **more) as response:
            if response.status_code != 200:
                raise self._refusal(response)
            return self._parsed(self._body(response))

    @contextmanager
    def _answered(self, method: str, path: str, **more: Any) -> Iterator[httpx.Response]:
        if self._ended.is_set():
            raise Unreachable("it is asked no more", where=self.name)
        extensions = {"trace": self._hold}
        try:
            with self._client.stream(method, path, extensions=extensions, **more) as response:
                yield response
        except (httpx.HTTPError, httpx.StreamError) as error:
            what, hint = "the provider does not answer", "does `tidings serve` run there?"
            said = str(error) or type(error).__name__
            raise Unreachable(what, where=self.name, received=said, hint=hint) from error

    def _hold(self, name: str, info: Mapping[str, Any]) -> None:
        """Called at each step of a request; with TLS the connection has another socket than before."""
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
                    "the answer is too large", where=self.name, accepted=f"{MAX_RESPONSE_BYTES:,} bytes"
                )
        return b"".join(parts)

    def _lines(self, response: httpx.Response) -> Iterator[bytes]:
        """Line by line; none of them is longer than an answer may be."""
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
            found = json.loads(body)
        except (ValueError, RecursionError) as error:  # nested too deeply
            raise self._no_provider(body) from error
        if not isinstance(found, dict):
            raise self._no_provider(body)
        return found

    def _refusal(self, response: httpx.Response) -> TidingsError:
        body = self._body(response)
        if response.status_code == 410:
            return Gone(
                "what is asked for is kept there no more", where=self.name, received=_said(self._parsed(body))
            )
        shown = f"{response.status_code} {_told(body)}"
        hint = f"set {TOKEN_SETTING} as it is set there" if response.status_code == 401 else None
        return Unreachable("the provider refuses to answer", where=self.name, received=shown, hint=hint)

    def _no_provider(self, body: bytes) -> Unreachable:
        shown = body[:200].decode(errors="replace")
        return Unreachable("this is not the answer of a provider", where=self.name, received=shown)


_ENDPOINTS = {
    Operation.REGISTER: ("PUT", "/metadata/documents"),
    Operation.REMOVE: ("DELETE", "/metadata/documents"),
    Operation.SCHEMA: ("PUT", "/metadata/schema"),
}


def _told(body: bytes) -> str:
    """What an answer says that is no good one: the message of a problem, or how it begins."""
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        found = None
    message = found.get("message") if isinstance(found, dict) else None
    return str(message)[:500] if message else body[:200].decode(errors="replace")


def _said(answer: Mapping[str, Any]) -> str:
    return str(answer.get("message", answer))[:500]


def normalize_peer_url(url: str) -> str:
    """The address of a provider, without a slash at the end."""
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
        raise InputError("this is no address of a provider", received=url[:200], accepted=accepted)
    if parts.username or parts.password:
        hint = f"a token goes into the variable {TOKEN_SETTING}"
        raise InputError("an address of a provider has no name and no password", accepted=accepted, hint=hint)
    return url.rstrip("/")
