"""`match` on DataFrames: the result, its shapes, and what becomes of bad input."""

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
from tidings import Index, InputError, Subscription, compile_many
from tidings.spark import Subscriptions, match

ORDERS = (
    "order_id string, price double, symbol string, tags array<string>, buyer struct<city: string, age: int>"
)


def pairs(matches: DataFrame) -> set[tuple[str, str]]:
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


def test_match_typed_columns_gives_a_row_per_match(orders, subscriptions):
    matches = match(orders, subscriptions, id="order_id")
    assert matches.columns == ["publication", "subscription", "subscriber"]
    assert pairs(matches) == {("o1", "cheap"), ("o1", "gifts"), ("o1", "oslo"), ("o3", "no-price")}
    assert {row.subscriber for row in matches.where("subscription = 'oslo'").collect()} == {"cy"}


def test_match_generated_events_agrees_with_the_specification(session):
    wanted, bodies = workload.subscriptions(60), workload.events(200)
    named = {f"e{number}": body for number, body in enumerate(bodies)}
    rows = [(name, body.decode()) for name, body in named.items()]
    frame = session.createDataFrame(rows, "key string, value string").repartition(3)
    table = session.createDataFrame(
        [(each.id, each.subscriber, each.language, each.text) for each in wanted],
        "id string, subscriber string, language string, text string",
    )
    expected = workload.expected(named, wanted)
    assert expected
    assert pairs(match(frame, table, id="key")) == expected
    assert pairs(match(frame, compile_index(wanted), id="key", groups=3)) == expected


def compile_index(wanted: list[Subscription]) -> Index:
    """Return an index of three segments, one of them with a removed subscription."""
    index = Index.create()
    for part in (wanted[::3], wanted[1::3], wanted[2::3]):
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


def test_match_grouped_gives_a_row_per_publication(orders, subscriptions):
    matches = match(orders, subscriptions, id="order_id", shape="grouped", keep=["symbol"])
    rows = {row.publication: row for row in matches.collect()}
    assert rows.keys() == {"o1", "o3"}
    assert {each.subscription for each in rows["o1"].matches} == {"cheap", "gifts", "oslo"}
    assert rows["o3"].symbol == "IBM"


def test_match_every_column_type_becomes_a_value(session):
    moment = datetime(2024, 5, 1, 12, tzinfo=UTC)
    frame = session.createDataFrame(
        [("a", Decimal("1.50"), True, {"x": 1}, [{"n": 1}, {"n": 2}], moment)],
        "id string, d decimal(9,2), b boolean, m map<string, int>, s array<struct<n: int>>, t timestamp",
    ).withColumn("v", F.parse_json(F.lit('{"deep": [1, {"er": "x"}]}')))
    texts = ["d = 1.5", "b = true", "m.x = 1", "s.n = 2", "v.deep.er = 'x'", "t >= 2024-05-01T11:00:00Z"]
    wanted = [Subscription(text, "ana", "predicates", text) for text in texts]
    result = match(frame, wanted)
    assert {subscription for _, subscription in pairs(result)} == set(texts)


@pytest.mark.parametrize(("kind", "write"), [("string", str), ("binary", str.encode)])
def test_match_json_in_a_value_column_is_the_default(session, kind, write):
    frame = session.createDataFrame([(write('{"id": "a", "price": 3}'),)], f"value {kind}")
    assert pairs(match(frame, [Subscription("s", "ana", "predicates", "price < 5")])) == {("a", "s")}


def test_match_xml_column_with_xpath_subscriptions(session):
    frame = session.createDataFrame([("d1", "<stock><price>5</price></stock>")], "id string, doc string")
    wanted = [Subscription("x", "ana", "xpath", "/stock[price < 10]")]
    assert pairs(match(frame, wanted, value="doc", format="xml")) == {("d1", "x")}


def test_match_rdf_with_bindings_gives_the_values_of_variables(session):
    frame = session.createDataFrame([("g1", "<urn:a> <urn:p> <urn:b> .")], "id string, graph string")
    wanted = [Subscription("g", "ana", "gql", "SELECT ?x WHERE (?x, <urn:p>, ?y)")]
    [row] = match(frame, wanted, value="graph", format="rdf", bindings=True).collect()
    assert row.bindings == [{"x": "urn:a"}]


