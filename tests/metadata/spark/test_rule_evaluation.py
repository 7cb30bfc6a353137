"""New rules evaluated by Spark have the results of the store, despite changes meanwhile."""

from __future__ import annotations

import pytest

from tests.metadata.spark.test_metadata_stream import RULES, SCHEMA, TURTLE, body, uri
from tidings.metadata.provider.provider import DocumentSource, Provider
from tidings.metadata.spark.rule_evaluation import SparkRuleEvaluator
from tidings.store.database import sqlite_url
from tidings.store.store import open_store

pytestmark = pytest.mark.spark
MORE = {
    "one": f"search CycleProvider c register c where c = <{uri(7)}#host>",
    "others": f"search CycleProvider c register c where c != <{uri(7)}#host> and c.serverPort <= 1",
    "either": "search ServerInformation s register s where s.memory < 32 or s.memory = 128 or s.memory != 64",
    "of seven": f"search CycleProvider c register c where c.serverInformation = <{uri(6)}#info>",
}
BOTH = {name.replace(" ", "-"): text for name, text in (RULES | MORE).items()}


@pytest.fixture
def stores(tmp_path):
    """Two stores with the same documents: the rules of one are evaluated on Spark."""
    with (
        open_store(sqlite_url(tmp_path / "s.db")) as store,
        open_store(sqlite_url(tmp_path / "o.db")) as other,
    ):
        for each in (store, other):
            provider = Provider(each)
            provider.load_schema(SCHEMA, TURTLE)
            provider.add_rules({"known": RULES["large"]}, "ana")
            provider.register_many(DocumentSource(uri(n), body(n, 32 * (n % 5)), TURTLE) for n in range(60))
        yield store, other


def results(store):
    provider = Provider(store)
    notifications = [
        (one.subscription, one.publication, one.kind) for one in store.notifications.read("bo", limit=10_000)
    ]
    return {name: provider.results(name) for name in BOTH}, sorted(notifications)


def test_evaluate_on_spark_equals_store(session, tmp_path, stores):
    store, other = stores
    with SparkRuleEvaluator(session, store, tmp_path, size=25) as evaluate:
        entered = Provider(store).add_rules(BOTH, "bo", evaluate=evaluate)
        assert [report.resources for report in evaluate.reports] == [25, 25, 25, 25, 20]
        assert list((tmp_path / "evaluations").glob("*/*/found-*"))
    assert not list((tmp_path / "evaluations").iterdir())
    assert entered == Provider(other).add_rules(BOTH, "bo") and entered
    assert results(store) == results(other)


def test_evaluate_on_spark_repeats_for_changes_meanwhile(session, tmp_path, stores):
    store, other = stores
    provider, evaluations = Provider(store), []

    def change(each):
        each.remove(uri(3))
        each.register(uri(7), body(7, 128), TURTLE)
        each.register(uri(100), body(100, 0), TURTLE)

    with SparkRuleEvaluator(session, store, tmp_path) as on_spark:

        def evaluate(known, rules):
            """Evaluate and then change the store.

            The first time the log is trimmed, so the changes are unknown; then documents change, arrive and go.
            """
            results_of_tasks = on_spark(known, rules)
            evaluations.append(results_of_tasks)
            if len(evaluations) == 1:
                provider.register(uri(50), body(50, 96), TURTLE)
                store.metadata.log.trim(provider.position)
            else:
                change(provider)
            return results_of_tasks

        entered = provider.add_rules(BOTH, "bo", evaluate=evaluate)
    assert len(evaluations) == 2
    Provider(other).register(uri(50), body(50, 96), TURTLE)
    change(Provider(other))
    assert entered == Provider(other).add_rules(BOTH, "bo")
    assert results(store) == results(other)
    # From here on they are maintained like all other rules.
    for each in (provider, Provider(other)):
        each.register(uri(8), body(8, 128), TURTLE)
    assert results(store) == results(other)
