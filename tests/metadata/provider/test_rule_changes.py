"""The cost estimate that decides where new rules are evaluated."""

from __future__ import annotations

from tidings.metadata.provider.rule_changes import estimate_comparisons
from tidings.metadata.rules.atomic import TriggeringRule
from tidings.metadata.rules.syntax import Operator


def test_estimate_comparisons_excludes_indexed_rules() -> None:
    rules = [
        TriggeringRule("Host"),
        TriggeringRule("Host", "port", Operator.EQUAL, 80),
        TriggeringRule("Host", "port", Operator.GREATER, 80),
        TriggeringRule("Host", "name", Operator.CONTAINS, "a"),
        TriggeringRule("Host", "name", Operator.UNEQUAL, "a"),
    ]
    assert estimate_comparisons(rules, 1_000) == 3_000
    assert estimate_comparisons(rules[:2], 1_000) == 0
