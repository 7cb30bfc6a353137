"""The reasons of a match and of a miss."""

from __future__ import annotations

import pytest
from hypothesis import given

from tests.support.strategies.events import SCHEMA, events, texts
from tidings.atoms import Event
from tidings.events.explanation import (
    SHOWN,
    explain,
    explain_miss,
    matches,
    pointer,
    show_failure,
    show_reason,
    show_reasons,
)
from tidings.events.predicate_compiler import parse_and_check
from tidings.model import Reason

TABLE: Event = {
    "category": ["table"],
    "price": [180],
    "bids": [3, 7],
    "seller.city": ["Graz"],
    "odd name": [1],
}


def because(text: str, event: Event = TABLE) -> str:
    return show_reasons(explain(parse_and_check(text, SCHEMA if "category" in text else None), event))


def why_not(text: str, event: Event = TABLE) -> str:
    return "; ".join(map(show_failure, explain_miss(parse_and_check(text), event)))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "category is a 'dining room' and price < 200",
            "category 'table' is a 'dining room'; price 180 < 200",
        ),
        ("price = 180", "price = 180"),
        ("price in (170, 180)", "price 180 in (170, 180)"),
        ("bids > 5", "bids 7 > 5"),
        ("price between 100 and 200", "price 180 between 100 and 200"),
        ("exists price", "exists price"),
        ("seller.city starts with 'G'", "seller.city 'Graz' starts with 'G'"),
        ('"odd name" < 2', '"odd name" 1 < 2'),
        ("price > 200 or bids > 1 or bids > 2", "bids 3 > 1"),
        ("not (price > 200 or exists reserve)", "not (price > 200 or exists reserve)"),
        ("price < 200 and not color = 'red'", "price 180 < 200; not (color = 'red')"),
        ("price > 200", ""),
    ],
)
def test_reasons(text: str, expected: str) -> None:
    assert because(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("price > 200", "price 180 is not > 200"),
        ("price < 200 and color = 'red' and bids > 9", "no color; bids 3 is not > 9"),
        ("price > 200 or price < 100", "price 180 is not > 200; price 180 is not < 100"),
        ("not price < 200", "not (price < 200), but it is 180"),
        ("not exists price", "not (exists price), but it is 180"),
        ("exists reserve", "no reserve"),
        ("price < 200", ""),
    ],
)
def test_failures(text: str, expected: str) -> None:
    assert why_not(text) == expected


def test_a_reason_is_fields() -> None:
    assert explain(parse_and_check("seller.city != 'Wien'"), TABLE) == (
        Reason("seller.city != 'Wien'", "Graz", "/seller/city"),
    )


def test_pointers_escape() -> None:
    assert pointer("a/b.c~d") == "/a~1b/c~0d"
    assert show_reason(Reason('"a/b" < 2', 1, pointer("a/b"))) == '"a/b" 1 < 2'


@given(texts(), events())
def test_there_are_reasons_for_one_or_the_other(text: str, event: Event) -> None:
    tree = parse_and_check(text)
    matched = matches(tree, event)
    assert bool(explain(tree, event)) is matched
    assert bool(explain_miss(tree, event)) is not matched
    for reason in explain(tree, event):
        assert matches(parse_and_check(reason.predicate), event)
    for reason in explain_miss(tree, event):
        assert not matches(parse_and_check(reason.predicate), event)


def test_explain_of_a_long_value_shows_its_beginning() -> None:
    (reason,) = explain(parse_and_check("text contains 'xx'"), {"text": ["x" * 1_000_000]})
    assert reason.value == "x" * (SHOWN - 1) + "…"
