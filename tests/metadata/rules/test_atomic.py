"""Rules taken apart: normal rules, and the atomic rules they become."""

from __future__ import annotations

import pytest

from research.metadata.dependency_graph import format_group
from tests.support.stores.cycle_providers import SCHEMA, rule
from tidings.errors import TooLarge
from tidings.metadata.resources import SUBJECT
from tidings.metadata.rules.atomic import (
    AtomicRule,
    JoinCondition,
    JoinRule,
    JoinSide,
    TriggeringRule,
    decompose,
    registered_class,
)
from tidings.metadata.rules.normal_form import JoinPredicate, normalize_rule
from tidings.metadata.rules.syntax import Operator, format_rule

NORMAL = [
    (
        "search CycleProvider c register c where c.serverHost contains 'uni-passau.de' "
        "and c.serverInformation.memory > 64",
        "search CycleProvider c, ServerInformation s register c where c.serverHost contains 'uni-passau.de' "
        "and c.serverInformation = s and s.memory > 64",
    ),
    (
        "search Provider s register s where s.serverInformation.backup.cpu > 5 and s.serverInformation.cpu > 5",
        "search Provider s, ServerInformation s2, ServerInformation s3 register s "
        "where s.serverInformation = s2 and s2.backup = s3 and s3.cpu > 5 and s2.cpu > 5",
    ),
    (
        "search Provider p register p where p.partners?.serverPort = 80 and p.partners?.serverPort = 443",
        "search Provider p, Provider p2, Provider p3 register p "
        "where p.partners? = p2 and p2.serverPort = 80 and p.partners? = p3 and p3.serverPort = 443",
    ),
    (
        "search Provider p register p where p = 'u' and p.since > 2004-05-31 and p = <u>",
        "search Provider p register p where p = <u> and p.since > '2004-05-31T00:00:00.000000Z'",
    ),
    (
        "search Provider p register p where (p.serverPort = 1 or p.serverPort = 2) and p.open = true",
        "search Provider p register p where p.serverPort = 1 and p.open = true",
        "search Provider p register p where p.serverPort = 2 and p.open = true",
    ),
]


@pytest.mark.parametrize(("text", "expected"), [(text, rest) for text, *rest in NORMAL])
def test_normal_rules(text: str, expected: list[str]) -> None:
    assert [format_rule(each) for each in normalize_rule(rule(text), SCHEMA, {})] == expected


def one(text: str, **named: tuple[AtomicRule, ...]) -> AtomicRule:
    types = {name: registered_class(atomics[0]) for name, atomics in named.items()}
    (found,) = decompose(rule(text, **types), SCHEMA, named)
    return found


def test_the_kinds_of_triggering_rules() -> None:
    """OID, COMP and the one without a condition: figure 10, section 3.3.1."""
    assert one("search CycleProvider c register c") == TriggeringRule("CycleProvider")
    assert one("search CycleProvider c register c where c.synthValue > 5") == TriggeringRule(
        "CycleProvider", "synthValue", Operator.GREATER, 5
    )
    for uri in ("<doc.rdf#host>", "'doc.rdf#host'"):
        assert one(f"search CycleProvider c register c where c = {uri}") == TriggeringRule(
            "CycleProvider", SUBJECT, Operator.EQUAL, "doc.rdf#host", is_resource=True
        )


def test_equal_rules_are_equal_whatever_variables_are_called() -> None:
    assert one(
        "search Provider p, ServerInformation s register p where p.serverInformation = s and s.cpu > 5"
    ) == one("search ServerInformation p, Provider x register x where p.cpu > 5 and p = x.serverInformation")


@pytest.mark.parametrize(
    ("register", "written", "condition"),
    [
        ("p", "p.serverPort < q.synthValue", ("synthValue", Operator.GREATER, "serverPort")),
        ("p", "q.synthValue > p.serverPort", ("synthValue", Operator.GREATER, "serverPort")),
        ("q", "p.serverPort < q.synthValue", ("serverPort", Operator.LESS, "synthValue")),
    ],
)
def test_what_is_kept_stands_on_the_right(
    register: str, written: str, condition: tuple[str, Operator, str]
) -> None:
    found = one(f"search Provider p, CycleProvider q register {register} where {written}")
    assert isinstance(found, JoinRule)
    assert (
        found.condition.left.property,
        found.condition.operator,
        found.condition.right.property,
    ) == condition
    assert not found.condition.registers_left
    assert registered_class(found) == {"p": "Provider", "q": "CycleProvider"}[register]


@pytest.mark.parametrize("register", ["p", "q"])
def test_contains_has_no_opposite(register: str) -> None:
    found = one(f"search Provider p, DataProvider q register {register} where p.serverHost contains q.domain")
    sides = JoinSide("Provider", "serverHost"), JoinSide("DataProvider", "domain")
    condition = JoinCondition(sides[0], Operator.CONTAINS, sides[1], registers_left=register == "p")
    assert found == JoinRule(condition, TriggeringRule("Provider"), TriggeringRule("DataProvider"))


