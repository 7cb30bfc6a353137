"""The dependency graph: figures 7 and 8 of paper 001, and what comes and goes with rules."""

from __future__ import annotations

import pytest

from tests.metadata.servers import SCHEMA, rule
from tidings.metadata.decomposing import decompose
from tidings.metadata.network import FILTER_RULES, Network

SECTION_3_3_1 = (
    "search CycleProvider c register c where c.serverHost contains 'uni-passau.de' "
    "and c.serverInformation.memory > 64 and c.serverInformation.cpu > 500"
)
NORMALISED = (
    "search CycleProvider c, ServerInformation s register c where c.serverHost contains 'uni-passau.de' "
    "and c.serverInformation = s and s.memory > 64 and s.cpu > 500"
)


def network_of(*texts: str) -> Network:
    network = Network()
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
