"""Bodies that are too long, compressed, cut off or that never come."""

from __future__ import annotations

import gzip
import socket
from contextlib import suppress
from urllib.parse import urlsplit

import httpx
import pytest

from tests.api.publishing.posting import CONTEXT, post
from tests.support.servers.api_server import Service
from tidings.api import request_body


def test_a_body_is_not_held_beyond_the_limit(service: Service) -> None:
    """Nobody says how long it is: it is refused as soon as it is too long, and all that came is let go."""
    endless = (b"x" * 10_000 for _ in range(1_000))
    with pytest.raises((httpx.HTTPStatusError, httpx.TransportError)) as refused:
        answer = service.shop.post(
            "/v1/publications", content=endless, headers={"Content-Type": "application/json"}
        )
        assert answer.status_code == 413
        answer.raise_for_status()
    assert refused
    for _ in range(8):
        assert post(service, "x" * 190_000, "application/json").status_code == 422, "nothing is left of them"


def test_encoded_body_is_refused(service: Service) -> None:
    """What is compressed would be published so, if its kind is nobody's business: it is refused wherever a body is."""
    squeezed, headers = gzip.compress(b"{}"), {"Content-Encoding": "gzip"}
    context = {name.replace("_", "-"): value for name, value in CONTEXT.items()} | headers
    ana = service.caller("ana")
    for answer in (
        service.shop.post("/v1/publications", content=squeezed, headers=context),
        service.shop.post("/v1/publications?id=z", content=b"{}", headers=context),
        ana.post("/v1/subscriptions", json={"text": "a = 1"}, headers=headers),
    ):
        assert (answer.status_code, answer.json()["where"]) == (415, "Content-Encoding")
        assert answer.headers["accept-encoding"] == "identity"
    plain = {"Content-Type": "application/json", "Content-Encoding": "identity"}
    assert service.shop.post("/v1/publications", content=b"{}", headers=plain).status_code == 201


def test_a_body_that_ends_too_early_is_nothing(service: Service) -> None:
    head = service.tidings.store.journal.head()
    to = urlsplit(service.address)
    bearer = service.shop.headers["authorization"]
    with socket.create_connection((to.hostname, to.port)) as connection:
        connection.sendall(
            f"POST /v1/publications HTTP/1.1\r\nHost: x\r\nAuthorization: {bearer}\r\n"
            'Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{"price": 5}'.encode()
        )
    assert post(service, '{"price": 7}', "application/json").json()["position"] == head + 1


def test_a_body_that_does_not_come_is_not_waited_for(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What came of it counts against what all bodies may hold: whoever stops sending would keep others out."""
    monkeypatch.setattr(request_body, "BODY_SECONDS", 0.05)
    to, bearer = urlsplit(service.address), service.shop.headers["authorization"]
    with socket.create_connection((to.hostname, to.port)) as connection:
        connection.sendall(
            f"POST /v1/publications HTTP/1.1\r\nHost: x\r\nAuthorization: {bearer}\r\n"
            'Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{"price": 5}'.encode()
        )
        answer = connection.makefile("rb").read()
    assert answer.startswith(b"HTTP/1.1 408") and b"application/problem+json" in answer


@pytest.mark.parametrize(
    ("length", "drop"), [("Content-Length: 100000", b" "), ("Transfer-Encoding: chunked", b"1\r\n \r\n")]
)
def test_slow_body_is_refused(
    service: Service, monkeypatch: pytest.MonkeyPatch, length: str, drop: bytes
) -> None:
    """No pause is long, and yet the body would take days."""
    monkeypatch.setattr(request_body, "BODY_SECONDS", 0.5)
    to, bearer = urlsplit(service.address), service.shop.headers["authorization"]
    with socket.create_connection((to.hostname, to.port)) as connection:
        connection.sendall(
            f"POST /v1/publications HTTP/1.1\r\nHost: x\r\nAuthorization: {bearer}\r\n"
            f"Content-Type: application/json\r\n{length}\r\n\r\n".encode()
        )
        connection.settimeout(0.05)
        for _ in range(200):
            connection.sendall(drop)
            with suppress(TimeoutError):
                assert connection.recv(100).startswith(b"HTTP/1.1 408")
                return
    pytest.fail("the service still waits")
