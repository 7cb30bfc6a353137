"""HTTP client of the server: webhooks, feeds, WebSub and replication send their requests with it.

    egress policy   a host is resolved once, all its addresses are checked, and the connection goes to one of them
    connections     are kept and reused for a while, for the same origin only
    limits          seconds to connect, to read and in total; bytes of the body after decompression
    redirects       are followed by `fetch` only, and each is checked like the first address
    errors          every failure is a `FetchProblem`

A name that leads elsewhere later (DNS rebinding) gains nothing, and a certificate is never used for another name. The
environment is ignored: a proxy would resolve names itself and bypass the egress policy. The client is built on
http.client, because httpx takes five times as long for a request.
"""

from __future__ import annotations

import errno
import socket
import ssl
import zlib
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from http.client import HTTPConnection, HTTPException, HTTPMessage, HTTPResponse, RemoteDisconnected
from importlib.metadata import version
from threading import Lock
from time import monotonic
from typing import NamedTuple
from urllib.parse import quote, urlsplit

from tidings.core.iris import resolve_iri
from tidings.core.lifecycle import Closeable
from tidings.operations.deadlines import DeadlineGuard, Deadlines
from tidings.operations.egress_policy import EgressPolicy, FetchProblem, split_host

default_tls_context = cache(ssl.create_default_context)
"""The certificate authorities of this machine. Reading them takes as long as twenty requests."""

MAX_IDLE_CONNECTIONS = 200
"""Maximum number of idle connections; the one that was idle longest is closed first."""
CHUNK_BYTES = 65_536
REDIRECTS, PERMANENT_REDIRECTS = (301, 302, 303, 307, 308), (301, 308)
SAFE_IN_TARGETS = "%/:=&?~+!$,;'@()*[]|"
"""Characters of paths and queries that are sent as they are. Others are percent-encoded."""

Origin = tuple[str, str, int]


def build_user_agent(purpose: str) -> str:
    """Return the User-Agent header of requests for a purpose."""
    return f"Tidings/{version('tidings')} ({purpose})"


@dataclass(frozen=True, slots=True)
class HttpLimits:
    """Limits of requests. Times are in seconds, `size` is in bytes.

    `total` limits a whole response, so that one that trickles ends. Connections older than `keep_alive` are not reused.
    A body of more than `size` is an error, or cut off there with `truncate`, which leaves it compressed.
    """

    connect: float = 5.0
    read: float = 15.0
    total: float = 20.0
    keep_alive: float = 60.0
    size: int = 10_000
    truncate: bool = False
    redirects: int = 5


@dataclass(frozen=True, slots=True)
class HttpResponse:
    """A response, its URL, and the URL to which the first one has moved permanently, if it has.

    Header names are in lower case; the body is decompressed.
    """

    status: int
    url: str
    moved: str | None
    headers: Mapping[str, str]
    body: bytes


class _Request(NamedTuple):
    method: str
    url: str
    headers: Mapping[str, str]
    body: bytes
    inside_host: str | None

    @property
    def target(self) -> str:
        parts = urlsplit(self.url)
        path = quote(parts.path or "/", SAFE_IN_TARGETS)
        return f"{path}?{quote(parts.query, SAFE_IN_TARGETS)}" if parts.query else path


def origin_of(url: str) -> Origin:
    """Return scheme, host and port of a URL."""
    host, port = split_host(url)
    return urlsplit(url).scheme, host, port


class _Connection(HTTPConnection):
    """A connection to a checked address that speaks to the host of the URL."""

    def __init__(self, origin: Origin, inside_host: str | None, limits: HttpLimits) -> None:
        self.key, self._limits = (origin, inside_host), limits
        scheme, host, port = origin
        self.default_port = {"http": 80, "https": 443}[scheme]
        super().__init__(f"[{host}]" if ":" in host else host, port)
        self.made, self.is_reusable = monotonic(), False

    def open(self, addresses: Sequence[str], url: str, tls: ssl.SSLContext, guard: DeadlineGuard) -> None:
        """Connect to the first address that accepts, with TLS for https."""
        scheme, host, port = self.key[0]
        try:
            self.sock = _connect_first(addresses, port, self._limits.connect, guard)
            self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            guard.hold(self.sock)
            if scheme == "https":
                self.sock = tls.wrap_socket(self.sock, server_hostname=host)
        except TimeoutError as error:
            accepted = f"{self._limits.connect:g} seconds"
            raise FetchProblem("the connection timed out", where=url, accepted=accepted) from error

    def exchange(self, request: _Request, read_seconds: float, guard: DeadlineGuard) -> HTTPResponse:
        """Send a request; return the response when its headers have arrived."""
        self.is_reusable = False
        self.sock.settimeout(read_seconds)
        guard.hold(self.sock)
        headers = {name: value.encode() for name, value in request.headers.items()}
        self.request(request.method, request.target, request.body or None, headers)
        return self.getresponse()


