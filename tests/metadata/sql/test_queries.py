"""Queries give the results of the definition, on both databases."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import pairwise
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import delete, insert

from research.metadata.semantics import evaluate_query
from tests.metadata.rules.test_semantics import SERVERS, dense, some_schema, stored
from tests.support.stores.cycle_providers import SCHEMA
from tests.support.strategies.effort import share
from tests.support.strategies.queries import queries, wide_queries
from tidings.errors import TooLarge
from tidings.metadata.queries.answers import QueryAnswer
from tidings.metadata.resources import Ref, Resource
from tidings.metadata.rules.rule_parser import parse_query
from tidings.metadata.rules.syntax import Query
from tidings.metadata.rules.validation import check_query
from tidings.metadata.schema.model import Class, Property, Reference, Schema
from tidings.metadata.sql.queries.query_executor import Limits, QueryExecutor
from tidings.metadata.sql.resource_rows import build_atom_rows
from tidings.metadata.sql.tables import metadata_atoms, metadata_resources, rule_ends, rule_results
from tidings.store import bulk
from tidings.store.store import Store, open_store

FEWER = share(4)
"""Each test runs several queries on two databases."""


@pytest.fixture(scope="module")
def store(new_url: Callable[[], str]) -> Iterator[Store]:
    with open_store(new_url()) as opened:
        yield opened


def store_exactly(
    store: Store,
    resources: Iterable[Resource],
    schema: Schema,
    members: Mapping[str, Iterable[str]] | None = None,
) -> None:
    """Store exactly these resources, and rules with these results."""
    stored_resources = list(resources)
    rows = [row for each in stored_resources for row in build_atom_rows(each, schema)]

    def work(connection) -> None:
        for table in (metadata_resources, metadata_atoms, rule_ends, rule_results):
            connection.execute(delete(table))
        bulk.insert_rows(
            connection, metadata_resources, [(each.uri, each.cls, "d") for each in stored_resources]
        )
        bulk.insert_rows(connection, metadata_atoms, rows)
        for number, (name, uris) in enumerate((members or {}).items()):
            connection.execute(insert(rule_ends), {"name": name, "rule": number})
            bulk.insert_rows(connection, rule_results, [(uri, number) for uri in uris])

    store.database.transact(work)


def answer(store: Store, query: Query, schema: Schema, types: Mapping[str, str] | None = None) -> QueryAnswer:
    return QueryExecutor(store.database).answer(query, schema, types or {})


def sort_properties(unsorted: QueryAnswer) -> QueryAnswer:
    """Sort properties in the order of the store."""
    return QueryAnswer(
        unsorted.columns,
        unsorted.rows,
        tuple(
            Resource(
                each.uri, each.cls, {name: values for name, values in sorted(each.values.items()) if values}
            )
            for each in unsorted.resources
        ),
    )


@FEWER
@given(st.data())
def test_answer_random_queries_equal_definition(store: Store, data: st.DataObject) -> None:
    schema = data.draw(some_schema())
    resources = data.draw(stored(schema))
    drawn_queries = [data.draw(queries(schema)) for _ in range(3)]
    store_exactly(store, resources, schema)
    for query in drawn_queries:
        check_query(query, schema, {})
        assert answer(store, query, schema) == sort_properties(evaluate_query(query, resources, schema))


@FEWER
@given(st.data())
def test_answer_rows_of_several_variables_equal_definition(store: Store, data: st.DataObject) -> None:
    schema = data.draw(some_schema())
    resources = dense(schema, Random(data.draw(st.integers(0, 2**32))))
    store_exactly(store, resources, schema)
    for _ in range(3):
        query = data.draw(wide_queries(schema))
        check_query(query, schema, {})
        assert answer(store, query, schema) == sort_properties(evaluate_query(query, resources, schema))


@FEWER
@given(st.data())
def test_answer_searches_results_of_rules(store: Store, data: st.DataObject) -> None:
    schema = data.draw(some_schema())
    resources = data.draw(stored(schema))
    types = {"Some": data.draw(st.sampled_from(sorted(schema.classes)))}
    fitting = sorted(each.uri for each in resources if types["Some"] in schema.at_or_above(each.cls))
    members = {"Some": data.draw(st.sets(st.sampled_from(fitting)) if fitting else st.just(set()))}
    query = data.draw(queries(schema, types))
    store_exactly(store, resources, schema, members)
    assert answer(store, query, schema, types) == sort_properties(
        evaluate_query(query, resources, schema, members)
    )


ROWS = [
    ("search Provider p select p.serverPort", [(80,), (443,), (80,), (None,)]),
    ("search Provider p where p.serverPort > 0 select p order by p.serverPort", ["a", "c", "b"]),
    ("search Provider p where p.serverPort > 0 select p order by p.serverPort desc", ["b", "a", "c"]),
    # Missing values come last in both directions; ties are ordered by URI in both directions.
    ("search Provider p select p order by p.serverPort", ["a", "c", "b", "d"]),
    ("search Provider p select p order by p.serverPort desc", ["b", "a", "c", "d"]),
    ("search Provider p select p order by p.serverPort desc limit 2", ["b", "a"]),
    ("search Provider p select p order by p.serverInformation.memory, p desc", ["b", "a", "d", "c"]),
    ("search Provider p select p order by p desc limit 1", ["d"]),
    ("search Provider p select p limit 3", ["a", "b", "c"]),
    # All values of a path with `?` are in one cell, which may be empty.
    ("search Provider p select p.tags?", [(("fast", "new"),), ((),), ((),), ((),)]),
    ("search Provider p where p = <a> select p.partners?.serverPort", [((80, 443),)]),
    # A reference is as written; its target may be missing or of another class.
    (
        "search Provider p select p.serverInformation, p.serverInformation.memory",
        [(Ref("i"), 92), (Ref("i"), 92), (Ref("a"), None), (Ref("gone"), None)],
    ),
    # One row for each binding of the selected variables, even if the first is the same.
    (
        "search Provider p, Provider q register p where p.partners? = q select p, q.serverPort",
        [(Ref("a"), 443), (Ref("a"), 80), (Ref("d"), 80)],
    ),
    (
        "search Provider p, Provider q register p where p.serverPort < q.serverPort select q, p order by p desc",
        [(Ref("b"), Ref("c")), (Ref("b"), Ref("a"))],
    ),
    ("search Provider p, Provider q register p where p.partners? = q select p", ["a", "d"]),
    ("search Provider p where p.serverPort = 443 or p = <d> or p.open = true select p", ["b", "d"]),
    # Two comparisons of one pair: the partner of a with its port is not its twin.
    (
        "search Provider p, Provider q register p where p.twin = q and p.serverPort = q.serverPort select p, q",
        [],
    ),
    (
        "search Provider p, Provider q register p where p.partners? = q and p.serverPort = q.serverPort select p, q",
        [(Ref("a"), Ref("c"))],
    ),
    (
        "search Provider p, Provider q register q where p.twin = q and p.serverPort < q.serverPort select q",
        ["b"],
    ),
    (
        "search Provider p, Provider q register p where p != q and p.serverPort <= q.serverPort select p, q",
        [(Ref("a"), Ref("b")), (Ref("a"), Ref("c")), (Ref("c"), Ref("a")), (Ref("c"), Ref("b"))],
    ),
    (
        "search Provider p, DataProvider q register p "
        "where p.serverHost contains q.domain and p.partners? = q select p, q",
        [(Ref("a"), Ref("c"))],
    ),
    ("search Provider p where p.serverInformation.memory > p.serverPort select p", ["a"]),
    ("search ServerInformation s where s.cpu > s.memory select s", ["i"]),
    ("search ServerInformation s where s.backup = s or s.memory = s.memory select s", ["i", "j"]),
    (
        "search Provider p, ServerInformation s register p "
        "where p.serverInformation = s and s.cpu > s.memory and p.serverPort > s.memory select s, p",
        [(Ref("i"), Ref("b"))],
    ),
]


@pytest.mark.parametrize(("text", "expected"), ROWS)
def test_answer_select_gives_expected_rows(store: Store, text: str, expected: list[object]) -> None:
    query = parse_query(text)
    check_query(query, SCHEMA, {}, text)
    store_exactly(store, SERVERS, SCHEMA)
    rows = tuple(row if isinstance(row, tuple) else (Ref(str(row)),) for row in expected)
    assert evaluate_query(query, SERVERS, SCHEMA).rows == rows
    assert answer(store, query, SCHEMA).rows == rows


def test_answer_distinguishes_nearly_equal_values(store: Store) -> None:
    """The index has the first 200 characters of texts; of numbers, a double has 53 bits."""
    texts, numbers = ["x" * 199, "x" * 200, "x" * 201, "x" * 200 + "y"], [5, 5.5, 2**53, 2**53 + 1]
    resources = [
        Resource(f"a{n}", "CycleProvider", {"serverHost": (text,), "serverPort": (number,)})
        for n, (text, number) in enumerate(zip(texts, numbers, strict=True))
    ]
    store_exactly(store, resources, SCHEMA)
    conditions = [f"c.serverHost = '{text}'" for text in texts]
    conditions += [f"c.serverPort = {number}" for number in ("5.0", "5.50", 2**53, 2**53 + 1)]
    conditions += [f"c.serverPort >= {2**53 + 1}", f"c.serverPort < 5.5 or c.serverPort = {2**53}"]
    answers = [
        answer(store, parse_query(f"search CycleProvider c where {each}"), SCHEMA) for each in conditions
    ]
    uris = [" ".join(each.uri for each in each_answer.resources) for each_answer in answers]
    assert uris == ["a0", "a1", "a2", "a3", "a0", "a1", "a2", "a3", "a3", "a0 a2"]


def test_answer_follows_path_of_maximal_length(store: Store) -> None:
    """A cycle of sixty-four steps."""
    circle = [
        Resource(f"i{n:02}", "ServerInformation", {"backup": (Ref(f"i{(n + 1) % 64:02}"),), "memory": (n,)})
        for n in range(64)
    ]
    store_exactly(store, circle, SCHEMA)
    steps = ".backup" * 62
    query = parse_query(f"search ServerInformation s where s{steps}.memory = 5 select s.memory")
    assert answer(store, query, SCHEMA).rows == ((7,),)
    query = parse_query(f"search ServerInformation s where s{steps}.memory >= 62 select s.memory")
    assert answer(store, query, SCHEMA).rows == ((0,), (1,))


def test_answer_class_with_thousands_of_subclasses(store: Store) -> None:
    below = {f"C{n}": Class(f"C{n}", f"http://example.org/C{n}", ("Thing",)) for n in range(3_000)}
    classes = {"Thing": Class("Thing", "http://example.org/Thing"), **below}
    leads = Property("next", "http://example.org/next", "Thing", leads_to="Thing", reference=Reference.WEAK)
    schema = Schema(classes, {"next": (leads,)})
    resources = [Resource(f"r{n}", f"C{n}", {"next": (Ref(f"r{n + 1}"),)}) for n in range(60)]
    store_exactly(store, resources, schema)
    query = parse_query(f"search Thing t where t{'.next' * 40} = <r45> select t")
    assert answer(store, query, schema).rows == ((Ref("r5"),),)


def test_answer_too_many_joins_is_rejected(store: Store) -> None:
    names = [f"s{n}" for n in range(16)]
    searched = ", ".join(f"ServerInformation {name}" for name in names)
    linked = " and ".join(f"{name}.backup.backup.backup.backup = {other}" for name, other in pairwise(names))
    query = parse_query(f"search {searched} register s0 where {linked} select {', '.join(names)}")
    with pytest.raises(TooLarge, match="too many joins"):
        answer(store, query, SCHEMA)


@FEWER
@given(st.data())
def test_resources_returns_all_stored_resources(store: Store, data: st.DataObject) -> None:
    schema = data.draw(some_schema())
    resources = data.draw(stored(schema))
    store_exactly(store, resources, schema)
    every = sort_properties(QueryAnswer(resources=tuple(sorted(resources, key=lambda each: each.uri))))
    assert tuple(QueryExecutor(store.database).resources()) == every.resources


def test_answer_too_many_results_is_rejected(store: Store) -> None:
    store_exactly(store, SERVERS, SCHEMA)
    limited = QueryExecutor(store.database, limits=Limits(results=3))
    every = parse_query("search Provider p")
    with pytest.raises(TooLarge, match="too many results"):
        limited.answer(every, SCHEMA, {})
    with pytest.raises(TooLarge, match="too many results"):
        limited.answer(parse_query("search Provider p order by p.serverPort"), SCHEMA, {})
    assert len(limited.answer(parse_query("search Provider p limit 3"), SCHEMA, {})) == 3


def test_answer_exceeding_time_limit_is_stopped(store: Store) -> None:
    """Neither database finds out quickly that these texts do not contain each other."""
    numbers = range(1_500)
    hosts = [Resource(f"h{n}", "CycleProvider", {"serverHost": ("a" * (2_000 + n),)}) for n in numbers]
    domains = [
        Resource(f"d{n}", "DataProvider", {"domain": ("a" * 500 + "b" + "a" * (500 + n),)}) for n in numbers
    ]
    store_exactly(store, [*hosts, *domains], SCHEMA)
    query = parse_query(
        "search CycleProvider c, DataProvider d register c where c.serverHost contains d.domain"
    )
    with pytest.raises(TooLarge, match="takes too long"):
        QueryExecutor(store.database, limits=Limits(seconds=1)).answer(query, SCHEMA, {})
    assert len(answer(store, parse_query("search DataProvider d limit 2"), SCHEMA)) == 2
