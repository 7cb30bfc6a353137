"""A subscriber of the hub on loopback, and what it was sent."""

from __future__ import annotations

from collections.abc import Callable
from threading import Event
from urllib.parse import parse_qs, urlsplit

from tests.support.servers.site import Request, Response, Site
from tests.support.stores.notified_store import PUBLIC, Told
from tidings.feeds.hub.hub import HubPolicy
from tidings.feeds.hub.worker import HubWorker
from tidings.graphs.feed_formats.feed_parser import items_of

RULES = HubPolicy(inside=True)


def echo(request: Request) -> Response:
    """A subscriber that wants what it asked for, and takes what comes."""
    asked = query(request)
    return Response(200, asked.get("hub.challenge", "").encode())


def query(request: Request) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(urlsplit(request.path).query).items()}


def form(told: Told, site: Site, path: str = "/call", **more: str) -> dict[str, str]:
    said = {
        "mode": "subscribe",
        "topic": f"{PUBLIC}/feeds/{told.token}.atom",
        "callback": site.url(path),
    } | more
    return {f"hub.{name}": value for name, value in said.items()}


def subscribe(told: Told, loop: HubWorker, site: Site, path: str = "/call", **more: str) -> None:
    """Subscribe a callback that agrees."""
    site.pages[urlsplit(path).path] = echo
    loop.hub.ask(form(told, site, path, **more))
    loop.step()
    assert loop.hub.store.subscriptions()


def pushes(site: Site, path: str = "/call") -> list[Request]:
    return [one for one in site.requests if one.method == "POST" and urlsplit(one.path).path == path]


def denials(site: Site) -> list[str]:
    """Who was told that it is not told any more."""
    return [urlsplit(one.path).path for one in site.requests if query(one).get("hub.mode") == "denied"]


def titles(push: Request) -> list[str | None]:
    return [item.title for item in items_of(push.body, push.headers["content-type"])[1]]


def address(told: Told) -> str:
    found = told.store.feed_addresses.address("cy", "s-1")
    assert found
    return found.hash


def eventually(so: Callable[[], bool]) -> None:
    """Wait for what another thread is about to do; the test's own limit of time ends a wait in vain."""
    pause = Event()
    while not so():
        pause.wait(0.01)
