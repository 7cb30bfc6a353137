"""New rules whose triggering rules were asked before: whatever changes in between, they have what they mean."""

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
    """What asks all resources that are stored, range by range, and then lets something happen."""

    def evaluate(known: SchemaContext, rules: Sequence[NamedRule]) -> TriggerResults:
        metadata = store.metadata
        position, new = metadata.position(), metadata.new_triggering_rules(known.schema, rules)
        triggers = TriggerIndex(known.schema)
        triggers.add(dict(enumerate(new.values())))
        ranges = [metadata.resources_between(*each) for each in metadata.resource_ranges(size)]
        pairs = [pair for resources in ranges for pair in triggers.satisfied(resources)]
        meanwhile()
        return TriggerResults(position, list(new), pairs, triggers.satisfied)

    return evaluate


def take(provider: Provider, step: Step, schema: Schema) -> None:
    if isinstance(step, Registered):
        graph = document_graph(step.resources, schema).serialize(format="turtle").encode()
        provider.register(step.uri, graph, TURTLE)
    elif step.uri in dict(provider.documents()):
        provider.remove(step.uri)


@share(5)
@given(st.data())
def test_rules_have_what_they_mean_whatever_changes_meanwhile(data: st.DataObject) -> None:
    schema = data.draw(schemas())
    asked, history = data.draw(programs(schema)), data.draw(histories(schema))
    begin = data.draw(st.integers(0, len(history)))
    with tempfile.TemporaryDirectory() as folder, open_store(sqlite_url(Path(folder) / "s.db")) as store:
        provider = Provider(store)
        provider.load_schema(schema_graph(schema).serialize(format="turtle").encode(), TURTLE)
        for step in history[:begin]:
            take(provider, step, schema)
        rest = [lambda: [take(provider, step, schema) for step in history[begin:]]]
        evaluate = evaluator(store, lambda: rest.pop()() if rest else None)
        texts = {name: format_rule(rule) for name, rule in asked.items()}
        there = state(history).values()
        expected = {
            (name, uri) for name, rule in asked.items() for uri in evaluate_rule(rule, there, schema, asked)
        }
        assert provider.add_rules(texts, "ana", evaluate=evaluate) == expected
        assert {(name, each.uri) for name in asked for each in provider.results(name)} == expected


@pytest.fixture
def provider(store: Store) -> Provider:
    made = Provider(store)
    made.load_schema(SCHEMA.body, SCHEMA.media_type)
    made.register(DOC, body("host.rdf"), RDF_XML)
    return made


def test_all_resources_are_in_the_ranges_once(store: Store, provider: Provider) -> None:
    provider.register(OTHER, body("host.rdf"), RDF_XML)
    uris = sorted(f"{document}#{name}" for document in (DOC, OTHER) for name in ("host", "info"))
    for size in (1, 2, 3, 4, 5):
        found = [store.metadata.resources_between(*each) for each in store.metadata.resource_ranges(size)]
        assert [one.uri for some in found for one in some] == uris
        assert all(len(some) <= size for some in found)
    assert store.metadata.count_resources() == 4


def test_what_a_trimmed_log_does_not_say_is_asked_anew(store: Store, provider: Provider) -> None:
    turns = []

    def meanwhile() -> None:
        turns.append(provider.position)
        if len(turns) == 1:
            provider.register(OTHER, body("host.rdf"), RDF_XML)
            provider.log.trim(provider.position)

    entered = provider.add_rules({"large": LARGE}, "ana", evaluate=evaluator(store, meanwhile))
    assert len(turns) == 2 and entered == {("large", HOST), ("large", f"{OTHER}#host")}


def test_a_rule_that_went_meanwhile_is_asked_anew(store: Store, provider: Provider) -> None:
    """Its triggering rules were known when new ones were looked for, and are not when they are added."""
    provider.add_rules({"all": ALL}, "bo")
    turns = []

    def meanwhile() -> None:
        turns.append(provider.remove_rules(["all"]))

    entered = provider.add_rules({"mine": ALL}, "ana", evaluate=evaluator(store, meanwhile))
    assert turns == [("all",), ()] and entered == {("mine", HOST)}
