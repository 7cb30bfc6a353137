"""The stored dependency graph, complete and by kind, compared with that of the definition."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from research.metadata.dependency_graph import DependencyGraph, JoinNode
from tests.support.stores.cycle_providers import FIGURE_1, SCHEMA, rule
from tests.support.strategies.effort import share
from tests.support.strategies.metadata import schemas
from tests.support.strategies.rules import programs
from tidings.metadata.rules.atomic import TriggeringRule, decompose
from tidings.metadata.rules.syntax import Rule
from tidings.metadata.rules.validation import order_by_dependency
from tidings.metadata.schema.model import Schema
from tidings.metadata.sql import rule_filter
from tidings.metadata.sql.rule_base import NamedRule
from tidings.metadata.sql.rule_graph import RuleGraphView, RuleKind, RuleKindCount
from tidings.store.store import Store, open_store

TEXTS = {
    "passau": "search CycleProvider c register c where c.serverHost contains 'uni-passau.de' "
    "and c.serverInformation.memory > 64 and c.serverInformation.cpu > 500",
    "large": "search CycleProvider c register c where c.serverInformation.memory > 64",
    "large-or-fast": "search CycleProvider c register c where c.serverInformation.memory > 64 "
    "or c.serverInformation.cpu > 500",
}
OWNERS = {"passau": "ana", "large": "bob", "large-or-fast": "bob"}


def add(store: Store, schema: Schema, rules: dict[str, Rule], owners: dict[str, str]) -> None:
    decomposed = {}
    for name in order_by_dependency(rules):
        decomposed[name] = decompose(rules[name], schema, decomposed)
    named = [NamedRule(name, owners.get(name, "ana"), "", ends) for name, ends in decomposed.items()]
    store.database.transact(lambda connection: rule_filter.add_rules(connection, schema, named))


def fill(store: Store) -> None:
    versions = {each.uri: each for each in FIGURE_1}
    store.database.transact(lambda connection: rule_filter.run_filter(connection, SCHEMA, versions, []))
    add(store, SCHEMA, {name: rule(text) for name, text in TEXTS.items()}, OWNERS)


def shapes(graph: RuleGraphView) -> tuple[set[str], dict[str, set[str]]]:
    """Describe atomic rules without their numbers, and the ends of each named rule."""
    rules_by_number = {each.number: each.rule for each in graph.atomic}

    def describe(number: int) -> str:
        atomic = rules_by_number[number]
        if isinstance(atomic, TriggeringRule):
            return repr(atomic)
        return f"({describe(atomic.left)} {atomic.condition} {describe(atomic.right)})"

    return set(map(describe, rules_by_number)), {
        each.name: set(map(describe, each.ends)) for each in graph.named
    }


def as_graph(network: DependencyGraph) -> tuple[set[str], dict[str, set[str]]]:
    def describe(number: int) -> str:
        atomic = network.nodes[number].asked
        if isinstance(atomic, JoinNode):
            return f"({describe(atomic.left)} {atomic.condition} {describe(atomic.right)})"
        return repr(atomic)

    return set(map(describe, network.nodes)), {
        name: set(map(describe, ends)) for name, ends in network.ends.items()
    }


def test_every_example_of_paper_has_counts(store: Store) -> None:
    fill(store)
    graph = store.rule_graph.load_all(["passau"])
    assert {each.results for each in graph.atomic} == {1}
    assert sorted((each.level, each.group is None) for each in graph.atomic) == [
        (0, True),
        (0, True),
        (0, True),
        (1, False),
        (2, False),
    ]
    assert [(each.name, each.owner, each.results) for each in graph.named] == [("passau", "ana", 1)]
    assert store.rule_graph.size(["passau"]) == 6


def test_every_shared_atomic_rule_appears_once(store: Store) -> None:
    fill(store)
    graph = store.rule_graph.load_all()
    assert store.rule_graph.size() == len(graph.atomic) + len(graph.named) == 8 + 3
    several = next(each for each in graph.named if each.name == "large-or-fast")
    assert (len(several.ends), several.results) == (2, 1)  # both ends have the same resource
    assert store.rule_graph.missing(["large", "none"]) == ["none"]


@pytest.mark.parametrize("names", [(), ("large",), ("passau", "large-or-fast")])
def test_kinds_counts_equal_graph(store: Store, names: tuple[str, ...]) -> None:
    fill(store)
    graph, kinds = store.rule_graph.load_all(names), store.rule_graph.kinds(names)
    expected: Counter[RuleKind] = Counter()
    results: Counter[RuleKind] = Counter()
    for each in graph.atomic:
        kind = RuleKind(each.level, group=each.group)
        if isinstance(each.rule, TriggeringRule):
            triggering = each.rule
            kind = RuleKind(
                0,
                triggering.cls,
                triggering.property,
                triggering.operator.value if triggering.operator else None,
            )
        expected[kind] += 1
        results[kind] += each.results
    for named in graph.named:
        expected[RuleKind(-1, owner=named.owner)] += 1
        results[RuleKind(-1, owner=named.owner)] += named.results
    assert kinds.counts == {kind: RuleKindCount(count, results[kind]) for kind, count in expected.items()}
    joins = sum(1 for each in graph.atomic if each.group is not None)
    assert sum(kinds.inputs.values()) == 2 * joins + sum(len(each.ends) for each in graph.named)
    assert {kind for pair in kinds.inputs for kind in pair} <= kinds.counts.keys()


def test_every_without_rules_is_empty(store: Store) -> None:
    assert (store.rule_graph.size(), store.rule_graph.load_all()) == (0, RuleGraphView((), ()))
    assert store.rule_graph.kinds().counts == {}


@share(6, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_every_random_rules_equal_network(new_url, data: st.DataObject) -> None:
    """A rule needs what it was decomposed into, alone and among others."""
    schema = data.draw(schemas())
    rules = data.draw(programs(schema))
    with open_store(new_url()) as store:
        add(store, schema, rules, {})
        decomposed, network = {}, DependencyGraph()
        for name in order_by_dependency(rules):
            decomposed[name] = decompose(rules[name], schema, decomposed)
            network.add(name, decomposed[name])
        assert shapes(store.rule_graph.load_all()) == as_graph(network)
        for name in rules:
            alone = DependencyGraph()
            alone.add(name, decomposed[name])
            assert shapes(store.rule_graph.load_all([name])) == as_graph(alone)
