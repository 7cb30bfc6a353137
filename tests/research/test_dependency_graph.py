"""The dependency graph: figures 7 and 8 of paper 001, and what comes and goes with rules."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from research.metadata.dependency_graph import FILTER_RULES, DependencyGraph
from tests.support.stores.cycle_providers import SCHEMA, rule
from tests.support.strategies.rules import rules
from tidings.errors import IdTaken
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
def test_figure_7(text: str) -> None:
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


def test_figure_8() -> None:
    network = network_of(SECTION_3_3_1)
    tables = {name: list(network.filter_rules(compares)) for compares, name in FILTER_RULES.items()}
    assert {name: rows for name, rows in tables.items() if rows} == {
        "FilterRulesGT": [(1, "ServerInformation", "memory", 64), (2, "ServerInformation", "cpu", 500)],
        "FilterRulesCON": [(3, "CycleProvider", "serverHost", "uni-passau.de")],
    }


def test_rule_groups_of_section_3_3_3() -> None:
    """The triggering rule without a condition is shared, and the two joins are of one group."""
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


def test_removing_a_rule_leaves_what_others_use() -> None:
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


def test_numbers_are_never_given_again() -> None:
    network = network_of("search CycleProvider c register c where c.serverInformation.memory > 64")
    network.remove("r0")
    change = network.add("r1", decompose(rule(SECTION_3_3_1), SCHEMA))
    assert [node.number for node in change.added] == [4, 5, 6, 7, 8]
    assert [node.group for node in change.added if node.group] == [2, 3]


def test_a_rule_that_is_there_under_another_name_adds_nothing() -> None:
    network = network_of(SECTION_3_3_1)
    change = network.add("again", decompose(rule(NORMALISED), SCHEMA))
    assert (change.ends, change.added) == ((5,), ())
    assert network.remove("r0").removed == ()
    assert len(network.remove("again").removed) == 5
    assert network.nodes == network.uses == network.groups == network.members == network.ends == {}


def test_a_name_is_used_once() -> None:
    network = network_of(SECTION_3_3_1)
    with pytest.raises(IdTaken, match="there is a rule of this name; received r0"):
        network.add("r0", decompose(rule(SECTION_3_3_1), SCHEMA))


def test_levels() -> None:
    network = network_of(SECTION_3_3_1)
    assert [network.nodes[number].level for number in range(1, 6)] == [0, 0, 0, 1, 2]


@given(st.data())
def test_rules_come_and_go(data: st.DataObject) -> None:
    """Whatever came and went, the network is that of the rules that are there, and what a store wrote down makes it."""
    network, there, written = DependencyGraph(), {}, {}
    for name in data.draw(st.lists(st.sampled_from("abcd"), max_size=8)):
        if name in there:
            change = network.remove(name)
            del there[name]
        else:
            there[name] = decompose(data.draw(rules(SCHEMA)), SCHEMA)
            change = network.add(name, there[name])
        written |= {node.number: node for node in change.added}
        for node in change.removed:
            assert written.pop(node.number) == node
    assert written == network.nodes
    assert DependencyGraph.load(written.values(), network.ends, network.last, network.last_group) == network
    assert _shape(network) == _shape(_made(there))


def _made(there: dict[str, tuple[AtomicRule, ...]]) -> DependencyGraph:
    network = DependencyGraph()
    for name, atomics in there.items():
        network.add(name, atomics)
    return network


def _shape(network: DependencyGraph) -> tuple[object, ...]:
    """A network whatever its numbers are: how often each atomic rule is used, and which joins are in one group."""

    def whole(number: int) -> AtomicRule:
        asked = network.nodes[number].asked
        if isinstance(asked, TriggeringRule):
            return asked
        return JoinRule(asked.condition, whole(asked.left), whole(asked.right))

    uses = {whole(number): count for number, count in network.uses.items()}
    groups = {
        condition: {whole(number) for number in network.members[group]}
        for condition, group in network.groups.items()
    }
    return uses, groups, {name: {whole(end) for end in ends} for name, ends in network.ends.items()}
