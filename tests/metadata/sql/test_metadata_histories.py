"""Any history: providers that apply one log are equal at equal positions, and what is told is what became different."""

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
    made = [
        LogDraft(
            Operation.SCHEMA, "", "text/turtle", schema_graph(schema).serialize(format="turtle").encode()
        )
    ]
    for step in history:
        if isinstance(step, Registered):
            body = document_graph(step.resources, schema).serialize(format="turtle").encode()
            made.append(LogDraft(Operation.REGISTER, step.uri, "text/turtle", body))
        else:
            made.append(LogDraft(Operation.REMOVE, step.uri))
    return made


def members(history: Sequence[Step], asked: dict[str, Rule], schema: Schema) -> Pairs:
    there = state(history).values()
    return {(name, uri) for name, rule in asked.items() for uri in evaluate_rule(rule, there, schema, asked)}


def told(store: Store, after: int, there: Mapping[str, Resource]) -> dict[str, list[tuple[str, str]]]:
    found: dict[str, list[tuple[str, str]]] = {"entered": [], "changed": [], "left": []}
    for each in store.notifications.read("ana", after):
        assert each.because, "every move has a reason"
        assert [reason for reason in each.because if not is_true(reason, there)] == []
        found[each.kind].append((each.subscription, each.publication))
    return found


def is_true(reason: Reason, there: Mapping[str, Resource]) -> bool:
    """Whether the value that is told stands where it is said to stand."""
    name = reason.predicate.split(" ")[0].split(">.")[-1].split(".")[-1]
    resource = there.get(reason.at)
    if reason.value is None:
        gone = "removed" in reason.predicate or "leads nowhere" in reason.predicate
        return (resource is None) == gone
    assert resource is not None
    if reason.value == reason.at:  # a resource that is compared itself
        return True
    if name == "class":
        return reason.value == resource.cls
    values = [value.uri if isinstance(value, Ref) else value for value in resource.values.get(name, ())]
    return (reason.value in values) != ("is no more" in reason.predicate)


def all_of(provider: Provider, store: Store, asked: dict[str, Rule]) -> object:
    documents = {uri: store.metadata.resources(uri) for uri, _ in provider.documents()}
    return provider.position, documents, {name: provider.results(name) for name in asked}


def batches(entries: Sequence[LogEntry], sizes: Sequence[int]) -> list[list[LogEntry]]:
    """The entries in batches of these sizes, the last of which is repeated."""
    rest, made = iter(entries), []
    waiting = list(sizes)
    while batch := list(islice(rest, waiting.pop(0) if len(waiting) > 1 else waiting[0])):
        made.append(batch)
    return made


@FEW
@given(data=st.data())
def test_what_is_told_is_what_became_different(new_url: Callable[[], str], data: st.DataObject) -> None:
    schema = data.draw(schemas())
    asked, history = data.draw(programs(schema)), data.draw(histories(schema))
    sizes = data.draw(st.lists(st.integers(1, 3), min_size=1, max_size=4))
    with open_store(new_url()) as store:
        provider = Provider(store)
        first, *entries = [draft.at(i) for i, draft in enumerate(drafts(history, schema), 1)]
        provider.apply([first])
        provider.add_rules({name: format_rule(rule) for name, rule in asked.items()}, "ana")
        for batch in batches(entries, sizes):
            done, sequence = provider.position - 1, store.notifications.last_sequence("ana")
            outcome = provider.apply(batch).outcome
            before, now = (members(history[:end], asked, schema) for end in (done, done + len(batch)))
            found = told(store, sequence, state(history[: done + len(batch)]))
            assert sorted(found["entered"]) == sorted(now - before)
            assert sorted(found["left"]) == sorted(before - now)
            assert sorted(found["changed"]) == sorted(outcome.changed) and outcome.changed <= now & before


