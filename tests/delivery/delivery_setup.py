"""A store with notifications, and their delivery to a receiver on loopback."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from random import Random
from typing import Any

from standardwebhooks.webhooks import Webhook

from tests.support.servers.site import Request, Response, Site
from tests.support.stores.notified_store import BECAUSE, Clock
from tidings.delivery.delivery_policy import DeliveryPolicy
from tidings.delivery.destinations import Destinations, create_senders
from tidings.delivery.dispatcher import DeliveryEvent, Dispatcher
from tidings.delivery.sql.destination_store import Destination
from tidings.delivery.worker import DeliveryWorker
from tidings.model import Publication, Reason, Subscription
from tidings.operations.egress_policy import EgressPolicy
from tidings.operations.http_client import HttpLimits
from tidings.store.encoding import MatchRow
from tidings.store.store import Store, open_store

RULES = DeliveryPolicy(inside=True, jitter=0.0, times=HttpLimits(2.0, 5.0, 10.0))
OK = Response(204)


class DeliverySetup:
    """A store with subscribers, and a delivery worker that a test moves step by step."""

    def __init__(self, url: str, rules: DeliveryPolicy = RULES, network: EgressPolicy | None = None) -> None:
        self.clock, self.rules, self.url = Clock(), rules, url
        self.store: Store = open_store(url, self.clock)
        self.events: list[DeliveryEvent] = []
        self.network, self.batches = network, 0
        self.destinations = Destinations(self.store, create_senders(rules, network, self.clock), rules)
        self.worker = self.new_worker()

    def new_worker(self) -> DeliveryWorker:
        senders = create_senders(self.rules, self.network, self.clock)
        dispatcher = Dispatcher(self.store, senders, self.rules, Random(7))
        return DeliveryWorker(dispatcher, self.events.append)

    def subscribe(self, subscriber: str, id: str, within: int | None = None) -> None:
        self.store.subscriptions.add(Subscription(id, subscriber, "predicates", "price < 200", within))

    def notify(
        self,
        subscriber: str,
        id: str,
        *names: str,
        reason: Reason = BECAUSE[0],
        body: str = "",
        audience: str | None = None,
    ) -> None:
        """Publish events with these names and notify the subscriber of them.

        The title of each is its name, unless a body is given.
        """
        bodies = {name: json.dumps({"title": body or name, "price": 180}).encode() for name in names}
        self.store.journal.append(
            [Publication(name, "application/json", body, audience=audience) for name, body in bodies.items()]
        )
        self.batches += 1
        matches = [MatchRow(name, id, subscriber, (reason,)) for name in names]
        self.store.notifications.commit_batch("test", self.batches, matches)

    def webhook(self, site: Site, subscriber: str = "ana", path: str = "/", **more: Any) -> Destination:
        site.pages.setdefault(path, OK)
        return self.destinations.add(subscriber, "webhook", site.url(path), **more)

    def steps(self, worker: DeliveryWorker | None = None) -> None:
        """Run the worker until there is nothing to do now."""
        while (worker or self.worker).step():
            pass

    def close(self) -> None:
        self.worker.close()
        self.destinations.close()
        self.store.close()


@contextmanager
def open_delivery(
    url: str, rules: DeliveryPolicy = RULES, network: EgressPolicy | None = None
) -> Iterator[DeliverySetup]:
    setup = DeliverySetup(url, rules, network)
    try:
        yield setup
    finally:
        setup.close()


def event(request: Request) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(request.body)
    return content


def verified(request: Request, secret: str | None) -> dict[str, Any]:
    """Return the event of a request, checked as a receiver checks it."""
    assert secret
    content: dict[str, Any] = Webhook(secret).verify(request.body, dict(request.headers))
    return content


def subjects(requests: list[Request]) -> list[str]:
    return [event(request)["subject"] for request in requests]
