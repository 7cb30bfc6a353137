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

import pytest
from fastapi import FastAPI

from tests.support.servers.application import Served, served
from tidings.api import server
from tidings.api import server as serving
from tidings.api.server import create_server, listen
from tidings.operations.settings import ServicePart

CODE = """
import resource
from tidings.api.server import allow_many_files
_, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard))
print(allow_many_files(), resource.getrlimit(resource.RLIMIT_NOFILE)[0], allow_many_files())
"""


def test_a_server_may_have_as_many_clients_as_the_machine_lets_it() -> None:
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True)
    raised, found, again = map(int, done.stdout.split())
    assert raised == found == again > 256


def test_responses_are_sent_without_delay() -> None:
    """The body of an answer does not wait until a client has confirmed its head."""
    with listen("127.0.0.1", 0) as listening, socket.create_connection(listening.getsockname()):
        accepted, _ = listening.accept()
        with accepted:
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_a_head_that_does_not_end_is_refused() -> None:
    """Nobody has shown a token before it has ended: it must not fill the memory."""
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


def test_request_cancelled_by_a_shutdown_answers_503(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Somebody who sends a body slowly, if at all: the log says that it was cut, and not how the program is built."""
    monkeypatch.setattr(serving, "GRACE", 0)
    with ExitStack() as kept:
        with served(tmp_path, frozenset({ServicePart.API})) as service:
            to = urlsplit(service.url)
            client = kept.enter_context(socket.create_connection((to.hostname, to.port), 60))
            head = ("POST /v1/publications HTTP/1.1", "Host: x", f"Authorization: Bearer {service.token}")
            body = ("Content-Type: application/json", "Content-Length: 100", "Expect: 100-continue")
            client.sendall("".join(f"{line}\r\n" for line in (*head, *body, "")).encode())
            answer = kept.enter_context(client.makefile("rb"))
            assert answer.readline().startswith(b"HTTP/1.1 100"), "it is under way"
        told = answer.read()
    assert (
        b"HTTP/1.1 503" in told
        and b"application/problem+json" in told
        and b"the service is shutting down" in told
    )
    said = [record for record in caplog.records if record.levelname == "ERROR"]
    assert ["Cancel 1 running" in record.getMessage() for record in said] == [True]


HEAD = b"GET /healthz HTTP/1.1\r\nHost: x\r\n"
UPGRADE = (
    b"GET /v1/notifications/ws HTTP/1.1\r\nHost: x\r\nConnection: upgrade\r\nUpgrade: websocket\r\n"
    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
)


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(server, "REQUEST_SECONDS", 1.0)
        with served(tmp_path_factory.mktemp("home"), frozenset({ServicePart.API})) as opened:
            yield opened


def is_closed(service: Served, first: bytes, drop: bytes, seconds: float = 15.0) -> bool:
    """Whether the service closes a connection over which drops of something come."""
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
def test_connection_without_a_request_in_time_is_closed(service: Served, first: bytes, drop: bytes) -> None:
    assert is_closed(service, first, drop)


def test_connection_that_became_a_websocket_is_not_closed(service: Served) -> None:
    assert not is_closed(service, UPGRADE, b"", seconds=3.0)


def test_connection_with_an_answer_under_way_is_not_closed(service: Served) -> None:
    asked = "GET /v1/notifications/stream?subscriber=ana HTTP/1.1\r\nHost: x\r\n"
    assert not is_closed(
        service, f"{asked}Authorization: Bearer {service.token}\r\n\r\n".encode(), b"", seconds=3.0
    )
