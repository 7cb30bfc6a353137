"""Clients of the console, which log in and submit forms as a browser does."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import httpx

from tests.support.servers.http_server import served
from tidings.api.authentication import Authenticator
from tidings.api.limits import Limits
from tidings.api.rate_limiter import RateLimiter
from tidings.console.router import router_for
from tidings.delivery.delivery_policy import DeliveryPolicy
from tidings.service.authorization import Access
from tidings.service.delivery import open_destinations
from tidings.service.tidings import Tidings

WORD = re.compile(r'name="word" value="([0-9a-f]{64})"')


class Visitor:
    """A client that behaves like a browser without scripts."""

    def __init__(self, address: str, secret: str = "") -> None:
        self.client = httpx.Client(base_url=address, headers={"Origin": address})
        self.word = ""
        if secret:
            assert self.client.post("/console/login", data={"token": secret}).status_code == 303
            self.word = WORD.search(self.get("/console/browse").text)[1]  # type: ignore[index]

    def get(self, path: str, **more: str) -> httpx.Response:
        return self.client.get(path, params=more or None)

    def post(self, path: str, **fields: str) -> httpx.Response:
        """Submit a form of a page with its CSRF token."""
        return self.client.post(path, data={"word": self.word} | fields)


@contextmanager
def console(
    tidings: Tidings,
    public_url: str | None = None,
    attempts: RateLimiter | None = None,
    rates: RateLimiter | None = None,
    find_spark_ui: Callable[[], str | None] = lambda: None,
) -> Iterator[str]:
    """Serve the console of a home and return its address."""
    destinations = open_destinations(tidings.store, DeliveryPolicy(inside=True))
    feeds = tidings.feeds_at(public_url or "http://127.0.0.1:1")
    router = router_for(tidings, destinations, feeds, Limits(), public_url, attempts, find_spark_ui)
    with served(router, asking=Authenticator(Access(tidings.store)), rates=rates) as address:
        yield address