@pytest.mark.parametrize("written", ["p = q", "q = p"])
def test_where_only_resources_are_compared_the_kept_ones_stand_on_the_left(written: str) -> None:
    found = one(f"search Provider p, DataProvider q register p where {written}")
    condition = JoinCondition(
        JoinSide("Provider"), Operator.EQUAL, JoinSide("DataProvider"), registers_left=True
    )
    assert found == JoinRule(condition, TriggeringRule("Provider"), TriggeringRule("DataProvider"))


ALIKE = [
    (
        "search Provider p, DataProvider q register p "
        "where p.serverPort < q.serverPort and p.open = q.open and p.serverHost = q.domain and p.partners? = q",
        "search DataProvider d, Provider x register x "
        "where x.serverHost = d.domain and d = x.partners? and d.serverPort > x.serverPort and d.open = x.open",
        "search group(DataProvider) a, group(Provider) p register p where p.partners = a "
        "and p.serverHost = a.domain and p.open = a.open and p.serverPort < a.serverPort",
    ),
    # The same twice, in two directions, is one comparison.
    (
        "search Provider p, DataProvider q register q "
        "where p.serverPort = q.serverPort and q.serverPort = p.serverPort",
        "search Provider p, DataProvider q register q where p.serverPort = q.serverPort",
        "search group(Provider) a, group(DataProvider) d register d where d.serverPort = a.serverPort",
    ),
    # Where nothing is equal, and `contains` goes both ways.
    (
        "search Provider p, DataProvider q register p "
        "where q.domain contains p.serverHost and p.tags? contains q.domain",
        "search DataProvider p, Provider q register q "
        "where q.tags? contains p.domain and p.domain contains q.serverHost",
        "search group(DataProvider) a, group(Provider) p register p "
        "where a.domain contains p.serverHost and p.tags contains a.domain",
    ),
    (
        "search Provider p, CycleProvider q register p where p.twin != q and p = q",
        "search CycleProvider c, Provider p register p where p = c and c != p.twin",
        "search group(Provider) a, group(CycleProvider) c register a where a = c and a.twin != c",
    ),
    (
        "search ServerInformation s register s where s.memory > s.cpu",
        "search ServerInformation s register s where s.cpu < s.memory",
        "search group(ServerInformation) a, group(ServerInformation) b register a where a = b and a.cpu < b.memory",
    ),
]


@pytest.mark.parametrize(("text", "other", "group"), ALIKE)
def test_several_comparisons_are_one_meeting_in_one_order(text: str, other: str, group: str) -> None:
    """What finds a partner comes first: the same resource, a reference, an equal value, but a boolean last."""
    found = one(text)
    assert isinstance(found, JoinRule)
    assert found == one(other)
    assert format_group(found.condition) == group


def test_two_properties_of_one_resource_are_one_rule_for_all_who_compare_them() -> None:
    compared = one("search ServerInformation s register s where s.memory > s.cpu")
    found = one("search ServerInformation s register s where s.memory > s.cpu and s.cpu > 500")
    fast = TriggeringRule("ServerInformation", "cpu", Operator.GREATER, 500)
    sides = JoinSide("ServerInformation"), JoinSide("ServerInformation")
    assert found == JoinRule(JoinCondition(sides[0], Operator.EQUAL, sides[1], True), fast, compared)


@pytest.mark.parametrize("operator", Operator)
def test_a_comparison_seen_from_both_sides(operator: Operator) -> None:
    asked = JoinPredicate("memory", operator, None)
    assert (asked.flipped().left, asked.flipped().right) == (None, "memory")
    assert asked.flipped().flipped() == asked


def test_rules_in_rules() -> None:
    first = one("search CycleProvider c register c where c.serverPort = 80")
    both = one("search First x register x where x.open = true", First=(first,))
    assert both == one("search CycleProvider c register c where c.serverPort = 80 and c.open = true")


def test_the_alternatives_of_rules_multiply() -> None:
    first = decompose(
        rule("search Provider c register c where c.serverPort = 80 or c.serverPort = 443"), SCHEMA
    )
    text = "search First a, First b register a where a.partners? = b"
    found = decompose(rule(text, First="Provider"), SCHEMA, {"First": first})
    assert len(found) == 4
    with pytest.raises(TooLarge, match="too many alternatives; received 4 rules"):
        decompose(rule(text, First="Provider"), SCHEMA, {"First": first}, alternatives=3)


def test_rules_that_search_rules_twice_do_not_grow_without_end() -> None:
    named = {"R0": decompose(rule("search Provider p register p"), SCHEMA)}
    with pytest.raises(TooLarge, match="the rule has too many joins"):
        for n in range(100):
            text = f"search R{n} a, R{n} b register a where a.partners? = b"
            named[f"R{n + 1}"] = decompose(rule(text, **{f"R{n}": "Provider"}), SCHEMA, named)
