"""The batch job over tables: any format that Spark can read and write."""

from __future__ import annotations

import json

import pytest
from pyspark.sql import SparkSession

from tests.spark import workload
from tidings.errors import InputError
from tidings.spark.batch.job import BatchProgress, IndexBuilt
from tidings.spark.batch.spark_table import Table, find_format
from tidings.spark.batch.table_job import TableRequest, check_table_request, run_table_job

pytestmark = pytest.mark.spark

ORDERS = [("o1", 3.0, "north"), ("o2", 30.0, "south"), ("o3", 4.0, None)]
ORDER_COLUMNS = "order_id string, price double, region string"


@pytest.fixture
def subscriptions(tmp_path):
    path = tmp_path / "subs.jsonl"
    path.write_text(json.dumps({"id": "cheap", "subscriber": "ana", "text": "price < 5"}) + "\n")
    return Table(str(path))


@pytest.fixture
def orders(session: SparkSession):
    return session.createDataFrame(ORDERS, ORDER_COLUMNS)


def run(session, subscriptions, publications, tmp_path, **more):
    out = tmp_path / "matches"
    request = TableRequest(subscriptions, publications, Table(str(out)), **more)
    check_table_request(request)
    summary = run_table_job(session, request)
    rows = session.read.parquet(str(out))
    return summary, rows


@pytest.mark.parametrize("format", ["parquet", "csv", "orc", "json"])
def test_table_job_reads_formats_of_spark(session, subscriptions, orders, tmp_path, format):
    writer = orders.write.format(format)
    writer.option("header", "true").save(str(tmp_path / "orders"))
    summary, rows = run(session, subscriptions, Table(str(tmp_path / "orders")), tmp_path, id="order_id")
    assert {(row.publication, row.subscription, row.subscriber) for row in rows.collect()} == {
        ("o1", "cheap", "ana"),
        ("o3", "cheap", "ana"),
    }
    assert (summary.events, summary.matches, summary.rejects) == (3, 2, 0)
    assert summary.built.subscriptions == 1


def test_table_job_reads_tables_of_catalog(session, orders, tmp_path):
    orders.createOrReplaceTempView("orders_to_match")
    session.createDataFrame([("cheap", "price < 5")], "id string, text string").createOrReplaceTempView(
        "subs"
    )
    subscriptions, publications = Table("table:subs"), Table("table:orders_to_match")
    more = {"id": "order_id", "explain": True, "keep": ("region",)}
    _, rows = run(session, subscriptions, publications, tmp_path, **more)
    assert {(row.publication, row.region) for row in rows.collect()} == {("o1", "north"), ("o3", None)}
    assert {row.explanation[0].predicate for row in rows.collect()} == {"price < 5"}


def test_table_job_generated_events_agree_with_specification(session, tmp_path):
    stored, bodies = workload.subscriptions(60), workload.events(150)
    (tmp_path / "subs.jsonl").write_text(workload.as_lines(stored))
    frame = session.createDataFrame(
        [(f"e{i}", body) for i, body in enumerate(bodies)], "id string, body binary"
    )
    frame.write.parquet(str(tmp_path / "events.parquet"))
    subscriptions, publications = Table(str(tmp_path / "subs.jsonl")), Table(str(tmp_path / "events.parquet"))
    summary, rows = run(session, subscriptions, publications, tmp_path, value="body")
    pairs = {(row.publication, row.subscription) for row in rows.collect()}
    assert pairs == workload.expected({f"e{i}": body for i, body in enumerate(bodies)}, stored)
    assert summary.matches == len(pairs) > 0


def test_table_job_lists_rejects_of_both_sides(session, tmp_path):
    texts = {"good": "price < 5", "bad": "price <"}
    lines = [{"id": id, "subscriber": "ana", "text": text} for id, text in texts.items()]
    (tmp_path / "subs.jsonl").write_text("\n".join(map(json.dumps, lines)))
    frame = session.createDataFrame([("a", '{"price": 3}'), ("b", "{price")], "id string, value string")
    frame.write.parquet(str(tmp_path / "events.parquet"))
    subscriptions, publications = Table(str(tmp_path / "subs.jsonl")), Table(str(tmp_path / "events.parquet"))
    rejects = tmp_path / "rejects.jsonl"
    summary, rows = run(session, subscriptions, publications, tmp_path, rejects=rejects)
    assert rows.columns == ["publication", "subscription", "subscriber"]
    assert [row.publication for row in rows.collect()] == ["a"]
    listed = [json.loads(line) for line in rejects.read_text().splitlines()]
    assert [(reject["what"], reject["id"]) for reject in listed] == [
        ("subscription", "bad"),
        ("publication", "b"),
    ]
    assert (summary.rejected_subscriptions, summary.rejected_publications) == (1, 1)
    assert [reject.id for reject in summary.examples] == ["bad", "b"]


def test_table_job_reports_index_and_progress(session, subscriptions, tmp_path):
    """The tasks are slow on purpose: progress is polled while they run."""
    session.range(0, 3, 1, 3).selectExpr("id as order_id", "id as price").write.parquet(
        str(tmp_path / "o.parquet")
    )
    progress = []
    request = TableRequest(
        subscriptions, Table(str(tmp_path / "o.parquet")), Table(str(tmp_path / "matches"))
    )
    run_table_job(session, request, progress.append)
    assert isinstance(progress[0], IndexBuilt)
    assert all(isinstance(event, BatchProgress) and event.done <= event.total for event in progress[1:])


def test_table_job_existing_result_is_replaced_only_by_force(session, subscriptions, orders, tmp_path):
    orders.write.parquet(str(tmp_path / "orders.parquet"))
    publications = Table(str(tmp_path / "orders.parquet"))
    run(session, subscriptions, publications, tmp_path)
    with pytest.raises(InputError, match="would overwrite existing files"):
        run(session, subscriptions, publications, tmp_path)
    _, rows = run(session, subscriptions, publications, tmp_path, force=True)
    assert rows.count() == 2


def test_table_job_unknown_table_is_rejected_by_name(session, subscriptions, tmp_path):
    with pytest.raises(InputError, match="cannot be read") as raised:
        run(session, subscriptions, Table("table:no_such_table"), tmp_path)
    assert raised.value.where == "table:no_such_table" and "TABLE_OR_VIEW_NOT_FOUND" in raised.value.received


def test_table_job_unknown_format_is_rejected_by_name(session, subscriptions, tmp_path):
    (tmp_path / "orders").mkdir()
    with pytest.raises(InputError, match=r"cannot be read.*paquet"):
        run(session, subscriptions, Table(str(tmp_path / "orders"), "paquet"), tmp_path)


@pytest.mark.parametrize(
    ("names", "format"),
    [
        (["part-00000-ab.json"], "json"),
        (["part-00000-ab.snappy.parquet", "_SUCCESS"], "parquet"),
        (["a.csv", "b.csv.gz"], "csv"),
        (["a.parquet", "b.csv"], None),
        (["quote.json"], None),
        (["a.jsonl"], None),
        ([], None),
    ],
)
def test_find_format_of_folder_depends_on_file_names(tmp_path, names, format):
    for name in names:
        (tmp_path / name).write_text("")
    assert find_format(str(tmp_path)) == format
