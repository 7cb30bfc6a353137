"""Evaluation of new triggering rules ahead of the transaction, despite changes meanwhile."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.stores.server_documents import ALL, DOC, HOST, LARGE, OTHER, RDF_XML, SCHEMA, body
from tests.support.strategies.effort import share
from tests.support.strategies.metadata import (
    Registered,
    Step,
    document_graph,
    histories,
    schema_graph,
    schemas,
    state,
)
from tests.support.strategies.rules import programs
from tidings.metadata.filter.trigger_index import TriggerIndex
from tidings.metadata.provider.log_applier import SchemaContext
from tidings.metadata.provider.provider import Provider
from tidings.metadata.rules.semantics import evaluate_rule
from tidings.metadata.rules.syntax import format_rule
from tidings.metadata.schema.model import Schema
from tidings.metadata.sql.rule_base import NamedRule
from tidings.metadata.sql.trigger_evaluation import TriggerResults
from tidings.store.database import sqlite_url
from tidings.store.store import Store, open_store

TURTLE = "text/turtle"


def evaluator(store: Store, meanwhile: Callable[[], object], size: int = 2) -> Callable[..., TriggerResults]:
    """Return a function that evaluates all stored resources by ranges, then calls `meanwhile`."""

    def evaluate(known: SchemaContext, rules: Sequence[NamedRule]) -> TriggerResults:
        metadata = store.metadata
        position, new = metadata.position(), metadata.new_triggering_rules(known.schema, rules)
        triggers = TriggerIndex(known.schema)
        triggers.add(dict(enumerate(new.values())))
        ranges = [metadata.resources_between(*each) for each in metadata.resource_ranges(size)]
        pairs = [pair for resources in ranges for pair in triggers.find_satisfied(resources)]
        meanwhile()
        return TriggerResults(position, list(new), pairs, triggers.find_satisfied)

    return evaluate


def apply_step(provider: Provider, step: Step, schema: Schema) -> None:
    if isinstance(step, Registered):
        graph = document_graph(step.resources, schema).serialize(format="turtle").encode()
        provider.register(step.uri, graph, TURTLE)
    elif step.uri in dict(provider.documents()):
        provider.remove(step.uri)


@share(5)
@given(st.data())
def test_add_rules_with_changes_meanwhile_equals_definition(data: st.DataObject) -> None:
    schema = data.draw(schemas())
    rules, history = data.draw(programs(schema)), data.draw(histories(schema))
    split = data.draw(st.integers(0, len(history)))
    with tempfile.TemporaryDirectory() as folder, open_store(sqlite_url(Path(folder) / "s.db")) as store:
        provider = Provider(store)
        provider.load_schema(schema_graph(schema).serialize(format="turtle").encode(), TURTLE)
        for step in history[:split]:
            apply_step(provider, step, schema)
        rest = [lambda: [apply_step(provider, step, schema) for step in history[split:]]]
        evaluate = evaluator(store, lambda: rest.pop()() if rest else None)
        texts = {name: format_rule(rule) for name, rule in rules.items()}
        resources = state(history).values()
        expected = {
            (name, uri)
            for name, rule in rules.items()
            for uri in evaluate_rule(rule, resources, schema, rules)
        }
        assert provider.add_rules(texts, "ana", evaluate=evaluate) == expected
        assert {(name, each.uri) for name in rules for each in provider.results(name)} == expected


@pytest.fixture
def provider(store: Store) -> Provider:
    opened = Provider(store)
    opened.load_schema(SCHEMA.body, SCHEMA.media_type)
    opened.register(DOC, body("host.rdf"), RDF_XML)
    return opened


def test_resource_ranges_cover_each_resource_once(store: Store, provider: Provider) -> None:
    provider.register(OTHER, body("host.rdf"), RDF_XML)
    uris = sorted(f"{document}#{name}" for document in (DOC, OTHER) for name in ("host", "info"))
    for size in (1, 2, 3, 4, 5):
        ranges = [store.metadata.resources_between(*each) for each in store.metadata.resource_ranges(size)]
        assert [one.uri for resources in ranges for one in resources] == uris
        assert all(len(resources) <= size for resources in ranges)
    assert store.metadata.count_resources() == 4


def test_add_rules_log_trimmed_meanwhile_evaluates_again(store: Store, provider: Provider) -> None:
    turns = []

    def meanwhile() -> None:
        turns.append(provider.position)
        if len(turns) == 1:
            provider.register(OTHER, body("host.rdf"), RDF_XML)
            provider.log.trim(provider.position)

    entered = provider.add_rules({"large": LARGE}, "ana", evaluate=evaluator(store, meanwhile))
    assert len(turns) == 2 and entered == {("large", HOST), ("large", f"{OTHER}#host")}


def test_add_rules_rule_removed_meanwhile_evaluates_again(store: Store, provider: Provider) -> None:
    """Its triggering rules existed at the evaluation, and are gone when the new rules are added."""
    provider.add_rules({"all": ALL}, "bo")
    turns = []

    def meanwhile() -> None:
        turns.append(provider.remove_rules(["all"]))

    entered = provider.add_rules({"mine": ALL}, "ana", evaluate=evaluator(store, meanwhile))
    assert turns == [("all",), ()] and entered == {("mine", HOST)}
