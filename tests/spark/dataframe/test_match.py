"""`match` on DataFrames: results, their shapes, and invalid input."""

from __future__ import annotations

import json
import pickle
import re
from datetime import UTC, datetime
from decimal import Decimal

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tests.spark import workload
from tests.support.paths import ROOT
from tidings import Index, InputError, Subscription, compile_many
from tidings.reference_data.declarations import declare
from tidings.spark import Subscriptions, match
from tidings.store.database import sqlite_url
from tidings.store.store import open_store

ORDERS = (
    "order_id string, price double, symbol string, tags array<string>, buyer struct<city: string, age: int>"
)


def read_pairs(matches: DataFrame) -> set[tuple[str, str]]:
    return {
        (row.publication, row.subscription) for row in matches.select("publication", "subscription").collect()
    }


@pytest.fixture
def orders(session: SparkSession) -> DataFrame:
    rows = [
        ("o1", 5.0, "IBM", ["rush", "gift"], ("Oslo", 30)),
        ("o2", 50.0, "SAP", [], ("Bern", 60)),
        ("o3", None, "IBM", None, None),
    ]
    return session.createDataFrame(rows, ORDERS)


@pytest.fixture
def subscriptions(session: SparkSession) -> DataFrame:
    rows = [
        ("cheap", "price < 10", "ana"),
        ("gifts", "tags = 'gift'", "bo"),
        ("oslo", "buyer.city = 'Oslo' and buyer.age > 20", "cy"),
        ("no-price", "not exists price", "dan"),
    ]
    return session.createDataFrame(rows, "id string, text string, subscriber string")


def test_match_typed_columns_gives_row_per_match(orders, subscriptions):
    matches = match(orders, subscriptions, id="order_id")
    assert matches.columns == ["publication", "subscription", "subscriber"]
    assert read_pairs(matches) == {("o1", "cheap"), ("o1", "gifts"), ("o1", "oslo"), ("o3", "no-price")}
    assert {row.subscriber for row in matches.where("subscription = 'oslo'").collect()} == {"cy"}


def test_match_generated_events_agree_with_specification(session):
    queries, bodies = workload.subscriptions(60), workload.events(200)
    named = {f"e{number}": body for number, body in enumerate(bodies)}
    rows = [(name, body.decode()) for name, body in named.items()]
    frame = session.createDataFrame(rows, "key string, value string").repartition(3)
    table = session.createDataFrame(
        [(each.id, each.subscriber, each.language, each.text) for each in queries],
        "id string, subscriber string, language string, text string",
    )
    expected = workload.expected(named, queries)
    assert expected
    assert read_pairs(match(frame, table, id="key")) == expected
    assert read_pairs(match(frame, compile_index(queries), id="key", groups=3)) == expected


def compile_index(queries: list[Subscription]) -> Index:
    """Return an index of three segments, one of them with a removed subscription."""
    index = Index.create()
    for part in (queries[::3], queries[1::3], queries[2::3]):
        index.add(compile_many(part))
    index.add(
        compile_many([Subscription("removed", "ana", "predicates", "exists price or not exists price")])
    )
    index.remove("removed")
    return index


def test_match_explain_names_predicate_value_and_path(orders, subscriptions):
    matches = match(orders, subscriptions, id="order_id", explain=True)
    [row] = matches.where("subscription = 'oslo'").collect()
    assert [tuple(reason) for reason in row.explanation] == [
        ("buyer.city = 'Oslo'", "'Oslo'", "/buyer/city"),
        ("buyer.age > 20", "30", "/buyer/age"),
    ]


def test_match_keep_passes_columns_through(orders, subscriptions):
    matches = match(orders, subscriptions, id="order_id", keep=["symbol", "buyer"])
    [row] = matches.where("subscription = 'cheap'").collect()
    assert (row.symbol, row.buyer.city) == ("IBM", "Oslo")


def test_match_grouped_gives_row_per_publication(orders, subscriptions):
    matches = match(orders, subscriptions, id="order_id", shape="grouped", keep=["symbol"])
    rows = {row.publication: row for row in matches.collect()}
    assert rows.keys() == {"o1", "o3"}
    assert {each.subscription for each in rows["o1"].matches} == {"cheap", "gifts", "oslo"}
    assert rows["o3"].symbol == "IBM"


