"""An application with data of subscriber bo in every table, and clients with all kinds of tokens."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field

import httpx

from tests.api.routes.route_walk import OPEN, Route
from tests.support.servers.application import Served
from tidings.delivery.sql.dead_deliveries import DeadDelivery, add_dead_delivery
from tidings.model import Publication, Reason
from tidings.service.delivery import build_delivery_policy, open_destinations
from tidings.store.dead_letters import DeadLetter
from tidings.store.encoding import MatchRow, format_instant, utc_now

SECRET = "seen-by-bo-alone"
"""Part of everything that belongs to bo."""


@dataclass
class Place:
    """The application with data of bo, and clients with all kinds of tokens."""

    served: Served
    routes: Sequence[Route]
    sockets: Sequence[str]
    ids: Sequence[str]
    ana: httpx.Client
    bo: httpx.Client
    shop: httpx.Client
    root: httpx.Client
    anonymous: httpx.Client
    secrets: dict[str, str] = field(default_factory=dict)

    @property
    def guarded(self) -> list[Route]:
        """The routes that require a token."""
        return [route for route in self.routes if route.path not in OPEN]


def bearing(secret: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {secret}"}


def fill(at: Served) -> list[str]:
    """Store data of bo in every table, and return all ids and numbers of it."""
    tidings = at.context.tidings
    store = tidings.store
    subscription = tidings.subscribe("bo", f"{SECRET.replace('-', '_')} = '{SECRET}'", id="s-of-bo").id
    tidings.subscribe("ana", "price < 200", id="s-of-ana")
    store.audiences.grant("bo", f"{SECRET}-label")
    label = f"{SECRET}-label"
    secret = Publication("p-of-bo", "application/json", json.dumps({"a": SECRET}).encode(), audience=label)
    store.journal.append([secret])
    because = [Reason(f"a = '{SECRET}'", SECRET, "/a")]
    store.notifications.commit_batch("test", 0, [MatchRow("p-of-bo", subscription, "bo", because)] * 2)
    store.notifications.commit_batch("test", 1, [MatchRow("p-for-all", "s-of-ana", "ana")])
    store.dead_letters.add("journal", [DeadLetter("p-of-bo", f"no {SECRET}", {}, 1, SECRET.encode())])
    opened = open_destinations(store, build_delivery_policy(at.context.settings))
    hook = opened.add("bo", "webhook", f"https://example.org/{SECRET}")
    letter = DeadDelivery(
        hook.id, subscription, "bo", "example.org", 1, 1, False, "n-1", SECRET, 3, format_instant(utc_now())
    )
    number = store.database.transact(lambda c: add_dead_delivery(c, letter))
    opened.close()
    tidings.feeds_at(at.url).list_with_tokens("bo")
    return [subscription, hook.id, str(number), "p-of-bo", "1", "bo", "t-2"]
