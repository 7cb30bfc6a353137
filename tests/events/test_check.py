"""Texts checked with and without a schema, as pairs."""

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


def understood(text: str, schema: EventSchema | None) -> str:
    try:
        compile_text(text, schema)
        return outcome(show_tree(parse_and_check(text, schema)))
    except SubscriptionError as problem:
        return outcome(problem)


@pytest.mark.parametrize("pair", read_pairs(HERE / "checks.txt"), ids=str)
def test_check_with_a_schema_reports(pair: Pair) -> None:
    assert understood(pair.given, SCHEMA) == pair.expected


@pytest.mark.parametrize("pair", read_pairs(HERE / "free.txt"), ids=str)
def test_check_without_a_schema_reports(pair: Pair) -> None:
    assert understood(pair.given, None) == pair.expected
    assert understood(pair.given, EventSchema()) == pair.expected


def test_an_open_type_allows_unknown_attributes() -> None:
    schema = EventSchema.of(
        (), [Attribute("price", "numeric")], [EventType("any", (Member("price"),), open=True)]
    )
    assert understood("prise < 200", schema) == "prise < 200"
    assert understood("price < 'x'", schema).startswith("price is numeric")
    assert understood("price > 10 and price < 5", schema) == "price > 10 and price < 5"


def test_an_attribute_that_one_type_has_several_times_is_not_single() -> None:
    types = [EventType("one", (Member("price"),)), EventType("many", (Member("price", multiple=True),))]
    schema = EventSchema.of((), [Attribute("price", "numeric")], types)
    assert understood("price > 10 and price < 5", schema) == "price > 10 and price < 5"


def test_check_of_numbers_outside_their_domain_is_refused() -> None:
    share = Domain("share", DomainKind.NUMERIC, minimum=0, maximum=1)
    schema = EventSchema.of([share], [Attribute("part", "share")], [EventType("any", (Member("part"),))])
    assert understood("part = 2", schema).startswith("part cannot be 2 (column 8); accepted: >= 0 and <= 1")
    assert understood("part > 1", schema).startswith(
        "no part satisfies > 1 (column 1); accepted: >= 0 and <= 1"
    )
    assert understood("part >= 1", schema) == "part >= 1"
    assert understood("part != 2", schema) == "part != 2"