def _connect_first(
    addresses: Sequence[str], port: int, seconds: float, guard: DeadlineGuard
) -> socket.socket:
    for address in addresses[:-1]:
        try:
            return socket.create_connection((address, port), seconds)
        except OSError:
            if guard.ended:
                raise
    return socket.create_connection((addresses[-1], port), seconds)


class HttpStream:
    """A response whose body is read while it arrives."""

    def __init__(
        self,
        connection: _Connection,
        response: HTTPResponse,
        url: str,
        limits: HttpLimits,
        guard: DeadlineGuard,
    ) -> None:
        self.status, self.headers, self.url = response.status, _join_headers(response.msg), url
        self._connection, self._response, self._limits, self._guard = connection, response, limits, guard

    def read(self) -> bytes:
        """Read the body up to its limit: a few compressed kilobytes may expand to gigabytes."""
        most, parts, size = self._limits.size, [], 0
        for chunk in self._raw_chunks() if self._limits.truncate else self.chunks():
            parts.append(chunk)
            size += len(chunk)
            if size > most and self._limits.truncate:
                break
            if size > most:
                message = "the response is too large"
                raise FetchProblem(message, where=self.url, accepted=f"{most:,} bytes")
        return b"".join(parts)[:most]

    def chunks(self) -> Iterator[bytes]:
        """Yield the decompressed body. One that was cut short is an error."""
        encoding = self.headers.get("content-encoding", "identity").strip().lower()
        if encoding in ("identity", ""):
            yield from self._raw_chunks()
        elif encoding in ("gzip", "x-gzip"):
            with _classify_errors(self.url, self._limits.read):
                yield from self._gunzip()
        else:
            message = "unsupported compression"
            raise FetchProblem(message, where=self.url, received=encoding[:40], accepted="gzip")

    def _gunzip(self) -> Iterator[bytes]:
        unpack = zlib.decompressobj(wbits=31)
        for chunk in self._raw_chunks():
            if unpack.eof:  # zlib would buffer everything that follows
                raise FetchProblem("unexpected data after the compressed response", where=self.url)
            while chunk:
                yield unpack.decompress(chunk, CHUNK_BYTES)
                chunk = unpack.unconsumed_tail
        if not unpack.eof:
            raise FetchProblem("the response was cut short", where=self.url)

    def _raw_chunks(self) -> Iterator[bytes]:
        with _classify_errors(self.url, self._limits.read):
            while chunk := self._response.read1(CHUNK_BYTES):
                yield chunk
            if self._response.length or self._guard.ended:  # without a length, it looks complete
                raise FetchProblem("the response was cut short", where=self.url)
            self._connection.is_reusable = not self._response.will_close
            self._response.close()


def _join_headers(message: HTTPMessage) -> Mapping[str, str]:
    """Join headers of the same name with commas (RFC 9110, section 5.3). They may be UTF-8."""
    headers: dict[str, str] = {}
    for name, value in message.items():
        text = _decode_header(value)
        headers[name.lower()] = f"{headers[name.lower()]}, {text}" if name.lower() in headers else text
    return headers


def _decode_header(value: str) -> str:
    try:
        return value.encode("latin-1").decode()
    except UnicodeError:
        return value