@FEW
@given(data=st.data())
def test_providers_are_equal_at_equal_positions(new_url: Callable[[], str], data: st.DataObject) -> None:
    schema = data.draw(schemas())
    asked, history = data.draw(programs(schema)), data.draw(histories(schema))
    entries = [draft.at(i) for i, draft in enumerate(drafts(history, schema), 1)]
    size, half = data.draw(st.integers(1, 4)), data.draw(st.integers(1, len(entries)))
    with ExitStack() as open_:
        stores = [open_.enter_context(open_store(new_url())) for _ in range(4)]
        one, two, same, late = (Provider(store) for store in stores)
        for provider, chosen in ((two, [1, size]), (same, [1, size]), (one, [1, half, size])):
            for number, batch in enumerate(batches(entries, chosen)):
                provider.apply(batch)
                provider.apply(batch)
                if not number:
                    provider.add_rules({name: format_rule(rule) for name, rule in asked.items()}, "ana")
                if provider is one and number == 1:
                    late.restore(one.snapshot())
        late.apply(entries)
        late.set_rules({name: format_rule(rule) for name, rule in asked.items()}, "ana")
        pairs = zip((one, two, same, late), stores, strict=True)
        assert len({repr(all_of(provider, store, asked)) for provider, store in pairs}) == 1
        unlike = [
            [(each.id, each.sequence, each.kind, each.because) for each in store.notifications.read("ana")]
            for store in (stores[1], stores[2])
        ]
        assert unlike[0] == unlike[1]


@FEW
@given(data=st.data())
def test_rules_that_are_replaced_tell_the_difference(new_url: Callable[[], str], data: st.DataObject) -> None:
    schema = data.draw(schemas())
    history = data.draw(histories(schema, most=4))
    with open_store(new_url()) as store:
        provider = Provider(store)
        provider.apply([draft.at(i) for i, draft in enumerate(drafts(history, schema), 1)])
        before = set[tuple[str, str]]()
        for asked in data.draw(st.lists(programs(schema), min_size=2, max_size=3)):
            sequence = store.notifications.last_sequence("ana")
            provider.set_rules({name: format_rule(rule) for name, rule in asked.items()}, "ana", "a/")
            now = {(f"a/{name}", uri) for name, uri in members(history, asked, schema)}
            found = told(store, sequence, state(history))
            assert sorted(found["entered"]) == sorted(now - before)
            gone = {(name, uri) for name, uri in before if name.removeprefix("a/") not in asked}
            assert sorted(found["left"]) == sorted(before - now - gone)
            held = {(f"a/{name}", each.uri) for name in asked for each in provider.results(f"a/{name}")}
            assert held == now and {rule.name for rule in provider.rules()} == {f"a/{name}" for name in asked}
            before = now


@FEW
@given(data=st.data())
def test_a_rule_that_is_resumed_tells_the_difference(new_url: Callable[[], str], data: st.DataObject) -> None:
    """Between what it had found, with all that refers to strongly, and what it finds; nothing, if all is as it was."""
    schema = data.draw(schemas())
    asked, history = data.draw(programs(schema)), data.draw(histories(schema))
    half, name = data.draw(st.integers(0, len(history))), list(asked)[-1]
    with open_store(new_url()) as store:
        provider, rules = Provider(store), RuleSubscriptions(store)
        entries = [draft.at(i) for i, draft in enumerate(drafts(history, schema), 1)]
        provider.apply(entries[: half + 1])
        provider.add_rules({each: format_rule(rule) for each, rule in asked.items()}, "ana")
        assert rules.pause(name)
        provider.apply(entries[half + 1 :])
        sequence = store.notifications.last_sequence("ana")
        assert rules.resume(StoredRule(name, "ana", format_rule(asked[name])))
        states = state(history[:half]), state(history)
        before, now = (
            {uri for rule, uri in members(history[:end], asked, schema) if rule == name}
            for end in (half, len(history))
        )
        different = {
            uri for uri in before & now if said(uri, states[0], schema) != said(uri, states[1], schema)
        }
        found = told(store, sequence, states[1])
        assert sorted(found["entered"]) == sorted((name, uri) for uri in now - before)
        assert sorted(found["left"]) == sorted((name, uri) for uri in before - now)
        assert sorted(found["changed"]) == sorted((name, uri) for uri in different)
        assert {each.uri for each in provider.results(name)} == now
        sequence = store.notifications.last_sequence("ana")
        assert rules.pause(name) and rules.resume(StoredRule(name, "ana", format_rule(asked[name])))
        assert store.notifications.last_sequence("ana") == sequence


def said(uri: str, there: Mapping[str, Resource], schema: Schema) -> dict[str, Resource]:
    """What a result says: itself and all that it refers to strongly."""
    return {each: there[each] for each in closure(uri, there, schema)}
