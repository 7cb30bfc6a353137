"""Where new rules are evaluated: how much a store would have to compare."""

from __future__ import annotations

from tidings.metadata.provider.rule_changes import estimate_comparisons
from tidings.metadata.rules.atomic import TriggeringRule
from tidings.metadata.rules.syntax import Operator


def test_what_is_found_by_an_index_is_not_compared() -> None:
    asked = [
        TriggeringRule("Host"),
        TriggeringRule("Host", "port", Operator.EQUAL, 80),
        TriggeringRule("Host", "port", Operator.GREATER, 80),
        TriggeringRule("Host", "name", Operator.CONTAINS, "a"),
        TriggeringRule("Host", "name", Operator.UNEQUAL, "a"),
    ]
    assert estimate_comparisons(asked, 1_000) == 3_000
    assert estimate_comparisons(asked[:2], 1_000) == 0
