"""One request to the web, politely: conditional, limited in size and time, one at a time for each host.

Redirects are followed by hand, because each of them leads to an address that has to be looked at, and because only the
permanent ones say that a feed has moved. Nothing of the environment is read: a proxy would resolve names itself, and
the look at addresses would be for nothing.
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
    """An address without the name and the password in it, and those, as `name:password`."""
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
    """Refuse to send a password where others could read it; a machine that is inside is its owner's business."""
    if not url.startswith("https:") and not network.leads_inside(url):
        raise InputError("a password that everybody on the way could read", where=url, accepted="https://")


def authorization_header(login: str | None, typed: str, url: str) -> dict[str, str]:
    """The header for an address, if it is at the origin that the login was typed for."""
    if login is None or origin_of(typed) != origin_of(url):
        return {}
    return {"authorization": f"Basic {b64encode(login.encode()).decode()}"}


def origin_of(url: str) -> tuple[str, str, int]:
    """Scheme, host and port of an address."""
    return (urlsplit(url).scheme, *split_host(url))


ACCEPT = (
    "application/atom+xml, application/rss+xml, application/feed+json, application/rdf+xml, "
    "application/xml;q=0.8, text/xml;q=0.8, application/json;q=0.7, */*;q=0.1"
)
ALONE = httpx.Limits(max_keepalive_connections=0)
"""Connections go to addresses, not to names: one that was kept would serve another name with the first one's
certificate."""

PERMANENT, REDIRECTS = (301, 308), (301, 302, 303, 307, 308)


def user_agent() -> str:
    """Who asks."""
    return f"Tidings/{version('tidings')} (feed reader; content-based publish/subscribe)"


@dataclass(frozen=True, slots=True)
class FetchPolicy:
    """How to ask. Times are in seconds; `total` is for an answer as a whole, so that one in drops ends as well.

    `contact` is an address that the person who runs this wants servers to see. `at_once` is how many hosts are asked at
    the same time.
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
    """What came back: from where in the end, and where the first address has moved to for good, if it has.

    Names of headers are in lower case; the body is decompressed.
    """

    status: int
    url: str
    moved: str | None
    headers: Mapping[str, str]
    body: bytes


class _HostLock:
    """A lock that can be forgotten when nobody waits for it."""

    def __init__(self) -> None:
        self.lock = Lock()


class Fetcher(Closeable):
    """Asks the web. Several threads may use the same one: a host has at most one request of all of them."""

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
        """What is at an address, redirects followed. `inside_host` may be in a private network; `login` is a name and a
        password for the address's own origin.
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
        """What an address answers to a form; redirects are not followed."""
        encoded = str(httpx.QueryParams(dict(form))).encode()
        kind = {"content-type": "application/x-www-form-urlencoded"}
        return self._ask("POST", url, kind, encoded, inside_host)

    def _ask(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes, inside_host: str | None
    ) -> FetchResponse:
        """One request to one address, when it is the host's turn."""
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
        """End the requests that are under way: they fail."""
        with self._guard:
            for ending in self._endings:
                ending.end()

    def _request(
        self, method: str, url: str, reached: str, headers: Mapping[str, str], body: bytes
    ) -> httpx.Request:
        """A request to an address that was looked at, which names the host that is meant."""
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
        """The body, decompressed only as far as the limit: a few kilobytes can stand for gigabytes."""
        kind = response.headers.get("content-encoding", "identity").strip().lower()
        if kind not in ("identity", "", "gzip", "x-gzip"):
            what = "compressed in a way that was not asked for"
            raise FetchProblem(what, where=url, received=kind, accepted="gzip")
        unpack = zlib.decompressobj(wbits=31) if "gzip" in kind else None
        most, parts, size = self.manners.size, [], 0
        for chunk in response.iter_raw():
            if unpack and unpack.eof:  # zlib would keep all that follows
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
    """A connection that can be ended from another thread: by a timer, or by whoever does not want it any more.

    Timeouts of reads are for each read: one byte in each, in the headers already, would do to hold a thread for days.
    """

    def __init__(self, url: str, seconds: float) -> None:
        self._url, self._seconds = url, seconds
        self._sockets: list[Any] = []
        self._ended = Event()

    def hold(self, name: str, info: Mapping[str, Any]) -> None:
        """Called at each step of a request; with TLS the connection has another socket than before."""
        if name in ("connection.connect_tcp.complete", "connection.start_tls.complete"):
            self._sockets.append(info["return_value"].get_extra_info("socket"))
            if self._ended.is_set():  # while it was connecting
                self.end()

    def end(self) -> None:
        self._ended.set()
        with suppress(OSError):  # it ended by itself just now
            self._sockets[-1].shutdown(socket.SHUT_RDWR) if self._sockets else None

    @contextmanager
    def in_time(self) -> Iterator[None]:
        """An answer without a length that was cut off looks complete, one with a length looks broken."""
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
