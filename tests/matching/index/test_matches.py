"""Matches: pairs of numbers that lead to ids, across segments and after removals."""

from __future__ import annotations

from tidings.matching.compiler.compilation import compile_many
from tidings.matching.index.index import Index
from tidings.model import Subscription


def test_matches_subscription_is_a_position_in_index_ids() -> None:
    index = Index.create()
    for first in range(0, 9, 3):
        texts = {f"s{number}": f"price > {number}" for number in range(first, first + 3)}
        index.add(compile_many([Subscription(id, "ana", "predicates", text) for id, text in texts.items()]))
    index.remove(["s4"])
    found = index.match([{"price": [2]}, {"price": [8]}])
    assert index.ids.take(found.subscription).to_pylist() == found.ids().to_pylist()
    assert sorted(found.ids().to_pylist()) == sorted(["s0", "s1", *(f"s{n}" for n in range(8) if n != 4)])


def test_an_index_without_subscriptions_has_no_numbers() -> None:
    index = Index.create()
    found = index.match([{"price": [2]}])
    assert (len(index.ids), found.subscription.tolist(), found.publication.tolist()) == (0, [], [])
