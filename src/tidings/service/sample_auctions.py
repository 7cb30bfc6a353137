"""Sample data of the demo: auctions after the example of Le Subscribe, and subscriptions to some of them."""

from __future__ import annotations

import random
from collections.abc import Iterator
from importlib.resources import files
from typing import Any, NamedTuple

FURNITURE, CURIOSITIES = "furniture.yaml", "curiosities.yaml"
"""The first publisher's event types, and how a second one extends them."""


class SampleSubscription(NamedTuple):
    """A sample subscription."""

    subscriber: str
    text: str
    language: str = "predicates"


SUBSCRIPTIONS = (
    SampleSubscription("ana", "furniture_category is a 'dining room' and price < 200"),
    SampleSubscription("bo", "event_type contains 'antiques' and period <= 'XVII' and not material = 'pine'"),
    SampleSubscription("cy", "material in ('oak', 'walnut') and price between 150 and 600"),
    SampleSubscription("di", "furniture_category is a 'outdoor' or price < 60"),
)
LATER_SUBSCRIPTION = SampleSubscription("ed", "title contains 'clock' and exists maker.city")
INVALID_SUBSCRIPTION = SampleSubscription("ana", "furniture_category is a 'dining room' and prise < 200")
XPATH_SUBSCRIPTION = SampleSubscription("ed", '//lot[contains(title, "clock") and estimate < 500]', "xpath")
CATALOGUE = """<?xml version="1.0"?>
<catalogue house="Graz">
  <lot number="1"><title>long-case clock</title><estimate>900</estimate></lot>
  <lot number="2"><title>cuckoo clock</title><estimate>320</estimate></lot>
  <lot number="3"><title>ship in a bottle</title><estimate>60</estimate></lot>
</catalogue>
"""
"""A document: it is matched as a whole, and both parts of the wish must hold of the same lot."""

FEED_SUBSCRIPTION = SampleSubscription(
    "fy",
    'SELECT ?item WHERE (?item, rss:title, ?t) (?item, dc:subject, "clocks") AND ?t contains "repair"',
    "gql",
)
FEED = """<?xml version="1.0"?>
<rss version="2.0"><channel>
  <title>Old things</title><link>http://old-things.example/</link><description>A journal</description>
  <item>
    <guid>http://old-things.example/1</guid>
    <title>How to repair a cuckoo clock</title><category>clocks</category>
  </item>
  <item>
    <guid>http://old-things.example/2</guid>
    <title>How to repair a chair</title><category>furniture</category>
  </item>
</channel></rss>
"""
"""A feed: each item is a graph, and both parts of the wish must hold of the same item."""

REFUSED_ITEM = {"event_type": ["antiques", "furniture"], "price": 100, "quantity": 1, "period": "XVIII"}

Item = dict[str, Any]

_CATEGORIES = (
    *("bed", "four-poster bed", "wardrobe", "table", "dining table", "extending table", "chair"),
    *("garden chair", "sideboard", "bench"),
)
_PERIODS = ("XV", "XVI", "XVII", "XVIII", "XIX", "XX")
_MATERIALS = ("oak", "walnut", "pine", "iron", "wicker")
_TITLES = ("cuckoo clock", "ship in a bottle", "barometer", "long-case clock", "globe", "music box")
_CITIES = ("Oslo", "Porto", "Ghent", "Graz")


def schema_text(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def items(seed: int) -> Iterator[Item]:
    """Endless items for auction; the same seed gives the same ones."""
    chance = random.Random(seed)
    kinds = (furniture, antique_furniture, furniture, antiques, antique_furniture, curiosity)
    while True:
        for kind in kinds:
            yield kind(chance)


def furniture(chance: random.Random) -> Item:
    item: Item = {"event_type": "furniture", **_price_members(chance)}
    item["furniture_category"] = chance.choice(_CATEGORIES)
    if chance.random() < 0.7:
        item["material"] = chance.choice(_MATERIALS)
    return item


def antiques(chance: random.Random) -> Item:
    return {"event_type": "antiques", **_price_members(chance), "period": chance.choice(_PERIODS)}


def antique_furniture(chance: random.Random) -> Item:
    return furniture(chance) | {"event_type": ["antiques", "furniture"], "period": chance.choice(_PERIODS)}


def curiosity(chance: random.Random) -> Item:
    item = {
        "event_type": "curiosities",
        "title": chance.choice(_TITLES),
        "price": chance.randrange(20, 400, 5),
    }
    return item | {"maker": {"city": chance.choice(_CITIES)}}


def _price_members(chance: random.Random) -> Item:
    return {"price": chance.randrange(20, 500, 10), "quantity": chance.randint(1, 6)}


def describe(item: Item) -> str:
    """An item in a few words: `4 tables`, as in a log."""
    words = [item.get("title"), item.get("furniture_category"), item.get("material"), item.get("period")]
    types = item["event_type"]
    kind = " + ".join(types) if isinstance(types, list) else types
    return ", ".join([str(word) for word in words if word] + [f"at {item['price']}"]) + f"  ({kind})"
