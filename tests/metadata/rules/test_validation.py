"""Checks of rules against the schema: rejected ones with their column, and accepted ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from research.metadata.semantics import infer_types
from tests.support.pairs import Pair, outcome, read_pairs
from tests.support.stores.cycle_providers import SCHEMA
from tidings.errors import CheckProblem, SubscriptionError
from tidings.metadata.rules.rule_parser import parse_query, parse_rule
from tidings.metadata.rules.validation import check_query, check_rule, check_rule_name, order_by_dependency

TYPES = {"Passau": "CycleProvider"}
PAIRS = read_pairs(Path(__file__).with_name("checking.txt"))


def check_text(text: str) -> str:
    """Return the class that a rule or a query gives, or the error."""
    try:
        if text.startswith("query: "):
            return check_query(parse_query(text[7:]), SCHEMA, TYPES, text[7:])
        return check_rule(parse_rule(text), SCHEMA, TYPES, text)
    except SubscriptionError as problem:
        return outcome(problem)


@pytest.mark.parametrize("pair", PAIRS, ids=str)
def test_check_rule_gives_class_or_error(pair: Pair) -> None:
    assert check_text(pair.given) == pair.expected


def test_infer_types_rules_over_rules_have_registered_class() -> None:
    rules = {
        "Large": parse_rule("search Passau p, ServerInformation s register s where p.serverInformation = s"),
        "Passau": parse_rule("search CycleProvider c register c where c.serverHost contains 'passau'"),
        "Larger": parse_rule("search Large x register x where x.memory > 64"),
    }
    assert order_by_dependency(rules) == ["Passau", "Large", "Larger"]
    assert infer_types(rules, SCHEMA) == {
        "Passau": "CycleProvider",
        "Large": "ServerInformation",
        "Larger": "ServerInformation",
    }


def test_infer_types_cyclic_rules_are_rejected() -> None:
    rules = {
        "A": parse_rule("search B b register b"),
        "B": parse_rule("search C c register c"),
        "C": parse_rule("search CycleProvider p, B b register p where p = b"),
    }
    with pytest.raises(CheckProblem, match="in a cycle: B, C, B"):
        infer_types(rules, SCHEMA)
    with pytest.raises(CheckProblem, match="in a cycle: X, X"):
        order_by_dependency({"X": parse_rule("search X x register x")})


def test_infer_types_long_chain_does_not_overflow() -> None:
    chain = {f"R{n}": parse_rule(f"search R{n + 1} x register x") for n in range(3_000)}
    chain["R3000"] = parse_rule("search CycleProvider x register x")
    assert infer_types(chain, SCHEMA)["R0"] == "CycleProvider"


def test_check_rule_name_of_class_is_rejected() -> None:
    with pytest.raises(CheckProblem, match="'Provider' is the name of a class"):
        check_rule_name("Provider", SCHEMA)
    check_rule_name("Passau", SCHEMA)


def test_check_rule_accepts_tree_without_text() -> None:
    rule = parse_rule("search CycleProvider c register c where c.serverHost > 5")
    with pytest.raises(CheckProblem, match="a string is compared with a number"):
        check_rule(rule, SCHEMA, {})
