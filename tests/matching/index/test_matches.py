"""Matches: pairs of numbers with ids, across segments and after removals."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tidings.matching.compiler.compilation import compile_many
from tidings.matching.index.index import Index
from tidings.model import Subscription


def test_matches_subscription_is_position_in_index_ids() -> None:
    index = Index.create()
    for first in range(0, 9, 3):
        texts = {f"s{number}": f"price > {number}" for number in range(first, first + 3)}
        index.add(compile_many([Subscription(id, "ana", "predicates", text) for id, text in texts.items()]))
    index.remove(["s4"])
    matches = index.match([{"price": [2]}, {"price": [8]}])
    assert index.ids.take(matches.subscription).to_pylist() == matches.ids().to_pylist()
    assert sorted(matches.ids().to_pylist()) == sorted(["s0", "s1", *(f"s{n}" for n in range(8) if n != 4)])


def test_matches_of_empty_index_are_empty() -> None:
    index = Index.create()
    matches = index.match([{"price": [2]}])
    assert (len(index.ids), matches.subscription.tolist(), matches.publication.tolist()) == (0, [], [])


@given(st.lists(st.lists(st.integers(0, 9), max_size=8), max_size=4), st.integers(1, 5))
def test_matches_order_agrees_with_stable_sort(prices: list[list[int]], segments: int) -> None:
    index = Index.create()
    for number in range(segments):
        index.add(compile_many([Subscription(f"s{number}", "ana", "predicates", f"price > {number}")]))
    found = index.match([{"price": values} for values in prices])
    order, starts = matched = found.order(len(prices))
    assert order.tolist() == np.argsort(found.publication, kind="stable").tolist()
    assert starts.tolist() == [int((found.publication < place).sum()) for place in range(len(prices) + 1)]
    assert matched.publications.tolist() == found.publication[order].tolist()
    assert matched.matched.tolist() == sorted(set(found.publication.tolist()))
    assert found.table(["id"], order)["id"].to_pylist() == [found.ids()[int(i)].as_py() for i in order]
