"""The HTTP server: listening, shutdown, and time limits of connections."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from threading import Thread
from time import monotonic
from urllib.parse import urlsplit

import httpx
import pytest
from fastapi import FastAPI

from tests.support.servers.application import Served, served
from tidings.api import server as server_module
from tidings.api.server import create_server, listen
from tidings.operations.settings import ServicePart

CODE = """
import resource
from tidings.api.server import allow_many_files
_, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard))
print(allow_many_files(), resource.getrlimit(resource.RLIMIT_NOFILE)[0], allow_many_files())
"""


def test_allow_many_files_raises_soft_limit_to_hard_limit() -> None:
    process = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True)
    raised, actual, again = map(int, process.stdout.split())
    assert raised == actual == again > 256


def test_listen_disables_nagle_algorithm() -> None:
    """The body of an answer does not wait until the client has acknowledged the head."""
    with listen("127.0.0.1", 0) as listening, socket.create_connection(listening.getsockname()):
        accepted, _ = listening.accept()
        with accepted:
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_request_head_without_end_is_rejected() -> None:
    """Authentication comes after the head, so an endless head must not fill the memory."""
    with listen("127.0.0.1", 0) as listening:
        server = create_server(FastAPI())
        thread = Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        try:
            with socket.create_connection(listening.getsockname()) as client:
                client.settimeout(60)
                client.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n")
                with pytest.raises(ConnectionError):
                    for _ in range(2_000):
                        client.sendall(b"A: " + b"x" * 10_000 + b"\r\n")
        finally:
            server.should_exit = True
            thread.join()


def test_server_keeps_idle_connections_longer_than_clients() -> None:
    """Otherwise a client may send a request at the moment at which the server closes the connection."""
    expiry = httpx.Limits().keepalive_expiry
    assert expiry is not None and create_server(FastAPI()).config.timeout_keep_alive > expiry


def test_request_cancelled_by_shutdown_answers_503(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """For a client that sends its body slowly: the log has one line about the cancelled request, and no traceback."""
    monkeypatch.setattr(server_module, "GRACE", 0)
    with ExitStack() as stack:
        with served(tmp_path, frozenset({ServicePart.API})) as service:
            to = urlsplit(service.url)
            client = stack.enter_context(socket.create_connection((to.hostname, to.port), 60))
            head = ("POST /v1/publications HTTP/1.1", "Host: x", f"Authorization: Bearer {service.token}")
            body = ("Content-Type: application/json", "Content-Length: 100", "Expect: 100-continue")
            client.sendall("".join(f"{line}\r\n" for line in (*head, *body, "")).encode())
            answer = stack.enter_context(client.makefile("rb"))
            assert answer.readline().startswith(b"HTTP/1.1 100"), "the request is running"
        rest = answer.read()
    assert (
        b"HTTP/1.1 503" in rest
        and b"application/problem+json" in rest
        and b"the service is shutting down" in rest
    )
    errors = [record for record in caplog.records if record.levelname == "ERROR"]
    assert ["Cancel 1 running" in record.getMessage() for record in errors] == [True]


HEAD = b"GET /healthz HTTP/1.1\r\nHost: x\r\n"
UPGRADE = (
    b"GET /v1/notifications/ws HTTP/1.1\r\nHost: x\r\nConnection: upgrade\r\nUpgrade: websocket\r\n"
    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
)


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(server_module, "REQUEST_SECONDS", 1.0)
        with served(tmp_path_factory.mktemp("home"), frozenset({ServicePart.API})) as opened:
            yield opened


def is_closed(service: Served, first: bytes, drop: bytes, seconds: float = 15.0) -> bool:
    """Whether the service closes a connection on which drops of data arrive."""
    host, port = service.url.removeprefix("http://").split(":")
    until = monotonic() + seconds
    with socket.create_connection((host, int(port))) as client:
        client.settimeout(0.1)
        try:
            client.sendall(first)
            while monotonic() < until:
                client.sendall(drop)
                try:
                    if not client.recv(65_536):
                        return True
                except TimeoutError:
                    continue
        except ConnectionError:
            return True
    return False


@pytest.mark.parametrize(
    ("first", "drop"),
    [
        (b"", b""),
        (HEAD, b""),
        (HEAD + b"X-Slow: ", b"a"),
        (HEAD + b"\r\n" + HEAD + b"X-Slow: ", b"a"),
        (b"POST /v1/publications HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n", b"a"),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\na\r\n"),
    ],
    ids=[
        "nothing",
        "part of a head",
        "head in drops",
        "second head",
        "body after the answer",
        "body of a GET",
    ],
)
def test_connection_without_request_in_time_is_closed(service: Served, first: bytes, drop: bytes) -> None:
    assert is_closed(service, first, drop)


def test_connection_upgraded_to_websocket_is_not_closed(service: Served) -> None:
    assert not is_closed(service, UPGRADE, b"", seconds=3.0)


def test_connection_with_running_response_is_not_closed(service: Served) -> None:
    head = "GET /v1/notifications/stream?subscriber=ana HTTP/1.1\r\nHost: x\r\n"
    assert not is_closed(
        service, f"{head}Authorization: Bearer {service.token}\r\n\r\n".encode(), b"", seconds=3.0
    )
