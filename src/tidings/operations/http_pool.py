"""Posting to addresses that strangers named, many times a second: over connections that are kept.

A connection is kept for the name it was made for and goes to the address that was looked at when it was made, so that a
name that leads elsewhere later (DNS rebinding) gains nothing by it, and no certificate stands for another name. It is
made anew after a while: names do move. Redirects are answers like any other.

httpx would do, and takes five times as long for each request as the library of Python itself.
"""

from __future__ import annotations

import socket
import ssl
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from http.client import HTTPConnection, HTTPException
from threading import Lock
from time import monotonic
from urllib.parse import urlsplit

from tidings.core.closeable import Closeable
from tidings.operations.deadlines import DeadlineGuard, Deadlines
from tidings.operations.egress_policy import EgressPolicy, FetchProblem, split_host
from tidings.operations.http_errors import describe_failure

default_tls_context = cache(ssl.create_default_context)
"""The authorities that this machine trusts. To read them takes as long as twenty requests."""

MOST_IDLE = 200
"""How many connections wait for the next request; the one that waits longest goes first."""


@dataclass(frozen=True, slots=True)
class Timeouts:
    """In seconds: `total` is for an answer as a whole, so that one in drops ends as well; a connection that is older
    than `kept` is not used again.
    """

    connect: float = 5.0
    read: float = 15.0
    total: float = 20.0
    kept: float = 60.0


@dataclass(frozen=True, slots=True)
class PostResponse:
    """What came back, and the beginning of its body. Names of headers are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


Endpoint = tuple[str, str, int]


class _Connection(HTTPConnection):
    """Goes to an address that was looked at, and speaks to the host that is meant."""

    def __init__(self, place: Endpoint, address: str, times: Timeouts, tls: ssl.SSLContext) -> None:
        self.place, self._address, self._times, self._tls = place, address, times, tls
        scheme, host, port = place
        self.default_port = {"http": 80, "https": 443}[scheme]
        super().__init__(f"[{host}]" if ":" in host else host, port, timeout=times.read)
        self.made = monotonic()
        self.used = self.again = False
        """Whether it was used before, and whether it can be used again."""

    def reach(self, held: DeadlineGuard) -> None:
        """Connect, if it is not connected yet."""
        if self.sock is None:
            scheme, host, port = self.place
            self.sock = socket.create_connection((self._address, port), self._times.connect)
            self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            held.hold(self.sock)
            if scheme == "https":
                self.sock = self._tls.wrap_socket(self.sock, server_hostname=host)
            self.sock.settimeout(self._times.read)
        held.hold(self.sock)


class HttpPool(Closeable):
    """Posts, from any number of threads."""

    def __init__(
        self,
        times: Timeouts | None = None,
        network: EgressPolicy | None = None,
        tls: ssl.SSLContext | None = None,
        largest: int = 10_000,
    ) -> None:
        """Of an answer's body `largest` bytes are read."""
        self.times, self.network = times or Timeouts(), network or EgressPolicy()
        self._tls, self._largest = tls or default_tls_context(), largest
        self._kept: OrderedDict[_Connection, None] = OrderedDict()
        self._guard = Lock()
        self._deadlines = Deadlines()

    def post(
        self, url: str, headers: Mapping[str, str], body: bytes, inside_host: str | None = None
    ) -> PostResponse:
        """What an address answers; `inside_host` may be in a private network."""
        parts = urlsplit(url)
        place = (parts.scheme, *split_host(url))
        path = parts._replace(scheme="", netloc="", fragment="").geturl() or "/"
        connection = self._waiting(place)
        if connection is not None:
            try:
                return self._posted(connection, url, path, headers, body)
            except _StaleConnection:
                pass  # the server had closed it while it waited, as it may: nothing was asked yet
        fresh = _Connection(place, self.network.reach(url, inside_host), self.times, self._tls)
        return self._posted(fresh, url, path, headers, body)

    def end(self) -> None:
        """End the requests that are under way: they fail."""
        self._deadlines.end()

    def close(self) -> None:
        self._deadlines.close()
        with self._guard:
            for connection in self._kept:
                connection.close()
            self._kept.clear()

    def _posted(
        self, connection: _Connection, url: str, path: str, headers: Mapping[str, str], body: bytes
    ) -> PostResponse:
        try:
            with self._deadlines.within(self.times.total, url) as held:
                return self._asked(connection, held, path, headers, body)
        except TimeoutError as error:
            connecting = connection.sock is None
            what = "no connection in time" if connecting else "no answer in time"
            seconds = self.times.connect if connecting else self.times.read
            raise FetchProblem(what, where=url, accepted=f"{seconds:g} seconds") from error
        except (OSError, HTTPException, ValueError) as error:  # a header that nobody can read is a ValueError
            if connection.used and isinstance(error, ConnectionError):
                raise _StaleConnection from error
            raise describe_failure(error, url) from error
        finally:
            self._leave(connection)

    def _asked(
        self,
        connection: _Connection,
        held: DeadlineGuard,
        path: str,
        headers: Mapping[str, str],
        body: bytes,
    ) -> PostResponse:
        connection.again = False
        connection.reach(held)
        connection.request("POST", path, body, dict(headers))
        response = connection.getresponse()
        read = response.read(self._largest)
        connection.again = response.isclosed() and not response.will_close
        said = {name.lower(): value for name, value in response.getheaders()}
        return PostResponse(response.status, said, read)

    def _waiting(self, place: Endpoint) -> _Connection | None:
        """A connection that was kept, the one that was used last."""
        young = monotonic() - self.times.kept
        with self._guard:
            for connection in reversed(self._kept):
                if connection.place == place:
                    del self._kept[connection]
                    break
            else:
                return None
        if connection.made > young:
            return connection
        connection.close()
        return None

    def _leave(self, connection: _Connection) -> None:
        """Keep a connection after an answer that was read to its end."""
        if not connection.again:
            connection.close()
            return
        connection.used = True
        with self._guard:
            self._kept[connection] = None
            oldest = self._kept.popitem(last=False)[0] if len(self._kept) > MOST_IDLE else None
        if oldest is not None:
            oldest.close()


class _StaleConnection(Exception):
    """A connection that was kept was closed meanwhile."""
