"""Request bodies that are too long, compressed, cut off, or never sent."""

from __future__ import annotations

import gzip
import socket
from contextlib import suppress
from urllib.parse import urlsplit

import httpx
import pytest

from tests.api.publishing.publish_request import CONTEXT, post
from tests.support.servers.api_server import Service
from tidings.api import request_body


def test_publish_body_over_limit_is_rejected_and_memory_released(service: Service) -> None:
    """A body without Content-Length is rejected as soon as it exceeds the limit, and its memory is released."""
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


def test_request_with_content_encoding_is_rejected(service: Service) -> None:
    """A compressed body of an unknown media type would be published as it is, so each endpoint rejects it."""
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


def test_publish_truncated_body_publishes_nothing(service: Service) -> None:
    head = service.tidings.store.journal.head()
    to = urlsplit(service.address)
    bearer = service.shop.headers["authorization"]
    with socket.create_connection((to.hostname, to.port)) as connection:
        connection.sendall(
            f"POST /v1/publications HTTP/1.1\r\nHost: x\r\nAuthorization: {bearer}\r\n"
            'Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{"price": 5}'.encode()
        )
    assert post(service, '{"price": 7}', "application/json").json()["position"] == head + 1


def test_publish_stalled_body_answers_408(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    """Received bytes count against the memory for all bodies, so a client that stops sending would block others."""
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
def test_publish_slow_body_answers_408(
    service: Service, monkeypatch: pytest.MonkeyPatch, length: str, drop: bytes
) -> None:
    """No pause is long, yet the whole body would take days."""
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
