"""Where new rules are evaluated: how much a store would have to compare."""

from __future__ import annotations

from tidings.languages.rules_tree import Compares
from tidings.metadata.atomic import Triggering
from tidings.provider.evaluating import comparisons


def test_what_is_found_by_an_index_is_not_compared() -> None:
    asked = [
        Triggering("Host"),
        Triggering("Host", "port", Compares.EQUAL, 80),
        Triggering("Host", "port", Compares.GREATER, 80),
        Triggering("Host", "name", Compares.CONTAINS, "a"),
        Triggering("Host", "name", Compares.UNEQUAL, "a"),
    ]
    assert comparisons(asked, 1_000) == 3_000
    assert comparisons(asked[:2], 1_000) == 0
