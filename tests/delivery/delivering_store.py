"""A store in which people are told something, and deliveries of that to a receiver on loopback."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from random import Random
from typing import Any

from standardwebhooks.webhooks import Webhook

from tests.support.servers.site import Request, Response, Site
from tests.support.stores.notified_store import BECAUSE, Clock
from tidings.delivery.destinations import Destinations, create_senders
from tidings.delivery.dispatcher import DeliveryEvent, Dispatcher
from tidings.delivery.retry_policy import DeliveryPolicy
from tidings.delivery.sql.destination_store import Destination
from tidings.delivery.worker import DeliveryWorker
from tidings.model import Publication, Reason, Subscription
from tidings.operations.egress_policy import EgressPolicy
from tidings.operations.http_client import HttpLimits
from tidings.store.encoding import MatchRow
from tidings.store.store import Store, open_store

RULES = DeliveryPolicy(inside=True, jitter=0.0, times=HttpLimits(2.0, 5.0, 10.0))
OK = Response(204)


class Delivering:
    """A store with subscribers, and a loop that a test moves step by step."""

    def __init__(self, url: str, rules: DeliveryPolicy = RULES, network: EgressPolicy | None = None) -> None:
        self.clock, self.rules, self.url = Clock(), rules, url
        self.store: Store = open_store(url, self.clock)
        self.happened: list[DeliveryEvent] = []
        self.network, self.batches = network, 0
        self.destinations = Destinations(self.store, create_senders(rules, network, self.clock), rules)
        self.loop = self.another_loop()

    def another_loop(self) -> DeliveryWorker:
        made = create_senders(self.rules, self.network, self.clock)
        dispatcher = Dispatcher(self.store, made, self.rules, Random(7))
        return DeliveryWorker(dispatcher, self.happened.append)

    def subscribe(self, subscriber: str, id: str, within: int | None = None) -> None:
        self.store.subscriptions.add(Subscription(id, subscriber, "predicates", "price < 200", within))

    def tell(
        self,
        subscriber: str,
        id: str,
        *names: str,
        reason: Reason = BECAUSE[0],
        body: str = "",
        audience: str | None = None,
    ) -> None:
        """Tell a subscriber of publications with these names; what each says is its name, if there is no body."""
        bodies = {name: json.dumps({"title": body or name, "price": 180}).encode() for name in names}
        self.store.journal.append(
            [Publication(name, "application/json", body, audience=audience) for name, body in bodies.items()]
        )
        self.batches += 1
        found = [MatchRow(name, id, subscriber, (reason,)) for name in names]
        self.store.notifications.commit_batch("test", self.batches, found)

    def webhook(self, site: Site, subscriber: str = "ana", path: str = "/", **more: Any) -> Destination:
        site.pages.setdefault(path, OK)
        return self.destinations.add(subscriber, "webhook", site.url(path), **more)

    def steps(self, loop: DeliveryWorker | None = None) -> None:
        """Go on until there is nothing to do now."""
        while (loop or self.loop).step():
            pass

    def close(self) -> None:
        self.loop.close()
        self.destinations.close()
        self.store.close()


@contextmanager
def delivering(
    url: str, rules: DeliveryPolicy = RULES, network: EgressPolicy | None = None
) -> Iterator[Delivering]:
    made = Delivering(url, rules, network)
    try:
        yield made
    finally:
        made.close()


def event(request: Request) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(request.body)
    return found


def verified(request: Request, secret: str | None) -> dict[str, Any]:
    """The event of a request, checked as a receiver checks it."""
    assert secret
    found: dict[str, Any] = Webhook(secret).verify(request.body, dict(request.headers))
    return found


def subjects(requests: list[Request]) -> list[str]:
    return [event(request)["subject"] for request in requests]
