"""Warnings about valid predicate texts."""

from __future__ import annotations

import pytest

from tidings.errors import TextWarning
from tidings.events.schema.event_schema import EventSchema
from tidings.events.schema.files import load_text
from tidings.kinds import LANGUAGES
from tidings.matching.compiler.language import LONGEST_WARNING, MOST_WARNINGS, Context, first_warnings

SCHEMA = """
domains:
  colour: {values: [red, blue]}
attributes: {bid: numeric, price: numeric, label: string, colour: colour}
event_types:
  lot:
    attributes: {price: optional, bid: optional multiple, label: optional multiple, colour: optional multiple}
"""


@pytest.fixture(scope="module")
def schema() -> EventSchema:
    return load_text(SCHEMA)


def warning_messages(text: str, schema: EventSchema | None) -> list[str]:
    return [each.message() for each in LANGUAGES["predicates"].warnings(Context(text, schema))]


def test_warnings_range_over_several_values_names_between(schema: EventSchema) -> None:
    assert warning_messages("bid > 4 and bid < 6", schema) == [
        "each predicate looks for its own value of bid, which may have several: one value may satisfy bid > 4 and "
        "another bid < 6 (column 1)\n"
        "  bid > 4 and bid < 6\n"
        "  ^^^^^^^^^^^^^^^^^^^   write bid between 4 and 6 for one value, both ends included"
    ]


@pytest.mark.parametrize(
    "text",
    [
        "bid < 6 and price < 3 and bid >= 4",
        "(price < 3 or bid > 4) and bid < 6",
        "label starts with 'a' and label ends with 'z'",
    ],
)
def test_warnings_two_predicates_on_several_values_are_found(text: str, schema: EventSchema) -> None:
    assert ["each predicate looks for its own value" in each for each in warning_messages(text, schema)] == [
        True
    ]


@pytest.mark.parametrize(
    "text",
    [
        "price > 4 and price < 6",  # one price
        "bid between 4 and 6",  # one value of bid
        "bid > 4 or bid < 6",
        "bid > 4 and bid > 5",  # the value above 5 is above 4
        "bid > 6 and bid < 4",  # asks for two values, which is possible
        "bid = 4 and bid = 6",
        "not bid < 4 and not bid > 6",  # no value outside
        "colour contains 'red'",  # no free text: membership
        "label = 'red'",
    ],
)
def test_warnings_unambiguous_texts_have_none(text: str, schema: EventSchema) -> None:
    assert warning_messages(text, schema) == []


def test_warnings_contains_on_several_strings_names_equality(schema: EventSchema) -> None:
    assert warning_messages("label contains 'red'", schema) == [
        "'contains' looks for the characters 'red' within each value of label: a longer value that contains them "
        "matches, too (column 1)\n"
        "  label contains 'red'\n"
        "  ^^^^^^^^^^^^^^^^^^^^   write label = 'red' to find events where one of the values is 'red'"
    ]


@pytest.mark.parametrize("text", ["a > 6 and a < 4", "a >= 4 and a < 4", "a > 2005-01-01 and a < 2004-01-01"])
def test_warnings_empty_range_without_schema_is_found(text: str) -> None:
    assert ["no single value of a satisfies both" in each for each in warning_messages(text, None)] == [True]


@pytest.mark.parametrize(
    "text", ["a > 4 and a < 6", "a >= 4 and a <= 4", "a > 'b' and a < 4", "a contains 'x'"]
)
def test_warnings_without_schema_only_empty_ranges_are_found(text: str) -> None:
    assert warning_messages(text, None) == []


def test_warnings_suggested_texts_compile(schema: EventSchema) -> None:
    for text in ("bid between 4 and 6", "label = 'red'"):
        assert LANGUAGES["predicates"].compile(Context(text, schema)).clauses


def test_warnings_are_bounded_in_number_and_size() -> None:
    bounds = [f"a > {number}" for number in range(100, 140)] + [f"a < {number}" for number in range(40)]
    warnings = LANGUAGES["predicates"].warnings(Context(" and ".join(bounds)))
    assert len(warnings) == MOST_WARNINGS + 1
    assert warnings[-1].what == f"only the first {MOST_WARNINGS} warnings are shown"
    [long] = first_warnings([TextWarning("x" * 10_000, None, "y" * 10_000)])
    assert len(long.what) == len(long.hint or "") == LONGEST_WARNING