class HttpClient(Closeable):
    """HTTP client; safe to use from several threads."""

    def __init__(
        self,
        limits: HttpLimits | None = None,
        egress: EgressPolicy | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.limits, self.egress = limits or HttpLimits(), egress or EgressPolicy()
        self._tls = tls or default_tls_context()
        self._idle: OrderedDict[_Connection, None] = OrderedDict()
        self._lock = Lock()
        self._deadlines = Deadlines()

    def fetch(
        self, url: str, headers: Mapping[str, str] | None = None, inside_host: str | None = None
    ) -> HttpResponse:
        """Get a URL and follow redirects. An Authorization header is sent to the origin of the URL only."""
        public = {name: value for name, value in (headers or {}).items() if name.lower() != "authorization"}
        here, moved, is_permanent = url, None, True
        for _ in range(self.limits.redirects + 1):
            is_same_origin = origin_of(here) == origin_of(url)
            response = self.request("GET", here, headers if is_same_origin else public, b"", inside_host)
            location = response.headers.get("location")
            if response.status not in REDIRECTS or not location:
                return replace(response, moved=moved)
            here = resolve_iri(here, location).partition("#")[0]
            is_permanent = is_permanent and response.status in PERMANENT_REDIRECTS
            moved = here if is_permanent else moved
        raise FetchProblem("too many redirects", where=url, accepted=f"{self.limits.redirects} of them")

    def request(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str] | None = None,
        body: bytes = b"",
        inside_host: str | None = None,
    ) -> HttpResponse:
        """Send a request and read the response. `inside_host` may be in a private network."""
        with self.stream(method, url, headers, body, inside_host) as response:
            return HttpResponse(response.status, url, None, response.headers, response.read())

    @contextmanager
    def stream(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str] | None = None,
        body: bytes = b"",
        inside_host: str | None = None,
        read_seconds: float | None = None,
    ) -> Iterator[HttpStream]:
        """Send a request; the body of the response is read in the `with` block."""
        limits = self.limits if read_seconds is None else replace(self.limits, read=read_seconds)
        request = _Request(method, url, headers or {}, body, inside_host)
        with self._deadlines.limit(limits.total, url) as guard:
            with _classify_errors(url, limits.read):
                connection, response = self._send(request, limits, guard)
            try:
                yield HttpStream(connection, response, url, limits, guard)
            finally:
                self._put_back(connection)

    def end(self) -> None:
        """Cancel requests in progress and reject further ones."""
        self._deadlines.end()

    def close(self) -> None:
        self._deadlines.close()
        with self._lock:
            for connection in self._idle:
                connection.close()
            self._idle.clear()

    def _send(
        self, request: _Request, limits: HttpLimits, guard: DeadlineGuard
    ) -> tuple[_Connection, HTTPResponse]:
        """Send a request over an idle connection or a new one."""
        origin = origin_of(request.url)
        idle = self._take_idle((origin, request.inside_host))
        if idle is not None:
            try:
                return idle, idle.exchange(request, limits.read, guard)
            except ConnectionError:  # the server has closed it while it was idle
                idle.close()
                if guard.ended:
                    raise
            except BaseException:
                idle.close()
                raise
        addresses = self.egress.reach(request.url, request.inside_host)
        connection = _Connection(origin, request.inside_host, limits)
        try:
            connection.open(addresses, request.url, self._tls, guard)
            return connection, connection.exchange(request, limits.read, guard)
        except BaseException:
            connection.close()
            raise

    def _take_idle(self, key: tuple[Origin, str | None]) -> _Connection | None:
        """Take the idle connection that was used last."""
        with self._lock:
            connection = next((idle for idle in reversed(self._idle) if idle.key == key), None)
            if connection is None:
                return None
            del self._idle[connection]
        if connection.made > monotonic() - self.limits.keep_alive:
            return connection
        connection.close()
        return None

    def _put_back(self, connection: _Connection) -> None:
        """Keep a connection whose last response was read to its end."""
        if not connection.is_reusable or self.limits.keep_alive <= 0:
            connection.close()
            return
        with self._lock:
            self._idle[connection] = None
            oldest = self._idle.popitem(last=False)[0] if len(self._idle) > MAX_IDLE_CONNECTIONS else None
        if oldest is not None:
            oldest.close()


_ENDED = "the server closed the connection without a response"
_UNREACHABLE = ("no route to the host", "is this machine on the network?")
_BY_ERRNO: Mapping[int | None, tuple[str, str | None]] = {
    errno.ECONNREFUSED: ("connection refused", "is the server running, on this port?"),
    errno.ECONNRESET: (_ENDED, None),
    errno.EPIPE: (_ENDED, None),
    errno.EHOSTUNREACH: _UNREACHABLE,
    errno.ENETUNREACH: _UNREACHABLE,
}
_PLAIN_HTTP = ("WRONG_VERSION_NUMBER", "HTTP_REQUEST", "RECORD_LAYER_FAILURE")
"""OpenSSL's reasons for a server that answers in plain HTTP."""


@contextmanager
def _classify_errors(url: str, read_seconds: float) -> Iterator[None]:
    """Turn every failure of a request into a `FetchProblem` with the URL."""
    try:
        yield
    except TimeoutError as error:
        accepted = f"{read_seconds:g} seconds"
        raise FetchProblem("the response timed out", where=url, accepted=accepted) from error
    except (OSError, HTTPException, ValueError, zlib.error) as error:  # an invalid header is a ValueError
        raise _describe_failure(error, url) from error


def _describe_failure(error: Exception, url: str) -> FetchProblem:
    if isinstance(error, ssl.SSLCertVerificationError):
        reason = error.verify_message.rstrip(".")
        return FetchProblem("the server's certificate is not trusted", where=url, received=reason)
    if isinstance(error, ssl.SSLError):
        reason = error.reason or "the connection ended"
        hint = "does it answer at http:// instead?" if reason in _PLAIN_HTTP else None
        received = reason.replace("_", " ").lower()
        return FetchProblem("the TLS handshake failed", where=url, received=received, hint=hint)
    if isinstance(error, RemoteDisconnected):
        return FetchProblem(_ENDED, where=url)
    if isinstance(error, OSError) and error.errno in _BY_ERRNO:
        message, hint = _BY_ERRNO[error.errno]
        return FetchProblem(message, where=url, hint=hint)
    return FetchProblem("invalid HTTP response", where=url, received=str(error)[:200])
