"""Random histories: one log gives equal providers, and notifications are the differences."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from itertools import islice

from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from tests.support.oracles.naive_filter import closure
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
from tidings.metadata.log import LogDraft, LogEntry, Operation
from tidings.metadata.provider.provider import Provider
from tidings.metadata.provider.rule_subscriptions import RuleSubscriptions
from tidings.metadata.resources import Ref, Resource
from tidings.metadata.rules.semantics import evaluate_rule
from tidings.metadata.rules.syntax import Rule, format_rule
from tidings.metadata.schema.model import Schema
from tidings.metadata.sql.metadata_reader import StoredRule
from tidings.model import Reason
from tidings.store.store import Store, open_store

FEW = share(10, suppress_health_check=[HealthCheck.function_scoped_fixture])
Pairs = set[tuple[str, str]]


def drafts(history: Sequence[Step], schema: Schema) -> list[LogDraft]:
    result = [
        LogDraft(
            Operation.SCHEMA, "", "text/turtle", schema_graph(schema).serialize(format="turtle").encode()
        )
    ]
    for step in history:
        if isinstance(step, Registered):
            body = document_graph(step.resources, schema).serialize(format="turtle").encode()
            result.append(LogDraft(Operation.REGISTER, step.uri, "text/turtle", body))
        else:
            result.append(LogDraft(Operation.REMOVE, step.uri))
    return result


def members(history: Sequence[Step], rules: dict[str, Rule], schema: Schema) -> Pairs:
    resources = state(history).values()
    return {
        (name, uri) for name, rule in rules.items() for uri in evaluate_rule(rule, resources, schema, rules)
    }


def read_moves(
    store: Store, after: int, resources: Mapping[str, Resource]
) -> dict[str, list[tuple[str, str]]]:
    moves: dict[str, list[tuple[str, str]]] = {"entered": [], "changed": [], "left": []}
    for each in store.notifications.read("ana", after):
        assert each.because, "every move has a reason"
        assert [reason for reason in each.because if not is_true(reason, resources)] == []
        moves[each.kind].append((each.subscription, each.publication))
    return moves


def is_true(reason: Reason, resources: Mapping[str, Resource]) -> bool:
    """Check that the value of a reason is stored where the reason says."""
    name = reason.predicate.split(" ")[0].split(">.")[-1].split(".")[-1]
    resource = resources.get(reason.at)
    if reason.value is None:
        claims_missing = "removed" in reason.predicate or "has no target" in reason.predicate
        return (resource is None) == claims_missing
    assert resource is not None
    if reason.value == reason.at:  # a resource that is compared itself
        return True
    if name == "class":
        return reason.value == resource.cls
    values = [value.uri if isinstance(value, Ref) else value for value in resource.values.get(name, ())]
    return (reason.value in values) != ("is no longer set" in reason.predicate)


def provider_state(provider: Provider, store: Store, rules: dict[str, Rule]) -> object:
    documents = {uri: store.metadata.resources(uri) for uri, _ in provider.documents()}
    return provider.position, documents, {name: provider.results(name) for name in rules}


def batches(entries: Sequence[LogEntry], sizes: Sequence[int]) -> list[list[LogEntry]]:
    """Split the entries into batches of these sizes; the last size is repeated."""
    remaining, result = iter(entries), []
    sizes_left = list(sizes)
    while batch := list(islice(remaining, sizes_left.pop(0) if len(sizes_left) > 1 else sizes_left[0])):
        result.append(batch)
    return result


@FEW
@given(data=st.data())
def test_apply_random_history_notifies_differences(new_url: Callable[[], str], data: st.DataObject) -> None:
    schema = data.draw(schemas())
    rules, history = data.draw(programs(schema)), data.draw(histories(schema))
    sizes = data.draw(st.lists(st.integers(1, 3), min_size=1, max_size=4))
    with open_store(new_url()) as store:
        provider = Provider(store)
        first, *entries = [draft.at(i) for i, draft in enumerate(drafts(history, schema), 1)]
        provider.apply([first])
        provider.add_rules({name: format_rule(rule) for name, rule in rules.items()}, "ana")
        for batch in batches(entries, sizes):
            position, sequence = provider.position - 1, store.notifications.last_sequence("ana")
            outcome = provider.apply(batch).outcome
            before, now = (members(history[:end], rules, schema) for end in (position, position + len(batch)))
            moves = read_moves(store, sequence, state(history[: position + len(batch)]))
            assert sorted(moves["entered"]) == sorted(now - before)
            assert sorted(moves["left"]) == sorted(before - now)
            assert sorted(moves["changed"]) == sorted(outcome.changed) and outcome.changed <= now & before


@FEW
@given(data=st.data())
def test_apply_random_batches_gives_equal_providers(new_url: Callable[[], str], data: st.DataObject) -> None:
    schema = data.draw(schemas())
    rules, history = data.draw(programs(schema)), data.draw(histories(schema))
    entries = [draft.at(i) for i, draft in enumerate(drafts(history, schema), 1)]
    size, split = data.draw(st.integers(1, 4)), data.draw(st.integers(1, len(entries)))
    with ExitStack() as open_:
        stores = [open_.enter_context(open_store(new_url())) for _ in range(4)]
        first, second, third, restored = (Provider(store) for store in stores)
        for provider, chosen in ((second, [1, size]), (third, [1, size]), (first, [1, split, size])):
            for number, batch in enumerate(batches(entries, chosen)):
                provider.apply(batch)
                provider.apply(batch)
                if not number:
                    provider.add_rules({name: format_rule(rule) for name, rule in rules.items()}, "ana")
                if provider is first and number == 1:
                    restored.restore(first.snapshot())
        restored.apply(entries)
        restored.set_rules({name: format_rule(rule) for name, rule in rules.items()}, "ana")
        pairs = zip((first, second, third, restored), stores, strict=True)
        assert len({repr(provider_state(provider, store, rules)) for provider, store in pairs}) == 1
        histories_of_equal_batches = [
            [(each.id, each.sequence, each.kind, each.because) for each in store.notifications.read("ana")]
            for store in (stores[1], stores[2])
        ]
        assert histories_of_equal_batches[0] == histories_of_equal_batches[1]


@FEW
@given(data=st.data())
def test_set_rules_replacement_notifies_differences(new_url: Callable[[], str], data: st.DataObject) -> None:
    schema = data.draw(schemas())
    history = data.draw(histories(schema, most=4))
    with open_store(new_url()) as store:
        provider = Provider(store)
        provider.apply([draft.at(i) for i, draft in enumerate(drafts(history, schema), 1)])
        before = set[tuple[str, str]]()
        for rules in data.draw(st.lists(programs(schema), min_size=2, max_size=3)):
            sequence = store.notifications.last_sequence("ana")
            provider.set_rules({name: format_rule(rule) for name, rule in rules.items()}, "ana", "a/")
            now = {(f"a/{name}", uri) for name, uri in members(history, rules, schema)}
            moves = read_moves(store, sequence, state(history))
            assert sorted(moves["entered"]) == sorted(now - before)
            removed = {(name, uri) for name, uri in before if name.removeprefix("a/") not in rules}
            assert sorted(moves["left"]) == sorted(before - now - removed)
            results = {(f"a/{name}", each.uri) for name in rules for each in provider.results(f"a/{name}")}
            assert results == now and {rule.name for rule in provider.rules()} == {
                f"a/{name}" for name in rules
            }
            before = now


@FEW
@given(data=st.data())
def test_resume_rule_notifies_differences_since_pause(
    new_url: Callable[[], str], data: st.DataObject
) -> None:
    """A result includes all that it strongly refers to; without a difference nothing is sent."""
    schema = data.draw(schemas())
    rules, history = data.draw(programs(schema)), data.draw(histories(schema))
    split, name = data.draw(st.integers(0, len(history))), list(rules)[-1]
    with open_store(new_url()) as store:
        provider, subscriptions = Provider(store), RuleSubscriptions(store)
        entries = [draft.at(i) for i, draft in enumerate(drafts(history, schema), 1)]
        provider.apply(entries[: split + 1])
        provider.add_rules({each: format_rule(rule) for each, rule in rules.items()}, "ana")
        assert subscriptions.pause(name)
        provider.apply(entries[split + 1 :])
        sequence = store.notifications.last_sequence("ana")
        assert subscriptions.resume(StoredRule(name, "ana", format_rule(rules[name])))
        states = state(history[:split]), state(history)
        before, now = (
            {uri for rule, uri in members(history[:end], rules, schema) if rule == name}
            for end in (split, len(history))
        )
        different = {
            uri
            for uri in before & now
            if described(uri, states[0], schema) != described(uri, states[1], schema)
        }
        moves = read_moves(store, sequence, states[1])
        assert sorted(moves["entered"]) == sorted((name, uri) for uri in now - before)
        assert sorted(moves["left"]) == sorted((name, uri) for uri in before - now)
        assert sorted(moves["changed"]) == sorted((name, uri) for uri in different)
        assert {each.uri for each in provider.results(name)} == now
        sequence = store.notifications.last_sequence("ana")
        assert subscriptions.pause(name) and subscriptions.resume(
            StoredRule(name, "ana", format_rule(rules[name]))
        )
        assert store.notifications.last_sequence("ana") == sequence


def described(uri: str, resources: Mapping[str, Resource], schema: Schema) -> dict[str, Resource]:
    """Return a result with all that it strongly refers to."""
    return {each: resources[each] for each in closure(uri, resources, schema)}
