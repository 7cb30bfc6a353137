"""A console with sample data, visitors with all kinds of tokens, and all of its pages and forms."""

from __future__ import annotations

from tests.support.processes.console_visitor import Visitor
from tidings.delivery.delivery_policy import DeliveryPolicy
from tidings.service.authorization import Access, Scope
from tidings.service.delivery import open_destinations
from tidings.service.tidings import Tidings


class Clock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class Place:
    """A console with sample data, and visitors with all kinds of tokens."""

    def __init__(self, tidings: Tidings, address: str, table: str, clock: Clock) -> None:
        self.tidings, self.address, self.table, self.clock = tidings, address, table, clock
        make = Access(tidings.store).make
        self.secrets = {
            "ana": make("phone", [Scope.SUBSCRIBE], "ana").secret,
            "bo": make("laptop", [Scope.SUBSCRIBE, Scope.PUBLISH], "bo").secret,
            "shop": make("shop", [Scope.PUBLISH]).secret,
            "root": make("root", [Scope.ADMINISTER]).secret,
        }
        self.ana, self.bo, self.shop, self.root = (Visitor(address, each) for each in self.secrets.values())
        self.anonymous = Visitor(address)
        destinations = open_destinations(tidings.store, DeliveryPolicy(inside=True))
        self.hook = destinations.add("ana", "webhook", "http://127.0.0.1:9/hook", name="ana's hook").id


PAGES = (
    "notifications",
    "notifications/1",
    "notifications/1/inside",
    "notifications/new?after=0",
    "subscriptions",
    "subscriptions/new",
    "subscriptions/S",
    "subscriptions/S/edit",
    "destinations",
    "destinations/D",
    "publish",
    "browse",
    "browse/schema",
    "browse/taxonomies",
    "browse/references",
    "browse/metadata",
    "browse/metadata/class/CycleProvider",
    "browse/metadata/resource?uri=http://example.org/doc.ttl%23host",
    "browse/model",
    "browse/rules",
    "dead-letters",
    "dead-letters/1/mend",
    "pipeline",
    "tokens",
)
"""All pages for GET; S is ana's subscription, D her destination."""


FORMS = (
    "notifications/acknowledge",
    "subscriptions",
    "subscriptions/S",
    "subscriptions/S/pause",
    "subscriptions/S/resume",
    "subscriptions/S/delete",
    "subscriptions/S/renew",
    "subscriptions/renew-list",
    "destinations",
    "destinations/quiet-hours",
    "destinations/D/test",
    "destinations/D/pause",
    "destinations/D/resume",
    "destinations/D/rotate",
    "destinations/D/replay",
    "destinations/D/delete",
    "publish",
    "dead-letters/1/replay",
    "tokens",
    "tokens/t-1/revoke",
    "logout",
)
"""All addresses that forms are sent to."""