def test_match_every_column_type_has_values(session):
    moment = datetime(2024, 5, 1, 12, tzinfo=UTC)
    frame = session.createDataFrame(
        [("a", Decimal("1.50"), True, {"x": 1}, [{"n": 1}, {"n": 2}], moment)],
        "id string, d decimal(9,2), b boolean, m map<string, int>, s array<struct<n: int>>, t timestamp",
    ).withColumn("v", F.parse_json(F.lit('{"deep": [1, {"er": "x"}]}')))
    texts = ["d = 1.5", "b = true", "m.x = 1", "s.n = 2", "v.deep.er = 'x'", "t >= 2024-05-01T11:00:00Z"]
    queries = [Subscription(text, "ana", "predicates", text) for text in texts]
    result = match(frame, queries)
    assert {subscription for _, subscription in read_pairs(result)} == set(texts)


@pytest.mark.parametrize(("kind", "write"), [("string", str), ("binary", str.encode)])
def test_match_json_in_value_column_is_default(session, kind, write):
    frame = session.createDataFrame([(write('{"id": "a", "price": 3}'),)], f"value {kind}")
    assert read_pairs(match(frame, [Subscription("s", "ana", "predicates", "price < 5")])) == {("a", "s")}


def test_match_xml_column_with_xpath_subscriptions(session):
    frame = session.createDataFrame([("d1", "<stock><price>5</price></stock>")], "id string, doc string")
    queries = [Subscription("x", "ana", "xpath", "/stock[price < 10]")]
    assert read_pairs(match(frame, queries, value="doc", format="xml")) == {("d1", "x")}


def test_match_rdf_with_bindings_gives_values_of_variables(session):
    frame = session.createDataFrame([("g1", "<urn:a> <urn:p> <urn:b> .")], "id string, graph string")
    queries = [Subscription("g", "ana", "gql", "SELECT ?x WHERE (?x, <urn:p>, ?y)")]
    [row] = match(frame, queries, value="graph", format="rdf", bindings=True).collect()
    assert row.bindings == [{"x": "urn:a"}]


def test_match_body_with_several_publications_numbers_publications(session):
    trig = "<urn:g1> { <urn:a> <urn:p> <urn:b> } <urn:g2> { <urn:c> <urn:p> <urn:d> }"
    frame = session.createDataFrame([("days", trig)], "id string, body string")
    queries = [Subscription("g", "ana", "gql", "SELECT ?x WHERE (?x, <urn:p>, ?y)")]
    result = match(frame, queries, value="body", format="application/trig")
    assert read_pairs(result) == {("days:1", "g"), ("days:2", "g")}


def test_match_without_ids_names_publications_by_content(session):
    frame = session.createDataFrame([('{"price": 3}',), ('{"price": 3}',), ('{"price": 4}',)], "value string")
    rows = match(frame, [Subscription("s", "ana", "predicates", "price < 5")]).collect()
    assert len(rows) == 3
    assert len({row.publication for row in rows}) == 2


def test_match_numbers_joined_with_subscriptions_equal_matches(session, tmp_path):
    """Two segments and a removed subscription: numbers count all rows of the index."""
    index = Index.create(tmp_path / "index")
    index.add(compile_many(workload.subscriptions(30)))
    index.add(compile_many([Subscription("gone", "bo", "predicates", "exists price"), *CHEAP]))
    index.remove(["gone"])
    compiled = Subscriptions.from_index(index)
    rows = [(f"e{i}", body.decode()) for i, body in enumerate(workload.events(40))]
    frame = session.createDataFrame([*rows, ("bad", "{")], "id string, value string")
    numbered = match(frame, compiled, shape="numbers", on_error="column")
    assert numbered.where("problem is not null").count() == 1
    exploded = numbered.select("publication", F.explode("matches").alias("number"))
    joined = exploded.join(compiled.numbers(session), "number").selectExpr("publication", "id", "subscriber")
    expected = match(frame, compiled).collect()
    assert sorted(map(tuple, joined.collect())) == sorted(map(tuple, expected)) != []


def test_match_typed_columns_without_ids_names_rows_by_all_columns(session):
    """Only columns that subscriptions test reach the match stage, and these rows do not differ in them."""
    frame = session.createDataFrame([(3, "x"), (3, "y")], "price int, note string")
    rows = match(frame, CHEAP).collect()
    assert len({row.publication for row in rows}) == len(rows) == 2


