"""Clients that send a request byte by byte, or none at all: the service closes their connections."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from time import monotonic

import pytest

from tests.support.servers.application import Served, served
from tidings.api.middleware import connection
from tidings.operations.settings import ServicePart

HEAD = b"GET /healthz HTTP/1.1\r\nHost: x\r\n"
UPGRADE = (
    b"GET /v1/notifications/ws HTTP/1.1\r\nHost: x\r\nConnection: upgrade\r\nUpgrade: websocket\r\n"
    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
)


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(connection, "REQUEST_SECONDS", 1.0)
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
