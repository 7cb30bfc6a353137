"""Subscriptions and events for the tests, with their matches by the specification."""

from __future__ import annotations

import json
import random

from tidings.events.json_decoder import decode
from tidings.events.predicate_compiler import parse_and_check
from tidings.events.reference_matcher import matches
from tidings.model import Subscription

SEED = 4


def subscriptions(count: int, subscribers: int = 5) -> list[Subscription]:
    """Texts of several shapes over a few attributes, so that each event matches some of them."""
    dice = random.Random(SEED)
    shapes = (
        "symbol = 'S{a}' and price > {b}",
        "symbol in ('S{a}', 'S{b}') or price between {a} and {b}",
        "price >= {b} and not symbol = 'S{a}'",
        "seller.city starts with 'O' and price < {b}",
        "tags contains 'oak' and exists seller.city",
    )
    result = []
    for i in range(count):
        a, b = sorted((dice.randrange(10), dice.randrange(10)))
        text = dice.choice(shapes).format(a=a, b=b)
        result.append(Subscription(f"s{i:03d}", f"u{i % subscribers}", "predicates", text))
    return result


def events(count: int, first: int = 0) -> list[bytes]:
    """JSON events; every third has no id."""
    dice = random.Random(SEED + first)
    bodies = []
    for i in range(first, first + count):
        event = {"symbol": f"S{dice.randrange(10)}", "price": dice.randrange(10)}
        if i % 3:
            event["id"] = f"e{i}"
        if dice.random() < 0.5:
            event["seller"] = {"city": dice.choice(["Oslo", "Rome", "日本"])}
        if dice.random() < 0.5:
            event["tags"] = dice.sample(["oak", "round", "old"], 2)
        bodies.append(json.dumps(event).encode())
    return bodies


def expected(named: dict[str, bytes], wanted: list[Subscription], schema=None) -> set[tuple[str, str]]:
    """Return the pairs of publication and subscription that match by the specification."""
    trees = [(each.id, parse_and_check(each.text, schema)) for each in wanted]
    decoded = [(name, decode(body, schema)) for name, body in named.items()]
    return {(name, id) for name, event in decoded for id, tree in trees if matches(tree, event)}


def as_lines(wanted: list[Subscription]) -> str:
    """Return the text of a subscription file."""
    fields = ("id", "subscriber", "language", "text")
    return "".join(json.dumps({name: getattr(each, name) for name in fields}) + "\n" for each in wanted)
