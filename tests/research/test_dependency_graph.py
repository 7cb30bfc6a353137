"""The dependency graph: figures 7 and 8 of paper 001, and its changes when rules are added and removed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from research.metadata.dependency_graph import FILTER_RULES, DependencyGraph
from tests.support.stores.cycle_providers import SCHEMA, rule
from tests.support.strategies.rules import rules
from tidings.errors import IdConflict
from tidings.metadata.rules.atomic import AtomicRule, JoinRule, TriggeringRule, decompose

SECTION_3_3_1 = (
    "search CycleProvider c register c where c.serverHost contains 'uni-passau.de' "
    "and c.serverInformation.memory > 64 and c.serverInformation.cpu > 500"
)
NORMALISED = (
    "search CycleProvider c, ServerInformation s register c where c.serverHost contains 'uni-passau.de' "
    "and c.serverInformation = s and s.memory > 64 and s.cpu > 500"
)


def network_of(*texts: str) -> DependencyGraph:
    network = DependencyGraph()
    for number, text in enumerate(texts):
        network.add(f"r{number}", decompose(rule(text), SCHEMA))
    return network


@pytest.mark.parametrize("text", [SECTION_3_3_1, NORMALISED])
def test_dependency_graph_figure_7_has_rules_dependencies_and_groups(text: str) -> None:
    network = network_of(text)
    assert list(network.atomic_rules()) == [
        (1, "search ServerInformation s register s where s.memory > 64", None),
        (2, "search ServerInformation s register s where s.cpu > 500", None),
        (3, "search CycleProvider c register c where c.serverHost contains 'uni-passau.de'", None),
        (
            4,
            "search view(1, ServerInformation) a, view(2, ServerInformation) b register a where a = b",
            1,
        ),
        (
            5,
            "search view(4, ServerInformation) a, view(3, CycleProvider) c register c "
            "where c.serverInformation = a",
            2,
        ),
    ]
    assert list(network.rule_dependencies()) == [(1, 4, 1, 1), (2, 4, 2, 1), (4, 5, 1, 2), (3, 5, 2, 2)]
    assert list(network.rule_groups()) == [
        (1, "search group(ServerInformation) a, group(ServerInformation) b register a where a = b"),
        (
            2,
            "search group(ServerInformation) a, group(CycleProvider) c register c "
            "where c.serverInformation = a",
        ),
    ]
    assert network.ends == {"r0": (5,)}


def test_filter_rules_of_figure_8() -> None:
    network = network_of(SECTION_3_3_1)
    tables = {name: list(network.filter_rules(compares)) for compares, name in FILTER_RULES.items()}
    assert {name: rows for name, rows in tables.items() if rows} == {
        "FilterRulesGT": [(1, "ServerInformation", "memory", 64), (2, "ServerInformation", "cpu", 500)],
        "FilterRulesCON": [(3, "CycleProvider", "serverHost", "uni-passau.de")],
    }


def test_dependency_graph_section_3_3_3_shares_rule_group() -> None:
    """The rules share the triggering rule without a condition, and the two joins are in one group."""
    network = network_of(
        "search CycleProvider c register c where c.serverInformation.memory > 64",
        "search CycleProvider c register c where c.serverInformation.cpu > 500",
    )
    assert [text for _, text, group in network.atomic_rules() if group is None] == [
        "search ServerInformation s register s where s.memory > 64",
        "search CycleProvider c register c",
        "search ServerInformation s register s where s.cpu > 500",
    ]
    assert [(number, node.inputs, node.group) for number, node in network.nodes.items() if node.group] == [
        (3, (1, 2), 1),
        (5, (4, 2), 1),
    ]
    assert network.members == {1: {3, 5}}
    assert network.uses == {1: 1, 2: 2, 3: 1, 4: 1, 5: 1}


def test_remove_rule_keeps_shared_nodes() -> None:
    network = network_of(
        "search CycleProvider c register c where c.serverInformation.memory > 64",
        "search CycleProvider x register x where x.serverInformation.cpu > 500",
        "search CycleProvider c register c",
    )
    change = network.remove("r0")
    assert [node.number for node in change.removed] == [3, 1]
    assert (change.ends, change.added) == ((3,), ())
    assert network.members == {1: {5}}
    assert [node.number for node in network.remove("r1").removed] == [5, 4]
    assert list(network.rule_groups()) == []
    assert list(network.atomic_rules()) == [(2, "search CycleProvider c register c", None)]
    with pytest.raises(KeyError):
        network.remove("r1")


def test_add_after_remove_uses_new_numbers() -> None:
    network = network_of("search CycleProvider c register c where c.serverInformation.memory > 64")
    network.remove("r0")
    change = network.add("r1", decompose(rule(SECTION_3_3_1), SCHEMA))
    assert [node.number for node in change.added] == [4, 5, 6, 7, 8]
    assert [node.group for node in change.added if node.group] == [2, 3]


def test_add_equal_rule_with_other_name_adds_no_nodes() -> None:
    network = network_of(SECTION_3_3_1)
    change = network.add("again", decompose(rule(NORMALISED), SCHEMA))
    assert (change.ends, change.added) == ((5,), ())
    assert network.remove("r0").removed == ()
    assert len(network.remove("again").removed) == 5
    assert network.nodes == network.uses == network.groups == network.members == network.ends == {}


def test_add_existing_name_is_rejected() -> None:
    network = network_of(SECTION_3_3_1)
    with pytest.raises(IdConflict, match="there is a rule of this name; received r0"):
        network.add("r0", decompose(rule(SECTION_3_3_1), SCHEMA))


def test_node_levels_are_distances_from_triggering_rules() -> None:
    network = network_of(SECTION_3_3_1)
    assert [network.nodes[number].level for number in range(1, 6)] == [0, 0, 0, 1, 2]


@given(st.data())
def test_dependency_graph_after_any_history_equals_new_graph(data: st.DataObject) -> None:
    """After any additions and removals, the network equals one of the present rules and one loaded from its nodes."""
    network, present, stored = DependencyGraph(), {}, {}
    for name in data.draw(st.lists(st.sampled_from("abcd"), max_size=8)):
        if name in present:
            change = network.remove(name)
            del present[name]
        else:
            present[name] = decompose(data.draw(rules(SCHEMA)), SCHEMA)
            change = network.add(name, present[name])
        stored |= {node.number: node for node in change.added}
        for node in change.removed:
            assert stored.pop(node.number) == node
    assert stored == network.nodes
    assert DependencyGraph.load(stored.values(), network.ends, network.last, network.last_group) == network
    assert _unnumbered(network) == _unnumbered(_make_network(present))


def _make_network(present: dict[str, tuple[AtomicRule, ...]]) -> DependencyGraph:
    network = DependencyGraph()
    for name, atomics in present.items():
        network.add(name, atomics)
    return network


def _unnumbered(network: DependencyGraph) -> tuple[object, ...]:
    """Return a network without its numbers: the uses of each atomic rule, and the joins of each group."""

    def expand(number: int) -> AtomicRule:
        atomic = network.nodes[number].asked
        if isinstance(atomic, TriggeringRule):
            return atomic
        return JoinRule(atomic.condition, expand(atomic.left), expand(atomic.right))

    uses = {expand(number): count for number, count in network.uses.items()}
    groups = {
        condition: {expand(number) for number in network.members[group]}
        for condition, group in network.groups.items()
    }
    return uses, groups, {name: {expand(end) for end in ends} for name, ends in network.ends.items()}
