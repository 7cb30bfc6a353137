"""A provider: whatever is registered, updated and deleted, each rule has the results that its meaning says."""

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
from tidings.errors import Absent, InputError, SetupError, SubscriptionError
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


def take(provider: Provider, step: Step, schema: Schema) -> FilterOutcome:
    if not isinstance(step, Registered):
        if step.uri in dict(provider.documents()):
            return provider.remove(step.uri).outcome
        with pytest.raises(Absent):
            provider.remove(step.uri)
        return NOTHING
    body = document_graph(step.resources, schema).serialize(format="turtle").encode()
    return provider.register(step.uri, body, TURTLE).outcome


def expected(history: list[Step], asked: dict[str, Rule], schema: Schema) -> set[tuple[str, str]]:
    there = state(history).values()
    return {(name, uri) for name, rule in asked.items() for uri in evaluate_rule(rule, there, schema, asked)}


@share(5)
@given(st.data())
def test_results_are_what_rules_mean_after_any_history(data: st.DataObject) -> None:
    schema = data.draw(schemas())
    asked, history = data.draw(programs(schema)), data.draw(histories(schema))
    begin = data.draw(st.integers(0, len(history)))
    with tempfile.TemporaryDirectory() as folder, open_store(sqlite_url(Path(folder) / "s.db")) as store:
        provider = Provider(store)
        provider.load_schema(schema_graph(schema).serialize(format="turtle").encode(), TURTLE)
        for step in history[:begin]:
            take(provider, step, schema)
        before = expected(history[:begin], asked, schema)
        assert provider.add_rules({name: format_rule(rule) for name, rule in asked.items()}, "ana") == before
        for at, step in enumerate(history[begin:], begin + 1):
            outcome, now = take(provider, step, schema), expected(history[:at], asked, schema)
            assert (outcome.entered, outcome.left) == (now - before, before - now)
            assert outcome.changed <= now & before
            before = now
        held = {(name, each.uri) for name in asked for each in provider.results(name)}
        assert held == before


@pytest.fixture
def provider(tmp_path):
    with open_store(sqlite_url(tmp_path / "s.db")) as store:
        found = Provider(store)
        found.load_schema((EXAMPLES / "schema.ttl").read_bytes(), TURTLE)
        yield found


def register(provider: Provider, file: str) -> FilterOutcome:
    return provider.register(DOC, (EXAMPLES / file).read_bytes(), "application/rdf+xml").outcome


def test_a_change_in_what_is_referred_to_counts(provider):
    assert provider.add_rules({"large": LARGE}, "ana") == frozenset()
    assert register(provider, "host.rdf").entered == {("large", HOST)}
    assert register(provider, "host.rdf") == NOTHING
    outcome = register(provider, "host-with-32MB.rdf")
    assert (outcome.entered, outcome.changed, outcome.left) == (set(), set(), {("large", HOST)})
    assert provider.documents() == ((DOC, 2),)
    assert provider.remove(DOC).outcome.left == frozenset() and provider.documents() == ()


def test_what_breaks_the_schema_is_refused_whole(provider):
    register(provider, "host.rdf")
    body = (EXAMPLES / "host.rdf").read_bytes().replace(b'memory="92"', b'memory="much"')
    with pytest.raises(MetadataError) as refused:
        provider.register(DOC, body, "application/rdf+xml")
    assert INFO in str(refused.value) and "memory" in str(refused.value)
    assert (
        provider.register(DOC, (EXAMPLES / "host.rdf").read_bytes(), "application/rdf+xml")
        .changes[DOC]
        .unchanged
    )


def test_rules_may_search_rules(provider):
    register(provider, "host.rdf")
    texts = {"large": LARGE, "ours": "search large l register l where l.serverHost contains 'passau'"}
    assert provider.add_rules(texts, "ana") == {("large", HOST), ("ours", HOST)}
    with pytest.raises(InputError, match="searched by another"):
        provider.remove_rules(["large"])
    assert provider.remove_rules(["large", "ours"]) == ("large", "ours")
    with pytest.raises(InputError, match="no such rule"):
        provider.results("ours")


def test_another_process_may_add_and_remove_rules(provider, tmp_path):
    register(provider, "host.rdf")
    with open_store(sqlite_url(tmp_path / "s.db")) as store:
        other = Provider(store)
        other.add_rules({"large": LARGE, "all": "search CycleProvider c register c"}, "bob")
        assert register(provider, "host-with-32MB.rdf").left == {("large", HOST)}
        other.remove_rules(["large"])
        assert register(provider, "host.rdf").entered == frozenset()
        assert [each.uri for each in provider.results("all")] == [HOST]


def test_a_wrong_rule_is_no_rule(provider):
    with pytest.raises(SubscriptionError, match="memry"):
        provider.add_rules({"good": LARGE, "bad": LARGE.replace("memory", "memry")}, "ana")
    assert provider.rules() == ()


def test_a_schema_only_grows(provider):
    body = (EXAMPLES / "schema.ttl").read_text()
    provider.load_schema((body + ":Disk a rdfs:Class .").encode(), TURTLE)
    assert "Disk" in provider.schema.classes
    with pytest.raises(InputError, match="ServerInformation"):
        moved = body + ":Disk a rdfs:Class . :ServerInformation rdfs:subClassOf :Disk ."
        provider.load_schema(moved.encode(), TURTLE)
    with pytest.raises(InputError, match="removes or changes"):
        provider.load_schema(body.encode(), TURTLE)


def test_without_a_schema(tmp_path):
    with open_store(sqlite_url(tmp_path / "s.db")) as store, pytest.raises(SetupError, match="no schema"):
        Provider(store).register(DOC, b"", TURTLE)


def test_nothing_is_compiled_while_others_wait(tmp_path):
    """What is compiled on a new machine takes a minute, and in a transaction nobody else could write meanwhile."""
    program = ROOT / "tests/support/processes/register_document.py"
    done = subprocess.run(
        [sys.executable, program, tmp_path / "s.db"], capture_output=True, text=True, check=True
    )
    said = json.loads(done.stdout)
    (began, before), (ended, after) = said["seen"][-2:]
    assert (said["entered"], began, ended) == (4, "begin", "commit")
    assert before == after > 0
