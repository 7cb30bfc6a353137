"""Checks of predicate texts with and without a schema, from files of pairs."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.pairs import Pair, outcome, read_pairs
from tests.support.strategies.events import SCHEMA
from tidings.errors import SubscriptionError
from tidings.events.predicate_compiler import parse_and_check
from tidings.events.predicate_tree import show_tree
from tidings.events.schema.domains import Domain, DomainKind
from tidings.events.schema.event_schema import Attribute, EventSchema, EventType, Member
from tidings.matching.compiler.compilation import compile_text

HERE = Path(__file__).parent


def checked_text(text: str, schema: EventSchema | None) -> str:
    try:
        compile_text(text, schema)
        return outcome(show_tree(parse_and_check(text, schema)))
    except SubscriptionError as problem:
        return outcome(problem)


@pytest.mark.parametrize("pair", read_pairs(HERE / "checks.txt"), ids=str)
def test_check_with_schema_gives_expected_outcome(pair: Pair) -> None:
    assert checked_text(pair.given, SCHEMA) == pair.expected


@pytest.mark.parametrize("pair", read_pairs(HERE / "free.txt"), ids=str)
def test_check_without_schema_gives_expected_outcome(pair: Pair) -> None:
    assert checked_text(pair.given, None) == pair.expected
    assert checked_text(pair.given, EventSchema()) == pair.expected


def test_check_open_type_allows_unknown_attributes() -> None:
    schema = EventSchema.of(
        (), [Attribute("price", "numeric")], [EventType("any", (Member("price"),), open=True)]
    )
    assert checked_text("prise < 200", schema) == "prise < 200"
    assert checked_text("price < 'x'", schema).startswith("price is numeric")
    assert checked_text("price > 10 and price < 5", schema) == "price > 10 and price < 5"


def test_check_attribute_multiple_in_one_type_allows_disjoint_ranges() -> None:
    types = [EventType("one", (Member("price"),)), EventType("many", (Member("price", multiple=True),))]
    schema = EventSchema.of((), [Attribute("price", "numeric")], types)
    assert checked_text("price > 10 and price < 5", schema) == "price > 10 and price < 5"


def test_check_number_outside_domain_is_rejected() -> None:
    share = Domain("share", DomainKind.NUMERIC, minimum=0, maximum=1)
    schema = EventSchema.of([share], [Attribute("part", "share")], [EventType("any", (Member("part"),))])
    assert checked_text("part = 2", schema).startswith("part cannot be 2 (column 8); accepted: >= 0 and <= 1")
    assert checked_text("part > 1", schema).startswith(
        "no part satisfies > 1 (column 1); accepted: >= 0 and <= 1"
    )
    assert checked_text("part >= 1", schema) == "part >= 1"
    assert checked_text("part != 2", schema) == "part != 2"
