"""HTTP client for feeds: conditional requests, limited in size and time, one at a time per host.

Redirects are followed here, because the egress policy checks each address, and because only permanent ones mean that a
feed has moved. The environment is ignored: a proxy would resolve names itself and bypass the egress policy.
"""

from __future__ import annotations

import socket
import ssl
import zlib
from base64 import b64encode
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from threading import Event, Lock, Timer
from typing import Any
from urllib.parse import unquote, urlsplit
from weakref import WeakValueDictionary

import httpx

from tidings.core.closeable import Closeable
from tidings.core.iris import resolve_iri
from tidings.errors import InputError
from tidings.operations.egress_policy import EgressPolicy, FetchProblem, split_host
from tidings.operations.http_errors import translate_http_errors

# Names and passwords in addresses that somebody types: `https://ann:secret@example.org/feed`.
#
# They are taken out of the address at once, because addresses are listed, logged and published, and are sent to the
# origin that they were typed for only: not to where it redirects, not to hubs, and not where everybody can read
# along.


def split_login(url: str) -> tuple[str, str | None]:
    """Split a URL into the URL without login, and the login as `name:password`."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return url, None
    said, at, place = parts.netloc.rpartition("@")
    if not at:
        return url, None
    name, _, password = said.partition(":")
    if ":" in unquote(name):
        raise InputError(
            "a name with a colon in it cannot be sent", hint="nor could a server tell where it ends"
        )
    return parts._replace(netloc=place).geturl(), f"{unquote(name)}:{unquote(password)}"


def check_login(url: str, network: EgressPolicy) -> None:
    """Raise if a password would be sent unencrypted, except in a private network."""
    if not url.startswith("https:") and not network.leads_inside(url):
        raise InputError("a password that everybody on the way could read", where=url, accepted="https://")


def authorization_header(login: str | None, typed: str, url: str) -> dict[str, str]:
    """Return the Authorization header, if the URL has the origin that the login was typed for."""
    if login is None or origin_of(typed) != origin_of(url):
        return {}
    return {"authorization": f"Basic {b64encode(login.encode()).decode()}"}


def origin_of(url: str) -> tuple[str, str, int]:
    """Return scheme, host and port of a URL."""
    return (urlsplit(url).scheme, *split_host(url))


ACCEPT = (
    "application/atom+xml, application/rss+xml, application/feed+json, application/rdf+xml, "
    "application/xml;q=0.8, text/xml;q=0.8, application/json;q=0.7, */*;q=0.1"
)
ALONE = httpx.Limits(max_keepalive_connections=0)
"""Connections are made to IP addresses: a reused one would serve another name with the certificate of the first."""

PERMANENT, REDIRECTS = (301, 308), (301, 302, 303, 307, 308)


def user_agent() -> str:
    """Return the User-Agent header."""
    return f"Tidings/{version('tidings')} (feed reader; content-based publish/subscribe)"


@dataclass(frozen=True, slots=True)
class FetchPolicy:
    """Limits of requests. Times are in seconds; `total` limits the whole response, so a trickling one ends, too.

    `contact` is an address of the operator for the User-Agent header. `at_once` is the number of hosts polled in
    parallel.
    """

    contact: str | None = None
    connect: float = 10.0
    read: float = 20.0
    total: float = 60.0
    size: int = 16_000_000
    redirects: int = 5
    at_once: int = 8
    agent: str = field(default_factory=user_agent)

    @property
    def user_agent(self) -> str:
        return f"{self.agent[:-1]}; {self.contact})" if self.contact else self.agent


@dataclass(frozen=True, slots=True)
class FetchResponse:
    """A response, its final URL, and the URL to which the first one has moved permanently, if it has.

    Header names are in lower case; the body is decompressed.
    """

    status: int
    url: str
    moved: str | None
    headers: Mapping[str, str]
    body: bytes


class _HostLock:
    """A lock that is removed when no thread waits for it."""

    def __init__(self) -> None:
        self.lock = Lock()


class Fetcher(Closeable):
    """HTTP client; safe to use from several threads. A host gets at most one request at a time."""

    def __init__(
        self,
        manners: FetchPolicy | None = None,
        network: EgressPolicy | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.manners = manners or FetchPolicy()
        self.network = network or EgressPolicy()
        times = httpx.Timeout(self.manners.read, connect=self.manners.connect)
        self._client = httpx.Client(
            timeout=times, verify=tls or True, trust_env=False, follow_redirects=False, limits=ALONE
        )
        self._turns: WeakValueDictionary[str, _HostLock] = WeakValueDictionary()
        self._endings: set[_AbortableConnection] = set()
        self._guard = Lock()

    def fetch(
        self, url: str, headers: Mapping[str, str], inside_host: str | None = None, login: str | None = None
    ) -> FetchResponse:
        """Fetch a URL and follow redirects.

        `inside_host` may be in a private network; `login` is sent only to the origin of the URL.
        """
        here, moved, for_good = url, None, True
        for _ in range(self.manners.redirects + 1):
            said = {**headers, **authorization_header(login, url, here)}
            answer = self._ask("GET", here, said, b"", inside_host)
            there = answer.headers.get("location")
            if answer.status not in REDIRECTS or not there:
                return replace(answer, moved=moved)
            here = resolve_iri(here, there).partition("#")[0]
            for_good = for_good and answer.status in PERMANENT
            moved = here if for_good else moved
        raise FetchProblem("too many redirects", where=url, accepted=f"{self.manners.redirects} of them")

    def post(self, url: str, form: Mapping[str, str], inside_host: str | None = None) -> FetchResponse:
        """Post a form; redirects are not followed."""
        encoded = str(httpx.QueryParams(dict(form))).encode()
        kind = {"content-type": "application/x-www-form-urlencoded"}
        return self._ask("POST", url, kind, encoded, inside_host)

    def _ask(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes, inside_host: str | None
    ) -> FetchResponse:
        """Send one request, when no other request to the host is in progress."""
        host, _ = split_host(url)
        reached = self.network.reach(url, inside_host)
        ending = _AbortableConnection(url, self.manners.total)
        patience = translate_http_errors(url, self.manners.connect, self.manners.read)
        with self._turn(host), self._under_way(ending), patience:
            request = self._request(method, url, reached, headers, body)
            request.extensions["trace"] = ending.hold
            response = self._client.send(request, stream=True)
            try:
                return FetchResponse(
                    response.status_code, url, None, response.headers, self._body(url, response)
                )
            finally:
                response.close()

    @contextmanager
    def _under_way(self, ending: _AbortableConnection) -> Iterator[None]:
        with self._guard:
            self._endings.add(ending)
        try:
            with ending.in_time():
                yield
        finally:
            with self._guard:
                self._endings.discard(ending)

    def end(self) -> None:
        """Cancel requests in progress; they fail."""
        with self._guard:
            for ending in self._endings:
                ending.end()

    def _request(
        self, method: str, url: str, reached: str, headers: Mapping[str, str], body: bytes
    ) -> httpx.Request:
        """Build a request to a checked IP address, with the original host name."""
        meant = httpx.URL(url.partition("#")[0])
        said = {"host": meant.netloc.decode(), "user-agent": self.manners.user_agent, "accept": ACCEPT}
        return self._client.build_request(
            method,
            meant.copy_with(host=reached),
            headers={**said, "accept-encoding": "gzip", **headers},
            content=body or None,
            extensions={"sni_hostname": meant.raw_host.decode()},
        )

    def _body(self, url: str, response: httpx.Response) -> bytes:
        """Read and decompress the body up to the limit: a few kilobytes may expand to gigabytes."""
        kind = response.headers.get("content-encoding", "identity").strip().lower()
        if kind not in ("identity", "", "gzip", "x-gzip"):
            what = "compressed in a way that was not asked for"
            raise FetchProblem(what, where=url, received=kind, accepted="gzip")
        unpack = zlib.decompressobj(wbits=31) if "gzip" in kind else None
        most, parts, size = self.manners.size, [], 0
        for chunk in response.iter_raw():
            if unpack and unpack.eof:  # zlib would buffer everything that follows
                raise FetchProblem("something follows the compressed answer", where=url)
            part = unpack.decompress(chunk, most - size + 1) if unpack else chunk
            parts.append(part)
            size += len(part)
            if size > most:
                raise FetchProblem("the answer is too large", where=url, accepted=f"{most:,} bytes")
        if unpack and not unpack.eof:
            raise FetchProblem("the answer was cut short", where=url)
        return b"".join(parts)

    @contextmanager
    def _turn(self, host: str) -> Iterator[None]:
        with self._guard:
            turn = self._turns.setdefault(host, _HostLock())
        with turn.lock:
            yield

    def close(self) -> None:
        self._client.close()


class _AbortableConnection:
    """A connection that a timer or another thread can abort.

    Read timeouts apply to each read: one byte per read, even in the headers, could block a thread for days.
    """

    def __init__(self, url: str, seconds: float) -> None:
        self._url, self._seconds = url, seconds
        self._sockets: list[Any] = []
        self._ended = Event()

    def hold(self, name: str, info: Mapping[str, Any]) -> None:
        """Record the socket at each step of a request; TLS replaces it."""
        if name in ("connection.connect_tcp.complete", "connection.start_tls.complete"):
            self._sockets.append(info["return_value"].get_extra_info("socket"))
            if self._ended.is_set():  # while connecting
                self.end()

    def end(self) -> None:
        self._ended.set()
        with suppress(OSError):  # it has just ended
            self._sockets[-1].shutdown(socket.SHUT_RDWR) if self._sockets else None

    @contextmanager
    def in_time(self) -> Iterator[None]:
        """Raise after an abort: a truncated response without a length looks complete, one with a length broken."""
        timer = Timer(self._seconds, self.end)
        timer.daemon = True
        timer.start()
        problem = None
        try:
            yield
        except FetchProblem as raised:
            if not self._ended.is_set():
                raise
            problem = raised
        finally:
            timer.cancel()
        if self._ended.is_set():
            accepted = f"{self._seconds:g} seconds"
            raise FetchProblem("the answer takes too long", where=self._url, accepted=accepted) from problem
