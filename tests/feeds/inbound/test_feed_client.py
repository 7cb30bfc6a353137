"""HTTP client for feeds: headers, and one request at a time per host."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, BrokenBarrierError, Event, Lock

import pytest

from tests.support.servers.site import Request, Response, Site, a_site
from tidings.feeds.inbound.feed_client import FeedClient, FetchPolicy
from tidings.operations.egress_policy import EgressPolicy

PUBLIC = "127.0.0.2"
NETWORK = EgressPolicy(is_inside=lambda address: address != PUBLIC)
"""One loopback address is public, the others are private."""


@pytest.fixture
def public() -> Iterator[Site]:
    with a_site(PUBLIC) as opened:
        yield opened


def test_fetch_sends_user_agent_contact_and_host(public: Site) -> None:
    public.pages["/feed"] = Response()
    network = EgressPolicy(lambda host, port: [PUBLIC], NETWORK.is_inside)
    with FeedClient(FetchPolicy(contact="https://example.org/bot"), network) as client:
        client.fetch(f"http://news.example:{public.port}/feed#part", {"if-none-match": '"1"'})
    [request] = public.requests
    assert request.headers["user-agent"].startswith("Tidings/")
    assert "https://example.org/bot" in request.headers["user-agent"]
    assert request.headers["host"] == f"news.example:{public.port}"
    assert (request.path, request.headers["if-none-match"]) == ("/feed", '"1"')


def test_fetch_requests_to_one_host_are_serialized(public: Site) -> None:
    """Two requests to one host never overlap on the server; two requests to two hosts do."""
    lock, both = Lock(), Barrier(2)
    overlaps: list[bool] = []

    def answer_alone(request: Request) -> Response:
        overlaps.append(not lock.acquire(blocking=False))
        if not overlaps[-1]:
            Event().wait(0.005)  # long enough for another request to overlap
            lock.release()
        return Response()

    def answer_together(request: Request) -> Response:
        try:
            both.wait(60)
        except BrokenBarrierError:
            return Response(500)
        return Response()

    public.pages |= {"/alone": answer_alone, "/together": answer_together}
    with FeedClient(egress=NETWORK) as client, ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: client.fetch(public.url("/alone"), {}), range(16)))
        named = EgressPolicy(lambda host, port: [PUBLIC], NETWORK.is_inside)
        with FeedClient(egress=named) as other:
            hosts = [f"http://{name}.example:{public.port}/together" for name in "ab"]
            assert [each.status for each in pool.map(lambda url: other.fetch(url, {}), hosts)] == [200, 200]
    assert overlaps == [False] * 16
