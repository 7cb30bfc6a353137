"""A site on loopback for tests: real HTTP, responses that a test chooses, and a record of all requests."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ssl import SSLContext
from threading import Condition, Thread
from typing import Any
from urllib.parse import urlsplit


@dataclass(frozen=True)
class Request:
    """A received request; names of headers are in lower case."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes = b""


@dataclass(frozen=True)
class Response:
    """A response. A body may be sent in pieces while the client is connected."""

    status: int = 200
    body: bytes | Iterator[bytes] = b""
    headers: Mapping[str, str] = field(default_factory=dict)


Answering = Callable[[Request], Response]


class Site:
    """A site with pages: `site.pages["/rss.xml"] = Response(...)`, or a function that returns a response."""

    def __init__(self, server: ThreadingHTTPServer) -> None:
        self._server = server
        self.pages: dict[str, Response | Answering] = {}
        self.requests: list[Request] = []
        self.changed = Condition()

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])

    def url(self, path: str = "/rss.xml", host: str | None = None) -> str:
        return f"http://{host or self._server.server_address[0]}:{self.port}{path}"

    def answer(self, request: Request) -> Response:
        with self.changed:
            self.requests.append(request)
            self.changed.notify_all()
        page = self.pages.get(urlsplit(request.path).path, Response(404))
        return page if isinstance(page, Response) else page(request)

    def wait_for(self, count: int) -> list[Request]:
        """Wait until there are that many requests, and return them."""
        with self.changed:
            assert self.changed.wait_for(lambda: len(self.requests) >= count, timeout=60)
            return list(self.requests)


def _handler(site: Callable[[], Site]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"  # connections may be kept

        def _answer(self) -> None:
            length = int(self.headers.get("content-length") or 0)
            headers = {name.lower(): value for name, value in self.headers.items()}
            response = site().answer(Request(self.command, self.path, headers, self.rfile.read(length)))
            self.send_response(response.status)
            whole = isinstance(response.body, bytes)
            length_header = {"Content-Length": str(len(response.body))} if whole else {"Connection": "close"}
            for name, value in {**length_header, **response.headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self._send([response.body] if isinstance(response.body, bytes) else response.body)

        def _send(self, pieces: object) -> None:
            try:
                for piece in pieces:  # type: ignore[attr-defined]
                    self.wfile.write(piece)
                    self.wfile.flush()
            except OSError:
                self.close_connection = True  # the client has disconnected

        do_GET = do_POST = _answer

        def log_message(self, *words: object) -> None:
            """Log nothing: requests are recorded."""

    return Handler


class _Server(ThreadingHTTPServer):
    request_queue_size = 100  # by default, a server of Python accepts only five connections at a time

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore disconnected clients."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


@contextmanager
def a_site(host: str = "127.0.0.1", tls: SSLContext | None = None) -> Iterator[Site]:
    """Run a site until the block ends."""
    sites: list[Site] = []
    with _Server((host, 0), _handler(lambda: sites[0])) as server:
        if tls is not None:
            server.socket = tls.wrap_socket(server.socket, server_side=True)
        sites.append(Site(server))
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield sites[0]
        finally:
            server.shutdown()
            thread.join()


def rss(*titles: str, ttl: int | None = None, more: str = "", prefix: str = "item") -> bytes:
    """Write a feed of items with these titles; the number of an item is its id."""
    items = "".join(
        f"<item><title>{title}</title><link>http://example.org/{prefix}/{number}</link>"
        f"<guid>{prefix}-{number}</guid></item>"
        for number, title in enumerate(titles)
    )
    ttl_element = f"<ttl>{ttl}</ttl>" if ttl is not None else ""
    return (
        '<rss version="2.0" xmlns:atom="http://www.w3.org/2005/Atom"><channel><title>News</title>'
        f"<link>http://example.org/</link>{ttl_element}{more}{items}</channel></rss>"
    ).encode()
