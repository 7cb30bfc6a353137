"""What a server needs of its machine."""

from __future__ import annotations

import socket
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from threading import Thread
from urllib.parse import urlsplit

import pytest
from fastapi import FastAPI

from tests.support.servers.application import served
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


def test_what_is_written_goes_out_at_once() -> None:
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


def test_a_request_that_takes_too_long_when_the_service_ends_is_told(
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