def test_match_body_with_several_publications_numbers_them(session):
    trig = "<urn:g1> { <urn:a> <urn:p> <urn:b> } <urn:g2> { <urn:c> <urn:p> <urn:d> }"
    frame = session.createDataFrame([("days", trig)], "id string, body string")
    wanted = [Subscription("g", "ana", "gql", "SELECT ?x WHERE (?x, <urn:p>, ?y)")]
    result = match(frame, wanted, value="body", format="application/trig")
    assert pairs(result) == {("days:1", "g"), ("days:2", "g")}


def test_match_without_ids_names_publications_by_content(session):
    frame = session.createDataFrame([('{"price": 3}',), ('{"price": 3}',), ('{"price": 4}',)], "value string")
    rows = match(frame, [Subscription("s", "ana", "predicates", "price < 5")]).collect()
    assert len(rows) == 3
    assert len({row.publication for row in rows}) == 2


BAD = [("good", '{"price": 3}'), ("bad", "{price"), ("null", None)]


@pytest.fixture
def partly_bad(session: SparkSession) -> DataFrame:
    return session.createDataFrame(BAD, "id string, value string").coalesce(1)


CHEAP = [
    Subscription("s", "ana", "predicates", "price < 5"),
    Subscription("no", "bo", "predicates", "not exists price"),
]


def test_rejects_frame_has_each_bad_publication_with_its_reason(partly_bad):
    matches = match(partly_bad, CHEAP)
    assert pairs(matches) == {("good", "s")}
    rejects = {row.publication: row for row in matches.rejects.collect()}
    assert rejects.keys() == {"bad", "null"}
    assert rejects["bad"].reason.startswith("expected a key (column 2)")
    assert json.loads(rejects["bad"].facts)["error"] == "DecodeProblem"


def test_on_error_column_adds_a_row_with_the_problem(partly_bad):
    rows = match(partly_bad, CHEAP, on_error="column").collect()
    assert {(row.publication, row.subscription, row.problem is None) for row in rows} == {
        ("good", "s", True),
        ("bad", None, False),
        ("null", None, False),
    }


def test_on_error_drop_leaves_only_matches(partly_bad):
    assert pairs(match(partly_bad, CHEAP, on_error="drop")) == {("good", "s")}


def test_on_error_fail_fails_the_job_and_names_the_publication(partly_bad):
    with pytest.raises(PySparkException, match="publication bad"):
        match(partly_bad, CHEAP, on_error="fail").collect()


def test_rejected_subscriptions_frame_has_reasons(session, orders):
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
    wanted = [Subscription("cheap", "ana", "predicates", "price < 10")]
    file = tmp_path / "subscriptions.jsonl"
    file.write_text(workload.as_lines(wanted))
    index = Index.create(tmp_path / "index")
    index.add(compile_many(wanted))
    published = Subscriptions.compile(wanted).publish(tmp_path / "published")
    for source in (wanted, str(file), file, index, tmp_path / "index", published, tmp_path / "published"):
        assert pairs(match(orders, source, id="order_id")) == {("o1", "cheap")}, source


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
    ],
)
def test_match_wrong_argument_is_refused_with_what_is_accepted(orders, subscriptions, options, message):
    with pytest.raises(InputError) as refused:
        match(orders, subscriptions, **options)
    assert re.search(message.replace("(", r"\(").replace(")", r"\)"), str(refused.value)), str(refused.value)


def test_match_subscriptions_without_text_column_names_what_is_missing(session, orders):
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
    assert pairs(session.table("matched")) == {("a", "s")}


def test_stage_is_small_in_the_plan_and_picklable(session, tmp_path):
    """What travels with each task is the manifest, not the index."""
    subscriptions = Subscriptions.compile(workload.subscriptions(2_000))
    assert len(pickle.dumps(subscriptions.environment(session))) < 10_000
