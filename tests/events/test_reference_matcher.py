"""Reasons of matches of events."""

from __future__ import annotations

import pytest
from hypothesis import given

from tests.support.strategies.events import SCHEMA, events, texts
from tidings.atoms import Event
from tidings.events.predicate_compiler import parse_and_check
from tidings.events.reference_matcher import (
    SHOWN,
    explain,
    matches,
    pointer,
)
from tidings.model import Reason
from tidings.notification_text import format_reason, format_reasons

TABLE: Event = {
    "category": ["table"],
    "price": [180],
    "bids": [3, 7],
    "seller.city": ["Graz"],
    "odd name": [1],
}


def explain_text(text: str, event: Event = TABLE) -> str:
    return format_reasons(explain(parse_and_check(text, SCHEMA if "category" in text else None), event))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "category is a 'dining room' and price < 200",
            "category 'table' is a 'dining room'; price 180 < 200",
        ),
        ("price = 180", "price 180 = 180"),
        ("price in (170, 180)", "price 180 in (170, 180)"),
        ("bids > 5", "bids 7 > 5"),
        ("price between 100 and 200", "price 180 between 100 and 200"),
        ("exists price", "exists price (180)"),
        ("seller.city starts with 'G'", "seller.city 'Graz' starts with 'G'"),
        ('"odd name" < 2', '"odd name" 1 < 2'),
        ("price > 200 or bids > 1 or bids > 2", "bids 3 > 1"),
        ("not (price > 200 or exists reserve)", "not (price > 200 or exists reserve)"),
        ("price < 200 and not color = 'red'", "price 180 < 200; not (color = 'red')"),
        ("price > 200", ""),
    ],
)
def test_explain_match_names_predicates_with_values(text: str, expected: str) -> None:
    assert explain_text(text) == expected


def test_explain_returns_predicate_value_and_pointer() -> None:
    assert explain(parse_and_check("seller.city != 'Wien'"), TABLE) == (
        Reason("seller.city != 'Wien'", "Graz", "/seller/city"),
    )


def test_pointer_escapes_slashes_and_tildes() -> None:
    assert pointer("a/b.c~d") == "/a~1b/c~0d"
    assert format_reason(Reason('"a/b" < 2', 1, pointer("a/b"))) == '"a/b" 1 < 2'


@given(texts(), events())
def test_explain_has_reasons_for_matches_only(text: str, event: Event) -> None:
    tree = parse_and_check(text)
    matched = matches(tree, event)
    assert bool(explain(tree, event)) is matched
    for reason in explain(tree, event):
        assert matches(parse_and_check(reason.predicate), event)


def test_explain_long_value_is_truncated() -> None:
    (reason,) = explain(parse_and_check("text contains 'xx'"), {"text": ["x" * 1_000_000]})
    assert reason.value == "x" * (SHOWN - 1) + "…"
