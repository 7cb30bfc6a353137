"""A subscriber of the hub on loopback, and the requests that it received."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from threading import Event
from typing import Self
from urllib.parse import parse_qs, urlsplit

from tests.support.servers.site import Request, Response, Site
from tests.support.stores.notified_store import PUBLIC, NotifiedStore
from tidings.delivery.delivery_policy import DeliveryPolicy
from tidings.delivery.dispatcher import Dispatcher
from tidings.delivery.sql.dead_deliveries import DeadDelivery
from tidings.delivery.sql.destination_store import HUB, Health
from tidings.delivery.worker import DeliveryWorker
from tidings.feeds.hub.callback_sender import CallbackSender
from tidings.feeds.hub.hub import Hub, HubPolicy
from tidings.feeds.hub.worker import HubWorker
from tidings.graphs.syndication.feed_parser import items_of
from tidings.operations.http_client import HttpLimits

RULES = HubPolicy(inside=True)
DELIVERY = DeliveryPolicy(inside=True, times=HttpLimits(keep_alive=0.0))


class HubLoop:
    """The hub's worker and the delivery worker, which a test moves step by step, or runs in a `with` block."""

    def __init__(self, hub: Hub, policy: DeliveryPolicy = DELIVERY) -> None:
        self.hub = hub
        senders = {HUB: CallbackSender(hub, policy, clock=hub.store.now)}
        dispatcher = Dispatcher(hub.feeds.store, senders, policy, Random(7))
        self.verification, self.delivery = HubWorker(hub), DeliveryWorker(dispatcher)

    def step(self) -> int:
        return self.verification.step() + self.delivery.step()

    def health(self) -> Health:
        """The health of deliveries to the only callback."""
        [subscription] = self.hub.store.subscriptions()
        return self.hub.feeds.store.destinations.health_of([subscription.destination])[
            subscription.destination
        ]

    def dead_letters(self) -> list[DeadDelivery]:
        """Return the dead letters of the only callback."""
        [subscription] = self.hub.store.subscriptions()
        return self.hub.feeds.store.dead_deliveries.list(subscription.destination)

    def close(self) -> None:
        self.verification.close()
        self.delivery.close()

    def __enter__(self) -> Self:
        self.verification.__enter__()
        self.delivery.__enter__()
        return self

    def __exit__(self, *failure: object) -> None:
        self.verification.__exit__(*failure)
        self.delivery.__exit__(*failure)


def echo(request: Request) -> Response:
    """Answer as a subscriber that confirms its requests and accepts each push."""
    parameters = query(request)
    return Response(200, parameters.get("hub.challenge", "").encode())


def query(request: Request) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(urlsplit(request.path).query).items()}


def form(notified_store: NotifiedStore, site: Site, path: str = "/call", **more: str) -> dict[str, str]:
    parameters = {
        "mode": "subscribe",
        "topic": f"{PUBLIC}/feeds/{notified_store.token}.atom",
        "callback": site.url(path),
    } | more
    return {f"hub.{name}": value for name, value in parameters.items()}


def subscribe(
    notified_store: NotifiedStore, loop: HubLoop, site: Site, path: str = "/call", **more: str
) -> None:
    """Subscribe a callback that agrees."""
    site.pages[urlsplit(path).path] = echo
    loop.hub.ask(form(notified_store, site, path, **more))
    loop.step()
    assert loop.hub.store.subscriptions()


def pushes(site: Site, path: str = "/call") -> list[Request]:
    return [one for one in site.requests if one.method == "POST" and urlsplit(one.path).path == path]


def denials(site: Site) -> list[str]:
    """Return the paths of callbacks whose subscription the hub denied."""
    return [urlsplit(one.path).path for one in site.requests if query(one).get("hub.mode") == "denied"]


def titles(push: Request) -> list[str | None]:
    return [item.title for item in items_of(push.body, push.headers["content-type"])[1]]


def eventually(condition: Callable[[], bool]) -> None:
    """Wait until another thread makes the condition true, at most until the test times out."""
    pause = Event()
    while not condition():
        pause.wait(0.01)
