"""Compilation to plans: same matches as trees, minimal clauses, limits, described access paths."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from research.events.evaluation import satisfies
from tests.support.strategies.events import SCHEMA, events, schema_events, schema_texts, texts
from tidings import Subscription, compile_many
from tidings.atoms import Aspect, Column, Event
from tidings.errors import CheckProblem, SubscriptionError, TooLarge
from tidings.events.predicate_compiler import parse_and_check
from tidings.events.reference_matcher import matches
from tidings.events.schema.event_schema import EventSchema
from tidings.kinds import LANGUAGES
from tidings.matching.compiler.compilation import compile_text, describe_access
from tidings.matching.compiler.language import Context
from tidings.matching.compiler.plan import Plan, Relation, Test, TestShape
from tidings.matching.index.builder.access_paths import AccessPath
from tidings.matching.index.builder.segment_builder import SegmentContent, build_segment
from tidings.values import Kind


def compile_or_skip(text: str, schema: EventSchema | None = None) -> Plan:
    try:
        return compile_text(text, schema)
    except SubscriptionError:
        assume(False)
        raise


@given(texts(), events())
def test_plan_agrees_with_specification(text: str, event: Event) -> None:
    assert satisfies(compile_or_skip(text), event) == matches(parse_and_check(text), event)


@given(schema_texts(), schema_events())
def test_plan_with_schema_agrees_with_specification(text: str, event: Event) -> None:
    assert satisfies(compile_or_skip(text, SCHEMA), event) == matches(parse_and_check(text, SCHEMA), event)


PARTS = [
    *(f"price {operator} {number}" for operator in ("=", "!=", "<", "<=", ">", ">=") for number in (1, 2)),
    *("price in (1, 2)", "price between 1 and 2", "price between 2 and 3"),
    *(f"period {operator} '{period}'" for operator in ("=", "!=", "<", ">=") for period in ("XVI", "XVII")),
    *(
        "title starts with 'x'",
        "title = 'xy'",
        "title ends with 'z'",
        "since > 2004-06-01",
        "since < 2004-06-01",
    ),
]
conjoined = st.lists(
    st.sampled_from(PARTS) | st.sampled_from(PARTS).map("not {}".format), min_size=1, max_size=4
)


@given(conjoined.map(" and ".join), schema_events())
def test_compile_text_rejects_only_impossible_texts(text: str, event: Event) -> None:
    try:
        compile_text(text, SCHEMA)
    except CheckProblem as problem:
        assert problem.what.startswith(("no ", "can never match"))
        assert not matches(parse_and_check(text, SCHEMA), event)


def clauses(text: str, schema: EventSchema | None = None) -> list[list[str]]:
    return [[_show_test(test) for test in clause] for clause in compile_text(text, schema).clauses]


def _show_test(test: object) -> str:
    shape, operand = test.shape, test.operand  # type: ignore[attr-defined]
    column = shape.column
    aspect = "" if column.aspect is Aspect.VALUE else f":{column.aspect.name.lower()}"
    return f"{'not ' if shape.negated else ''}{column.path}{aspect} {shape.relation.name} {operand}"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a = 1 and b < 2", [["a EQ 1", "b LT 2"]]),
        ("a = 1 or b < 2", [["a EQ 1"], ["b LT 2"]]),
        ("(a = 1 or b = 2) and c = 3", [["a EQ 1", "c EQ 3"], ["b EQ 2", "c EQ 3"]]),
        ("not (a = 1 or b = 2)", [["not a EQ 1", "not b EQ 2"]]),
        ("not (a = 1 and not b = 2)", [["not a EQ 1"], ["b EQ 2"]]),
        ("not a < 5", [["not a LT 5"]]),
        ("a = 1 and a = 1", [["a EQ 1"]]),
        ("a = 1 and a = 1.0", [["a EQ 1"]]),
        ("a = 1 or a = true", [["a EQ 1"], ["a EQ True"]]),
        ("a = 1 or (a = 1 and b = 2)", [["a EQ 1"]]),
        ("a = 1 or b = 2 or a = 1", [["a EQ 1"], ["b EQ 2"]]),
        ("(a = 1 or b = 2) and not a = 1", [["b EQ 2", "not a EQ 1"]]),
        ("a in (1, 'x')", [["a EQ 1"], ["a EQ x"]]),
        ("not a in (1, 2, 'x')", [["not a IN (1, 2)", "not a EQ x"]]),
        ("a contains 'x' and b starts with 'y'", [["a:substring EQ x", "b:prefix EQ y"]]),
        ("exists a", [["a EXISTS None"]]),
        ("a between 1 and 2", [["a BETWEEN (1, 2)"]]),
    ],
)
def test_compile_text_returns_clauses(text: str, expected: list[list[str]]) -> None:
    assert clauses(text) == expected


def test_compile_text_orders_of_domains_are_aspects() -> None:
    plan = compile_text("category is a 'dining room' and period > 'XVI'", SCHEMA)
    shapes = [test.shape for test in plan.clauses[0]]
    assert [shape.column for shape in shapes] == [
        Column("category", Aspect.AT_MOST, "categories"),
        Column("period", Aspect.ABOVE, "periods"),
    ]
    assert {shape.relation for shape in shapes} == {Relation.EQ} and {shape.kind for shape in shapes} == {
        Kind.STRING
    }
    assert [domain.name for domain in plan.domains] == ["categories", "periods"]


def test_compile_text_instants_are_aspect() -> None:
    (shape,) = (test.shape for test in compile_text("a > '2004-05-31'").clauses[0])
    assert (shape.column, shape.relation, shape.kind) == (
        Column("a", Aspect.INSTANT),
        Relation.GT,
        Kind.INSTANT,
    )


def test_compile_text_beyond_clause_limit_is_rejected_early() -> None:
    pairs = " and ".join(f"(a = {i} or b = {i})" for i in range(9))
    with pytest.raises(TooLarge, match=r"needs 512 clauses; accepted: at most 256"):
        compile_text(pairs)
    assert len(compile_text(pairs, limit=512).clauses) == 512
    with pytest.raises(TooLarge, match=r"more than 10\^12 clauses"):
        compile_text(" and ".join(f"(a = {i} or b = {i})" for i in range(300)))


ACCESS_PATHS = [
    ("gql", "SELECT ?x WHERE (?x, dcterms:replaces, ?b)", "dcterms:replaces"),
    ("gql", "SELECT ?x WHERE (?x, dc:title, ?t) (?x, dc:date, ?d)", "dc:date"),
    ("gql", "SELECT ?x WHERE (?x, dc:date, ?d) AND ?d != 5", "dc:date"),
    ("gql", "SELECT ?x WHERE (?x, dc:title, ?t) (?x, dc:date, ?d) AND ?d > 5", "dc:date"),
    ("gql", "SELECT ?x WHERE (?x, ?p, ?o)", "edges of all properties"),
    ("gql", "SELECT ?x WHERE { ?x dc:date ?d ; dc:title 'oak' }", "dc:title"),
    ("predicates", "exists price", "price"),
    ("predicates", "price != 5", "price"),
    ("predicates", "price > 5 and exists colour", "price"),
    ("predicates", "price != 5 and colour = 'red'", "colour"),
    ("predicates", "not price = 5", "every publication"),
    ("predicates", "not exists price", "every publication"),
    ("predicates", "not exists colour and price != 5 or not price > 7", "every publication, price"),
    ("xpath", "/a[not(b)]", "/a"),
    ("xpath", "/a[b != 5]", "/a/b"),
    ("xpath", "//*", "//*"),
]


@pytest.mark.parametrize(("language", "text", "expected"), ACCESS_PATHS)
def test_describe_access_names_columns_that_index_chooses(language: str, text: str, expected: str) -> None:
    assert describe_access(LANGUAGES[language].compile(Context(text, None))) == expected
    built = build_segment(compile_many([Subscription("s", "ana", language, text)]))
    assert {_chosen_column(built, path) for path in built.access_paths} == set(expected.split(", "))


def _chosen_column(built: SegmentContent, path: AccessPath) -> str:
    """Return the column of an access path, described as for a plan with one test of it."""
    tests = path.key if path.key is not None else path.cut
    number = path.column if tests is None else int(built.clauses.column[tests[0]])
    if number is None:
        return "every publication"
    shape = TestShape(built.columns[number], Relation.EXISTS, None)
    return describe_access(Plan(((Test(shape, None),),)))