def test_match_id_field_names_typed_rows_that_no_subscription_tests(session):
    frame = session.createDataFrame([("o1", 3)], "order_id string, price int")
    assert read_pairs(match(frame, CHEAP, id_field="order_id")) == {("o1", "s")}


def test_match_groups_report_each_problem_once(session):
    frame = session.createDataFrame(BAD, "id string, value string")
    index = compile_index([*CHEAP, *workload.subscriptions(10)])
    matches = match(frame, index, groups=3, on_error="column")
    assert matches.where("problem is not null").count() == 2
    assert match(frame, index, groups=3).rejects.count() == 2


def test_match_store_uses_active_subscriptions(session, tmp_path):
    url = sqlite_url(tmp_path / "store.db")
    with open_store(url) as store:
        store.subscriptions.add_many([Subscription("s", "ana", "predicates", "price < 5")])
        store.subscriptions.add_many([Subscription("gone", "ana", "predicates", "price < 6")])
        store.subscriptions.remove(["gone"])
    frame = session.createDataFrame([("a", 3)], "id string, price int")
    assert read_pairs(match(frame, url)) == {("a", "s")}


def test_match_store_with_reference_tables_is_rejected(session, tmp_path):
    url = sqlite_url(tmp_path / "store.db")
    (tmp_path / "sectors.csv").write_text("symbol,sector\nIBM,tech\n")
    with open_store(url) as store:
        store.references.add(declare("sectors", str(tmp_path / "sectors.csv"), "symbol", "symbol"))
    with pytest.raises(InputError, match=r"does not join reference tables.*sectors"):
        match(session.createDataFrame([("a", 3)], "id string, price int"), url)


def test_match_with_schema_rejects_inconsistent_events(session):
    schema = ROOT / "examples" / "furniture.yaml"
    text = "furniture_category is a 'dining room'"
    compiled = Subscriptions.compile([Subscription("s", "ana", "predicates", text)], schema=schema)
    event = {"event_type": ["antiques", "furniture"], "price": 180, "quantity": 2, "period": "XVI"}
    good = json.dumps(event | {"furniture_category": "table"})
    bad = json.dumps(event | {"period": "XVIII"})
    matches = match(
        session.createDataFrame([("good", good), ("bad", bad)], "id string, value string"), compiled
    )
    assert read_pairs(matches) == {("good", "s")}
    assert [row.publication for row in matches.rejects.collect()] == ["bad"]


def test_match_with_taxonomy_compares_classes(session):
    text = "PREFIX ex: <http://example.org/> SELECT ?page WHERE (?page, dc:subject, ?s) AND ?s <= ex:Academia"
    queries = [Subscription("g", "ana", "gql", text)]
    taxonomy = ROOT / "examples" / "academia.ttl"
    compiled = Subscriptions.compile(queries, taxonomies=[taxonomy])
    body = (ROOT / "examples" / "page.ttl").read_text()
    frame = session.createDataFrame([("p", body)], "id string, graph string")
    assert read_pairs(match(frame, compiled, value="graph", format="rdf")) == {("p", "g")}
    assert read_pairs(match(frame, queries, value="graph", format="rdf")) == set()


BAD = [("good", '{"price": 3}'), ("bad", "{price"), ("null", None)]


@pytest.fixture
def partly_bad(session: SparkSession) -> DataFrame:
    return session.createDataFrame(BAD, "id string, value string").coalesce(1)


CHEAP = [
    Subscription("s", "ana", "predicates", "price < 5"),
    Subscription("no", "bo", "predicates", "not exists price"),
]


def test_match_rejects_have_bad_publications_with_reasons(partly_bad):
    matches = match(partly_bad, CHEAP)
    assert read_pairs(matches) == {("good", "s")}
    rejects = {row.publication: row for row in matches.rejects.collect()}
    assert rejects.keys() == {"bad", "null"}
    assert rejects["bad"].reason.startswith("expected a key (column 2)")
    assert json.loads(rejects["bad"].facts)["error"] == "DecodeProblem"


