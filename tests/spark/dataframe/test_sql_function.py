"""The SQL function `tidings_match`."""

from __future__ import annotations

import pytest
from pyspark.errors import PySparkException

from tidings import Subscription
from tidings.spark import Subscriptions, register

SUBSCRIPTIONS = [
    Subscription("cheap", "ana", "predicates", "price < 10"),
    Subscription("oslo", "bo", "predicates", "buyer.city = 'Oslo'"),
]


def select(session, source: str) -> set[tuple[str, str]]:
    rows = session.sql(f"SELECT * FROM {source}").collect()
    return {(row.publication, row.subscription) for row in rows}


def test_tidings_match_typed_columns_of_table(session):
    rows = [("a", 5.0, ("Oslo",)), ("b", 50.0, ("Bern",)), ("c", None, ("Oslo",))]
    session.createDataFrame(
        rows, "id string, price double, buyer struct<city: string>"
    ).createOrReplaceTempView("t")
    register(session, alerts=SUBSCRIPTIONS)
    assert select(session, "tidings_match(TABLE(t), 'alerts')") == {
        ("a", "cheap"),
        ("a", "oslo"),
        ("c", "oslo"),
    }


def test_tidings_match_gives_explanations_and_problems(session):
    session.createDataFrame(
        [("a", '{"price": 3}'), ("b", "{")], "id string, value string"
    ).createOrReplaceTempView("v")
    register(session, alerts=SUBSCRIPTIONS)
    rows = session.sql("SELECT * FROM tidings_match(TABLE(v), 'alerts')").collect()
    [good] = [row for row in rows if row.problem is None]
    [bad] = [row for row in rows if row.problem is not None]
    assert (good.publication, good.explanation[0].predicate) == ("a", "price < 10")
    assert (bad.publication, bad.subscription) == ("b", None)


def test_tidings_match_reads_published_subscriptions(session, tmp_path):
    Subscriptions.compile(SUBSCRIPTIONS).publish(tmp_path)
    session.createDataFrame([("a", 5.0)], "id string, price double").createOrReplaceTempView("p")
    register(session)
    assert select(session, f"tidings_match(TABLE(p), '{tmp_path}')") == {("a", "cheap")}


def test_tidings_match_unknown_name_error_lists_known_names(session):
    session.createDataFrame([("a", 5.0)], "id string, price double").createOrReplaceTempView("p")
    register(session, alerts=SUBSCRIPTIONS)
    with pytest.raises(PySparkException, match=r"unknown set of subscriptions.*'alert'"):
        select(session, "tidings_match(TABLE(p), 'alert')")
