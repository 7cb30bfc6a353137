"""A provider: after any changes, each rule has the results of its definition."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.paths import ROOT
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
from tidings.errors import InputError, NotFound, SetupError, SubscriptionError
from tidings.metadata.provider.provider import Provider
from tidings.metadata.rules.semantics import evaluate_rule
from tidings.metadata.rules.syntax import Rule, format_rule
from tidings.metadata.schema.findings import MetadataError
from tidings.metadata.schema.model import Schema
from tidings.metadata.sql.rule_filter import FilterOutcome
from tidings.store.database import sqlite_url
from tidings.store.store import open_store

TURTLE = "text/turtle"
EXAMPLES = ROOT / "examples" / "metadata"
DOC = "http://example.org/doc.rdf"
HOST, INFO = f"{DOC}#host", f"{DOC}#info"
NOTHING = FilterOutcome(frozenset(), frozenset(), frozenset())
LARGE = "search CycleProvider c register c where c.serverInformation.memory > 64"


def apply_step(provider: Provider, step: Step, schema: Schema) -> FilterOutcome:
    if not isinstance(step, Registered):
        if step.uri in dict(provider.documents()):
            return provider.remove(step.uri).outcome
        with pytest.raises(NotFound):
            provider.remove(step.uri)
        return NOTHING
    body = document_graph(step.resources, schema).serialize(format="turtle").encode()
    return provider.register(step.uri, body, TURTLE).outcome


def expected(history: list[Step], rules: dict[str, Rule], schema: Schema) -> set[tuple[str, str]]:
    resources = state(history).values()
    return {
        (name, uri) for name, rule in rules.items() for uri in evaluate_rule(rule, resources, schema, rules)
    }


@share(5)
@given(st.data())
def test_results_equal_definition_after_any_history(data: st.DataObject) -> None:
    schema = data.draw(schemas())
    rules, history = data.draw(programs(schema)), data.draw(histories(schema))
    split = data.draw(st.integers(0, len(history)))
    with tempfile.TemporaryDirectory() as folder, open_store(sqlite_url(Path(folder) / "s.db")) as store:
        provider = Provider(store)
        provider.load_schema(schema_graph(schema).serialize(format="turtle").encode(), TURTLE)
        for step in history[:split]:
            apply_step(provider, step, schema)
        before = expected(history[:split], rules, schema)
        assert provider.add_rules({name: format_rule(rule) for name, rule in rules.items()}, "ana") == before
        for at, step in enumerate(history[split:], split + 1):
            outcome, now = apply_step(provider, step, schema), expected(history[:at], rules, schema)
            assert (outcome.entered, outcome.left) == (now - before, before - now)
            assert outcome.changed <= now & before
            before = now
        results = {(name, each.uri) for name in rules for each in provider.results(name)}
        assert results == before


@pytest.fixture
def provider(tmp_path):
    with open_store(sqlite_url(tmp_path / "s.db")) as store:
        opened = Provider(store)
        opened.load_schema((EXAMPLES / "schema.ttl").read_bytes(), TURTLE)
        yield opened


def register(provider: Provider, file: str) -> FilterOutcome:
    return provider.register(DOC, (EXAMPLES / file).read_bytes(), "application/rdf+xml").outcome


def test_register_changed_referenced_resource_updates_results(provider):
    assert provider.add_rules({"large": LARGE}, "ana") == frozenset()
    assert register(provider, "host.rdf").entered == {("large", HOST)}
    assert register(provider, "host.rdf") == NOTHING
    outcome = register(provider, "host-with-32MB.rdf")
    assert (outcome.entered, outcome.changed, outcome.left) == (set(), set(), {("large", HOST)})
    assert provider.documents() == ((DOC, 2),)
    assert provider.remove(DOC).outcome.left == frozenset() and provider.documents() == ()


def test_register_invalid_document_is_rejected_completely(provider):
    register(provider, "host.rdf")
    body = (EXAMPLES / "host.rdf").read_bytes().replace(b'memory="92"', b'memory="much"')
    with pytest.raises(MetadataError) as error:
        provider.register(DOC, body, "application/rdf+xml")
    assert INFO in str(error.value) and "memory" in str(error.value)
    assert (
        provider.register(DOC, (EXAMPLES / "host.rdf").read_bytes(), "application/rdf+xml")
        .changes[DOC]
        .unchanged
    )


def test_add_rules_may_search_other_rules(provider):
    register(provider, "host.rdf")
    texts = {"large": LARGE, "ours": "search large l register l where l.serverHost contains 'passau'"}
    assert provider.add_rules(texts, "ana") == {("large", HOST), ("ours", HOST)}
    with pytest.raises(InputError, match="searched by another"):
        provider.remove_rules(["large"])
    assert provider.remove_rules(["large", "ours"]) == ("large", "ours")
    with pytest.raises(InputError, match="no such rule"):
        provider.results("ours")


def test_register_follows_rules_of_other_processes(provider, tmp_path):
    register(provider, "host.rdf")
    with open_store(sqlite_url(tmp_path / "s.db")) as store:
        other = Provider(store)
        other.add_rules({"large": LARGE, "all": "search CycleProvider c register c"}, "bob")
        assert register(provider, "host-with-32MB.rdf").left == {("large", HOST)}
        other.remove_rules(["large"])
        assert register(provider, "host.rdf").entered == frozenset()
        assert [each.uri for each in provider.results("all")] == [HOST]


def test_add_rules_one_invalid_rule_adds_none(provider):
    with pytest.raises(SubscriptionError, match="memry"):
        provider.add_rules({"good": LARGE, "bad": LARGE.replace("memory", "memry")}, "ana")
    assert provider.rules() == ()


def test_load_schema_must_extend_previous_schema(provider):
    body = (EXAMPLES / "schema.ttl").read_text()
    provider.load_schema((body + ":Disk a rdfs:Class .").encode(), TURTLE)
    assert "Disk" in provider.schema.classes
    with pytest.raises(InputError, match="ServerInformation"):
        moved = body + ":Disk a rdfs:Class . :ServerInformation rdfs:subClassOf :Disk ."
        provider.load_schema(moved.encode(), TURTLE)
    with pytest.raises(InputError, match="removes or changes"):
        provider.load_schema(body.encode(), TURTLE)


def test_register_without_schema_is_rejected(tmp_path):
    with open_store(sqlite_url(tmp_path / "s.db")) as store, pytest.raises(SetupError, match="no schema"):
        Provider(store).register(DOC, b"", TURTLE)


def test_register_compiles_nothing_within_transaction(tmp_path):
    """Compiling may take a minute; in a transaction it would block all other writers."""
    program = ROOT / "tests/support/processes/register_document.py"
    process = subprocess.run(
        [sys.executable, program, tmp_path / "s.db"], capture_output=True, text=True, check=True
    )
    output = json.loads(process.stdout)
    (first_event, compiled_before), (last_event, compiled_after) = output["seen"][-2:]
    assert (output["entered"], first_event, last_event) == (4, "begin", "commit")
    assert compiled_before == compiled_after > 0
