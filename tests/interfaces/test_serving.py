"""What a server needs of its machine."""

from __future__ import annotations

import socket
import subprocess
import sys
from threading import Thread

import pytest
from fastapi import FastAPI

from tidings.interfaces.http.serving import listen, server_for

CODE = """
import resource
from tidings.interfaces.http.serving import allow_many_files
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
        server = server_for(FastAPI())
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