def test_match_on_error_column_adds_row_with_problem(partly_bad):
    rows = match(partly_bad, CHEAP, on_error="column").collect()
    assert {(row.publication, row.subscription, row.problem is None) for row in rows} == {
        ("good", "s", True),
        ("bad", None, False),
        ("null", None, False),
    }


def test_match_on_error_drop_leaves_only_matches(partly_bad):
    assert read_pairs(match(partly_bad, CHEAP, on_error="drop")) == {("good", "s")}


def test_match_on_error_fail_error_names_publication(partly_bad):
    with pytest.raises(PySparkException, match="publication bad"):
        match(partly_bad, CHEAP, on_error="fail").collect()


def test_match_rejected_subscriptions_have_reasons(session, orders):
    rows = [("ok", "price < 1"), ("bad", "price <"), ("ok", "price < 2"), (None, "price < 3"), ("empty", "")]
    matches = match(orders, session.createDataFrame(rows, "id string, text string").coalesce(1))
    rejected = {row.id: row.reason for row in matches.rejected_subscriptions.collect()}
    assert rejected.keys() == {"bad", "ok", "row 3", "empty"}
    assert "expected a value" in rejected["bad"]
    assert rejected["ok"] == "another row has the same id"


def test_match_is_lazy(session, subscriptions):
    broken = session.range(1).select(
        F.raise_error(F.lit("the events were read")).cast("string").alias("value")
    )
    matches = match(broken, subscriptions)
    assert matches.columns == ["publication", "subscription", "subscriber"]
    with pytest.raises(PySparkException, match="the events were read"):
        matches.collect()


def test_match_subscriptions_of_every_source_agree(session, orders, tmp_path):
    queries = [Subscription("cheap", "ana", "predicates", "price < 10")]
    file = tmp_path / "subscriptions.jsonl"
    file.write_text(workload.as_lines(queries))
    index = Index.create(tmp_path / "index")
    index.add(compile_many(queries))
    published = Subscriptions.compile(queries).publish(tmp_path / "published")
    for source in (queries, str(file), file, index, tmp_path / "index", published, tmp_path / "published"):
        assert read_pairs(match(orders, source, id="order_id")) == {("o1", "cheap")}, source


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"id": "oder_id"}, "no such column (id); received oder_id; .*order_id"),
        ({"keep": "symbol"}, "keep is a list of column names"),
        ({"keep": ["smybol"]}, "no such column (keep)"),
        ({"shape": "row"}, "unknown value (shape)"),
        ({"on_error": "ignore"}, "unknown value (on_error)"),
        ({"format": "jsn", "value": "symbol"}, "unknown format"),
        ({"value": "price"}, "publications are text or bytes"),
        ({"format": "row", "value": "symbol"}, "a row format has no column"),
        ({"groups": 0}, "groups are counted from one"),
        ({"groups": 2, "shape": "grouped"}, "each group of segments gives its own rows"),
        ({"shape": "numbers", "explain": True}, "numbers have no explanations"),
    ],
)
def test_match_wrong_argument_error_names_accepted_values(orders, subscriptions, options, message):
    with pytest.raises(InputError) as problem:
        match(orders, subscriptions, **options)
    assert re.search(message.replace("(", r"\(").replace(")", r"\)"), str(problem.value)), str(problem.value)


def test_match_subscriptions_without_text_column_error_names_column(session, orders):
    with pytest.raises(InputError, match="no column text"):
        match(orders, session.createDataFrame([("a",)], "id string"))


def test_match_streaming_frame_to_memory_sink(session, tmp_path):
    source = tmp_path / "in"
    source.mkdir()
    (source / "part-0.json").write_text('{"id": "a", "price": 3}\n{"id": "b", "price": 30}\n')
    stream = session.readStream.text(str(source))
    matches = match(stream, CHEAP)
    assert matches.isStreaming
    query = (
        (
            matches.writeStream.format("memory")
            .queryName("matched")
            .option("checkpointLocation", str(tmp_path / "c"))
        )
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    assert read_pairs(session.table("matched")) == {("a", "s")}


def test_environment_pickled_is_small(session, tmp_path):
    """Each task receives the manifest, not the index."""
    subscriptions = Subscriptions.compile(workload.subscriptions(2_000))
    assert len(pickle.dumps(subscriptions.environment(session))) < 10_000
