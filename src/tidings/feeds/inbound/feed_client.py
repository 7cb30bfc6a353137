"""HTTP client for feeds: conditional requests, logins in URLs, one request at a time per host.

A URL may contain a name and a password: `https://ann:secret@example.org/feed`. They are removed from the URL at once,
because URLs are listed, logged and published. They are sent only to the origin for which they were typed, not to hubs
or where it redirects to, and not unencrypted over the internet.
"""

from __future__ import annotations

import ssl
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from threading import Lock
from urllib.parse import unquote, urlencode, urlsplit
from weakref import WeakValueDictionary

from tidings.errors import InputError
from tidings.operations.egress_policy import EgressPolicy, split_host
from tidings.operations.http_client import HttpClient, HttpLimits, HttpResponse, build_user_agent


def split_login(url: str) -> tuple[str, str | None]:
    """Split a URL into the URL without login, and the login as `name:password`."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return url, None
    login, separator, place = parts.netloc.rpartition("@")
    if not separator:
        return url, None
    name, _, password = login.partition(":")
    if ":" in unquote(name):
        hint = "servers take everything after the first colon for the password"
        raise InputError("a name with a colon cannot be sent", hint=hint)
    return parts._replace(netloc=place).geturl(), f"{unquote(name)}:{unquote(password)}"


def check_login(url: str, network: EgressPolicy) -> None:
    """Raise if a password would be sent unencrypted, except in a private network."""
    if not url.startswith("https:") and not network.leads_inside(url):
        raise InputError("the password would be sent unencrypted", where=url, accepted="https://")


ACCEPT = (
    "application/atom+xml, application/rss+xml, application/feed+json, application/rdf+xml, "
    "application/xml;q=0.8, text/xml;q=0.8, application/json;q=0.7, */*;q=0.1"
)


@dataclass(frozen=True, slots=True)
class FetchPolicy(HttpLimits):
    """Limits of requests for feeds.

    `contact` is an address of the operator for the User-Agent header. `at_once` is the number of hosts polled in
    parallel.
    """

    connect: float = 10.0
    read: float = 20.0
    total: float = 60.0
    keep_alive: float = 0.0
    size: int = 16_000_000
    contact: str | None = None
    at_once: int = 8

    @property
    def user_agent(self) -> str:
        contact = f"; {self.contact}" if self.contact else ""
        return build_user_agent(f"feed reader; content-based publish/subscribe{contact}")


class _HostLock:
    """A lock that is removed when no thread waits for it."""

    def __init__(self) -> None:
        self.lock = Lock()


class FeedClient(HttpClient):
    """HTTP client for feeds and their hubs. A host gets at most one request at a time."""

    def __init__(
        self,
        policy: FetchPolicy | None = None,
        egress: EgressPolicy | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.policy = policy or FetchPolicy()
        super().__init__(self.policy, egress, tls)
        self._headers = {"user-agent": self.policy.user_agent, "accept": ACCEPT, "accept-encoding": "gzip"}
        self._host_locks: WeakValueDictionary[str, _HostLock] = WeakValueDictionary()

    def fetch_feed(
        self, url: str, headers: Mapping[str, str], inside_host: str | None = None, login: str | None = None
    ) -> HttpResponse:
        """Get a feed and follow redirects. `login` is sent to the origin of the URL only."""
        basic = {"authorization": f"Basic {b64encode(login.encode()).decode()}"} if login else {}
        return self.fetch(url, {**headers, **basic}, inside_host)

    def post_form(self, url: str, form: Mapping[str, str], inside_host: str | None = None) -> HttpResponse:
        """Post a form; redirects are not followed."""
        headers = {"content-type": "application/x-www-form-urlencoded"}
        return self.request("POST", url, headers, urlencode(form, errors="replace").encode(), inside_host)

    def request(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str] | None = None,
        body: bytes = b"",
        inside_host: str | None = None,
    ) -> HttpResponse:
        """Send a request when no other request to the host is in progress."""
        with self._lock:
            turn = self._host_locks.setdefault(split_host(url)[0], _HostLock())
        with turn.lock:
            return super().request(method, url, {**self._headers, **(headers or {})}, body, inside_host)
