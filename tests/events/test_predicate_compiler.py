"""Bulk compilation equals compiling one text after the other."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.strategies.events import SCHEMA, schema_texts, texts, untidy
from tidings.errors import SubscriptionError
from tidings.events.schema.event_schema import EventSchema
from tidings.matching.compiler.blocks import unpack
from tidings.matching.compiler.compilation import compile_columns, compile_many, compile_text
from tidings.matching.compiler.plan import Compiled, Plan
from tidings.model import Subscription


def compile_texts(predicates: list[str], schema: EventSchema | None = None) -> Compiled:
    return compile_many(
        [Subscription(f"s-{row}", "ana", "predicates", text) for row, text in enumerate(predicates)], schema
    )


def unordered_plan(plan: Plan) -> Counter[object]:
    """Return a plan without the order of its clauses and tests."""
    return Counter(frozenset(Counter(clause).items()) for clause in plan.clauses)


def compile_one_by_one(
    predicates: list[str], schema: EventSchema | None
) -> tuple[dict[str, Counter[object]], dict[str, str]]:
    plans, problems = {}, {}
    for row, text in enumerate(predicates):
        try:
            plans[f"s-{row}"] = unordered_plan(compile_text(text, schema))
        except SubscriptionError as problem:
            problems[f"s-{row}"] = str(problem)
    return plans, problems


def assert_same(predicates: list[str], schema: EventSchema | None = None) -> Compiled:
    plans, problems = compile_one_by_one(predicates, schema)
    result = compile_texts(predicates, schema)
    assert {reject.id: reject.reason for reject in result.rejects} == problems
    ids = result.subscriptions["id"].to_pylist()
    assert dict(zip(ids, map(unordered_plan, unpack(result)), strict=True)) == plans
    return result


LITERALS = [
    *("0", "1", "5", "-5", "5.0", "05", "-0", "-0.0", "1e3", "1E+3", "2.5", "1e999", "1.", "-"),
    *("9007199254740992", "9007199254740993", "9223372036854775807", "9223372036854775808"),
    *("123456789012345678", "1234567890.123456789012345678", "0." + "1" * 40, "1" * 400),
    *("'x'", "''", "'it''s'", "''''", "'5'", "'ü'", "'日本'", "'a\nb'", "'\"'", "' and '", "'x' and b = 'y'"),
    *("'2004-05-31'", "'2004-05-31 12:00'", "'2004-99-99'", "'2004-05-31 soon'", "'2004-05-31T12:00:00Z'"),
    *("2004-05-31", "2004-05-31T12:00:00+02:00", "2004-13-01", "2004-1-1", "instant '2004-05-31'"),
    *("true", "FALSE", '"x"', "YHOO", "(1, 2)", "(1, 1)", "('x', 2)", "(1, 2, 'x')", "('2004-05-31', 'x')"),
]
SKELETONS = [
    "a = {}",
    "a != {} and a != {}",
    "a < {} or a < {}",
    "a in {} or not a in {}",
    "a in ({}, {})",
    "a in ({}, true, {})",
    "a between {} and {}",
    "not (a = {} and b = {}) or a = {}",
    "(a = {} or b > {}) and not a = {}",
    "a contains {} and a starts with {}",
    '"a b".c = {} and "a1" > {}',
    "a1 = {} and a-1 = {}",
    "a={}and b={}",
    "exists a and b = {} and sold = true",
    "event_type contains {}",
    "price > {} and price < {}",
]


@st.composite
def families(draw: st.DrawFn) -> list[str]:
    """Texts of a few skeletons with literals that are easily misread."""
    skeletons = draw(st.lists(st.sampled_from(SKELETONS), min_size=1, max_size=2))
    literals = st.sampled_from(draw(st.lists(st.sampled_from(LITERALS), min_size=1, max_size=6)))
    return [
        skeleton.format(*draw(st.tuples(*[literals] * skeleton.count("{}"))))
        for skeleton in skeletons
        for _ in range(draw(st.integers(8, 20)))
    ]


@given(families())
def test_compile_many_equals_single_compilation(predicates: list[str]) -> None:
    assert_same(predicates)


@given(st.lists(texts(), min_size=1, max_size=4), st.integers(0, 11))
def test_compile_many_any_text_equals_single_compilation(predicates: list[str], seed: int) -> None:
    assert_same([untidy(text, seed) for text in predicates] * 9)


@given(st.lists(schema_texts(), min_size=1, max_size=4))
def test_compile_many_with_schema_equals_single_compilation(predicates: list[str]) -> None:
    assert_same(predicates * 9, SCHEMA)


SCHEMA_SKELETONS = [
    "price > {} and price < {}",
    "price >= {} and price <= {} and price != {}",
    "price in ({}, {}) and bids > {} and bids < {}",
    "price = {} or price between {} and {}",
]


@given(
    st.sampled_from(SCHEMA_SKELETONS), st.lists(st.tuples(*[st.integers(0, 4)] * 4), min_size=8, max_size=30)
)
def test_compile_many_ranges_with_schema_equals_single_compilation(
    skeleton: str, literals: list[tuple[int, ...]]
) -> None:
    assert_same([skeleton.format(*some) for some in literals], SCHEMA)


WORDS = ["table", "dining room", "furniture", "XVI", "XVIII", "tabel", "red", "2004-05-31"]
WORD_SKELETONS = [
    "category is a '{}'",
    "category < '{}' and price > 3",
    "period > '{}' and period < '{}'",
    "period between '{}' and '{}'",
    "color = '{}' or color != '{}'",
    "title = '{}' and category in ('{}', '{}')",
    "since > '{}'",
]


@given(
    st.sampled_from(WORD_SKELETONS),
    st.lists(st.tuples(*[st.sampled_from(WORDS)] * 3), min_size=8, max_size=30),
)
def test_compile_many_words_with_schema_equals_single_compilation(
    skeleton: str, literals: list[tuple[str, ...]]
) -> None:
    assert_same([skeleton.format(*some) for some in literals], SCHEMA)


def test_compile_many_texts_of_one_shape_are_one_block() -> None:
    result = assert_same([f"symbol = 'S{i}' and price > {i} and price < {i + 10}" for i in range(200)])
    assert [len(block.rows) for block in result.blocks] == [200]


def test_compile_many_lists_of_different_lengths_are_one_block() -> None:
    lists = [", ".join(str(n) for n in range(2 + i % 3)) for i in range(60)]
    result = assert_same([f"a in ({numbers})" for numbers in lists])
    assert [len(block.rows) for block in result.blocks] == [60]


def test_compile_many_texts_of_many_shapes_equal_single_compilation() -> None:
    assert_same([f"a{i % 20} = {i} and b{i % 2} < {i}" for i in range(400)])


@pytest.mark.parametrize(
    "text",
    [
        "{0} < a and '{0}' = b",
        "a == {0} && b <> '{0}' || !(c = {0})",
        "a not in ({0}, {1}) and b not between {0} and {1}",
        "a is null and b is not null and c exists and d >= {0}",
    ],
)
def test_compile_many_sql_spellings_equal_single_compilation(text: str) -> None:
    result = assert_same([text.format(i, i + 1) for i in range(100)])
    assert result.subscriptions.num_rows == 100


def test_compile_many_invalid_texts_are_rejected_and_others_compiled() -> None:
    predicates = [f"price < {i}" if i % 10 else f"price === {i}" for i in range(100)]
    result = compile_texts(predicates)
    assert len(result.rejects) == 10 and result.subscriptions.num_rows == 90
    assert result.rejects[0].what == "subscription" and result.rejects[0].id == "s-0"
    assert result.rejects[0].reason.startswith("write '=' instead of '===' (column 7)")
    assert result.rejects[0].facts["place"] == {"line": 1, "column": 7, "length": 3}


def test_compile_columns_unknown_language_is_rejected() -> None:
    result = compile_columns(["1", "2"], ["ana"] * 2, ["predicates", "sql"], ["a = 1"] * 2)
    assert result.subscriptions["id"].to_pylist() == ["1"]
    assert result.rejects[0].reason == "unknown language; received 'sql'; accepted: gql, predicates, xpath"


def test_compile_columns_duplicate_id_is_rejected() -> None:
    result = compile_columns(["1", "1", "2"], ["ana"] * 3, ["predicates"] * 3, ["a = 1", "a = 2", "a = 3"])
    assert result.subscriptions["text"].to_pylist() == ["a = 1", "a = 3"]
    assert [reject.id for reject in result.rejects] == ["1"]
    assert "used twice" in result.rejects[0].reason
    assert [plan.clauses[0][0].operand for plan in unpack(result)] == [1, 3]


@pytest.mark.parametrize("bad", [None, 5, "half \ud800 a character"])
def test_compile_columns_invalid_string_is_rejected(bad: object) -> None:
    result = compile_columns(["1", "2"], ["ana"] * 2, ["predicates"] * 2, ["a = 1", bad])  # type: ignore[list-item]
    assert result.subscriptions["id"].to_pylist() == ["1"]
    assert "the text is not a valid string" in result.rejects[0].reason


def test_compile_columns_accepts_arrow_arrays() -> None:
    text = pa.chunked_array([["a = 1"], ["a = 2"]])
    result = compile_columns(pa.array(["1", "2"]), pa.array(["ana"] * 2), pa.array(["predicates"] * 2), text)
    assert result.subscriptions.column_names == ["id", "subscriber", "language", "text"]
    assert result.subscriptions.num_rows == 2


def test_compile_many_without_subscriptions_is_empty() -> None:
    result = compile_many([])
    assert (result.subscriptions.num_rows, result.blocks, result.domains, result.rejects) == (0, (), (), ())


def test_compile_many_contradictory_texts_are_rejected_as_one_by_one() -> None:
    predicates = [f"a = {number} and not exists a" for number in range(4)]
    rejects = compile_texts(predicates).rejects
    _, problems = compile_one_by_one(predicates, None)
    assert {reject.id: reject.reason for reject in rejects} == problems
    assert len(problems) == 4
