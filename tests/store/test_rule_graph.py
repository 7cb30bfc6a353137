"""The dependency graph as it is stored, whole and by kind, against the network of the same rules."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from effort import share
from generated_metadata import schemas
from generated_rules import programs
from tests.metadata.servers import FIGURE_1, SCHEMA, rule
from tidings.languages.rules_tree import Rule
from tidings.metadata.atomic import Triggering
from tidings.metadata.checking import in_order
from tidings.metadata.decomposing import decompose
from tidings.metadata.network import Joined, Network
from tidings.metadata.schema import Schema
from tidings.store import Store, open_store, rule_filter
from tidings.store.atom_rows import Placed
from tidings.store.rule_base import NamedRule
from tidings.store.rule_graph import Counted, Graph, Kind

TEXTS = {
    "passau": "search CycleProvider c register c where c.serverHost contains 'uni-passau.de' "
    "and c.serverInformation.memory > 64 and c.serverInformation.cpu > 500",
    "large": "search CycleProvider c register c where c.serverInformation.memory > 64",
    "large-or-fast": "search CycleProvider c register c where c.serverInformation.memory > 64 "
    "or c.serverInformation.cpu > 500",
}
OWNERS = {"passau": "ana", "large": "bob", "large-or-fast": "bob"}


def add(store: Store, schema: Schema, rules: dict[str, Rule], owners: dict[str, str]) -> None:
    made = {}
    for name in in_order(rules):
        made[name] = decompose(rules[name], schema, made)
    named = [NamedRule(name, owners.get(name, "ana"), "", ends) for name, ends in made.items()]
    store.database.transact(lambda connection: rule_filter.add_rules(connection, schema, named))


def fill(store: Store) -> None:
    versions = {each.uri: Placed(each, "doc.rdf") for each in FIGURE_1}
    store.database.transact(lambda connection: rule_filter.run(connection, SCHEMA, versions, []))
    add(store, SCHEMA, {name: rule(text) for name, text in TEXTS.items()}, OWNERS)


def shapes(graph: Graph) -> tuple[set[str], dict[str, set[str]]]:
    """Atomic rules written out, whatever their numbers are, and those that each rule ends in."""
    asked = {each.number: each.asked for each in graph.atomic}

    def written(number: int) -> str:
        found = asked[number]
        if isinstance(found, Triggering):
            return repr(found)
        return f"({written(found.left)} {found.meeting} {written(found.right)})"

    return set(map(written, asked)), {each.name: set(map(written, each.ends)) for each in graph.named}


def as_graph(network: Network) -> tuple[set[str], dict[str, set[str]]]:
    def written(number: int) -> str:
        found = network.nodes[number].asked
        if isinstance(found, Joined):
            return f"({written(found.left)} {found.meeting} {written(found.right)})"
        return repr(found)

    return set(map(written, network.nodes)), {
        name: set(map(written, ends)) for name, ends in network.ends.items()
    }


def test_the_paper_s_example_with_counts(store: Store) -> None:
    fill(store)
    graph = store.rule_graph.every(["passau"])
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


def test_what_is_shared_is_there_once(store: Store) -> None:
    fill(store)
    graph = store.rule_graph.every()
    assert store.rule_graph.size() == len(graph.atomic) + len(graph.named) == 8 + 3
    several = next(each for each in graph.named if each.name == "large-or-fast")
    assert (len(several.ends), several.results) == (2, 1)  # both ends have the same resource
    assert store.rule_graph.missing(["large", "none"]) == ["none"]


@pytest.mark.parametrize("names", [(), ("large",), ("passau", "large-or-fast")])
def test_kinds_count_what_there_is(store: Store, names: tuple[str, ...]) -> None:
    fill(store)
    graph, kinds = store.rule_graph.every(names), store.rule_graph.kinds(names)
    expected: Counter[Kind] = Counter()
    results: Counter[Kind] = Counter()
    for each in graph.atomic:
        kind = Kind(each.level, group=each.group)
        if isinstance(each.asked, Triggering):
            asked = each.asked
            kind = Kind(0, asked.cls, asked.property, asked.compares.value if asked.compares else None)
        expected[kind] += 1
        results[kind] += each.results
    for named in graph.named:
        expected[Kind(-1, owner=named.owner)] += 1
        results[Kind(-1, owner=named.owner)] += named.results
    assert kinds.counts == {kind: Counted(count, results[kind]) for kind, count in expected.items()}
    joins = sum(1 for each in graph.atomic if each.group is not None)
    assert sum(kinds.inputs.values()) == 2 * joins + sum(len(each.ends) for each in graph.named)
    assert {kind for pair in kinds.inputs for kind in pair} <= kinds.counts.keys()


def test_nothing(store: Store) -> None:
    assert (store.rule_graph.size(), store.rule_graph.every()) == (0, Graph((), ()))
    assert store.rule_graph.kinds().counts == {}


@share(6, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_any_rules(new_url, data: st.DataObject) -> None:
    """What a rule needs is what it was taken apart into, alone and among others."""
    schema = data.draw(schemas())
    rules = data.draw(programs(schema))
    with open_store(new_url()) as store:
        add(store, schema, rules, {})
        made, network = {}, Network()
        for name in in_order(rules):
            made[name] = decompose(rules[name], schema, made)
            network.add(name, made[name])
        assert shapes(store.rule_graph.every()) == as_graph(network)
        for name in rules:
            alone = Network()
            alone.add(name, made[name])
            assert shapes(store.rule_graph.every([name])) == as_graph(alone)
