"""A home with sample data: events, a subscription in each language, notifications and a dead letter."""

from __future__ import annotations

import json

from tests.support.processes.command_line import EXAMPLES
from tests.support.stores import browsable_metadata as browsed
from tidings.metadata.provider.provider import Provider
from tidings.model import Reason
from tidings.objects.sql.object_store import ObjectSource
from tidings.service.tidings import Tidings
from tidings.store.dead_letters import DeadLetter
from tidings.store.encoding import MatchRow

PRICE = "furniture_category is a 'dining room' and price < 200"
TABLE = {
    "event_type": ["antiques", "furniture"],
    "price": 180,
    "quantity": 2,
    "period": "XVI",
    "furniture_category": "table",
}


GQL = "SELECT ?page WHERE (?page, <http://purl.org/dc/elements/1.1/date>, ?d) AND ?d >= 2004"
XPATH = '//stock[symbol = "YHOO" and price > 50]'
RULE = "search CycleProvider c register c where c.information.memory > 64"


def fill(tidings: Tidings) -> str:
    """Store the sample data, and return the id of ana's subscription to tables."""
    tidings.extend_schema((EXAMPLES / "furniture.yaml").read_text())
    tidings.load_taxonomy("academia", (EXAMPLES / "academia.ttl").read_bytes(), "text/turtle")
    tidings.add_reference("sectors", str(EXAMPLES / "sectors.csv"), "symbol", "/stock/symbol")
    browsed.fill(Provider(tidings.store))
    model = EXAMPLES / "university" / "university.puml"
    tidings.store.object_sources.add(ObjectSource("university", str(model), "sqlite:///none.db"))
    ids = [
        tidings.subscribe(subscriber, text, language).id
        for subscriber, text, language in (
            ("ana", PRICE, "predicates"),
            ("ana", XPATH, "xpath"),
            ("ana", GQL, "gql"),
            ("ana", RULE, "rules"),
            ("bo", "price > 1000", "predicates"),
        )
    ]
    for batch, price in enumerate((120, 95, 180), start=1):
        publish_and_notify(tidings, ids[0], batch, price=price)
    page = tidings.publish((EXAMPLES / "page.ttl").read_bytes(), media_type="text/turtle")
    row = {"page": {"type": "uri", "value": "http://example.org/page"}}
    bound = {"head": {"vars": ["page"]}, "results": {"bindings": [row]}}
    because = (Reason("?d >= 2004", 2005, ""),)
    match = MatchRow(page.id, ids[2], "ana", because, bound)
    letter = DeadLetter("p-broken", "price is no number", {}, 7, b'{"price": "a lot"}')
    tidings.store.notifications.commit_batch("a test", 4, [match], [letter])
    return ids[0]


def publish_and_notify(tidings: Tidings, subscription: str, batch: int, **values: object) -> int:
    """Publish a table, notify the owner of the subscription, and return the number of the last notification."""
    event = TABLE | values
    published = tidings.publish(json.dumps(event))
    owner = tidings.store.subscriptions.find(subscription)
    assert owner is not None
    because = (
        Reason("furniture_category is a 'dining room'", "table", "/furniture_category"),
        Reason("price < 200", int(str(event["price"])), "/price"),
    )
    match = MatchRow(published.id, subscription, owner.subscriber, because)
    tidings.store.notifications.commit_batch("a test", batch, [match])
    return tidings.store.notifications.last_sequence(owner.subscriber)
