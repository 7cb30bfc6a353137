"""Decomposition of rules: normal rules, and the atomic rules that they become."""

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
def test_normalize_rule_gives_normal_rules(text: str, expected: list[str]) -> None:
    assert [format_rule(each) for each in normalize_rule(rule(text), SCHEMA, {})] == expected


def decompose_single(text: str, **rules_by_name: tuple[AtomicRule, ...]) -> AtomicRule:
    types = {name: registered_class(atomics[0]) for name, atomics in rules_by_name.items()}
    (atomic,) = decompose(rule(text, **types), SCHEMA, rules_by_name)
    return atomic


def test_decompose_gives_each_kind_of_triggering_rule() -> None:
    """OID, COMP and the one without a condition: figure 10, section 3.3.1."""
    assert decompose_single("search CycleProvider c register c") == TriggeringRule("CycleProvider")
    assert decompose_single("search CycleProvider c register c where c.synthValue > 5") == TriggeringRule(
        "CycleProvider", "synthValue", Operator.GREATER, 5
    )
    for uri in ("<doc.rdf#host>", "'doc.rdf#host'"):
        assert decompose_single(f"search CycleProvider c register c where c = {uri}") == TriggeringRule(
            "CycleProvider", SUBJECT, Operator.EQUAL, "doc.rdf#host", is_resource=True
        )


def test_decompose_ignores_names_of_variables() -> None:
    assert decompose_single(
        "search Provider p, ServerInformation s register p where p.serverInformation = s and s.cpu > 5"
    ) == decompose_single(
        "search ServerInformation p, Provider x register x where p.cpu > 5 and p = x.serverInformation"
    )


@pytest.mark.parametrize(
    ("register", "condition_text", "condition"),
    [
        ("p", "p.serverPort < q.synthValue", ("synthValue", Operator.GREATER, "serverPort")),
        ("p", "q.synthValue > p.serverPort", ("synthValue", Operator.GREATER, "serverPort")),
        ("q", "p.serverPort < q.synthValue", ("serverPort", Operator.LESS, "synthValue")),
    ],
)
def test_decompose_registered_side_is_on_right(
    register: str, condition_text: str, condition: tuple[str, Operator, str]
) -> None:
    atomic = decompose_single(
        f"search Provider p, CycleProvider q register {register} where {condition_text}"
    )
    assert isinstance(atomic, JoinRule)
    assert (
        atomic.condition.left.property,
        atomic.condition.operator,
        atomic.condition.right.property,
    ) == condition
    assert not atomic.condition.registers_left
    assert registered_class(atomic) == {"p": "Provider", "q": "CycleProvider"}[register]


@pytest.mark.parametrize("register", ["p", "q"])
def test_decompose_contains_keeps_its_direction(register: str) -> None:
    atomic = decompose_single(
        f"search Provider p, DataProvider q register {register} where p.serverHost contains q.domain"
    )
    sides = JoinSide("Provider", "serverHost"), JoinSide("DataProvider", "domain")
    condition = JoinCondition(sides[0], Operator.CONTAINS, sides[1], registers_left=register == "p")
    assert atomic == JoinRule(condition, TriggeringRule("Provider"), TriggeringRule("DataProvider"))


@pytest.mark.parametrize("condition_text", ["p = q", "q = p"])
def test_decompose_equal_resources_registered_side_is_on_left(condition_text: str) -> None:
    atomic = decompose_single(f"search Provider p, DataProvider q register p where {condition_text}")
    condition = JoinCondition(
        JoinSide("Provider"), Operator.EQUAL, JoinSide("DataProvider"), registers_left=True
    )
    assert atomic == JoinRule(condition, TriggeringRule("Provider"), TriggeringRule("DataProvider"))


EQUIVALENT = [
    (
        "search Provider p, DataProvider q register p "
        "where p.serverPort < q.serverPort and p.open = q.open and p.serverHost = q.domain and p.partners? = q",
        "search DataProvider d, Provider x register x "
        "where x.serverHost = d.domain and d = x.partners? and d.serverPort > x.serverPort and d.open = x.open",
        "search group(DataProvider) a, group(Provider) p register p where p.partners = a "
        "and p.serverHost = a.domain and p.open = a.open and p.serverPort < a.serverPort",
    ),
    # A comparison repeated in both directions is one comparison.
    (
        "search Provider p, DataProvider q register q "
        "where p.serverPort = q.serverPort and q.serverPort = p.serverPort",
        "search Provider p, DataProvider q register q where p.serverPort = q.serverPort",
        "search group(Provider) a, group(DataProvider) d register d where d.serverPort = a.serverPort",
    ),
    # No equality, and `contains` in both directions.
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


@pytest.mark.parametrize(("text", "other", "group"), EQUIVALENT)
def test_decompose_several_comparisons_have_one_canonical_order(text: str, other: str, group: str) -> None:
    """The most selective comparison comes first.

    That is the same resource, then a reference, then an equal value; an equal boolean is last.
    """
    atomic = decompose_single(text)
    assert isinstance(atomic, JoinRule)
    assert atomic == decompose_single(other)
    assert format_group(atomic.condition) == group


def test_decompose_comparison_within_resource_is_shared_rule() -> None:
    compared = decompose_single("search ServerInformation s register s where s.memory > s.cpu")
    atomic = decompose_single("search ServerInformation s register s where s.memory > s.cpu and s.cpu > 500")
    fast = TriggeringRule("ServerInformation", "cpu", Operator.GREATER, 500)
    sides = JoinSide("ServerInformation"), JoinSide("ServerInformation")
    assert atomic == JoinRule(JoinCondition(sides[0], Operator.EQUAL, sides[1], True), fast, compared)


@pytest.mark.parametrize("operator", Operator)
def test_flipped_join_predicate_swaps_sides(operator: Operator) -> None:
    predicate = JoinPredicate("memory", operator, None)
    assert (predicate.flip().left, predicate.flip().right) == (None, "memory")
    assert predicate.flip().flip() == predicate


def test_decompose_rule_over_rule_is_joined_with_it() -> None:
    first = decompose_single("search CycleProvider c register c where c.serverPort = 80")
    both = decompose_single("search First x register x where x.open = true", First=(first,))
    assert both == decompose_single(
        "search CycleProvider c register c where c.serverPort = 80 and c.open = true"
    )


def test_decompose_alternatives_of_searched_rules_multiply_up_to_limit() -> None:
    first = decompose(
        rule("search Provider c register c where c.serverPort = 80 or c.serverPort = 443"), SCHEMA
    )
    text = "search First a, First b register a where a.partners? = b"
    atomics = decompose(rule(text, First="Provider"), SCHEMA, {"First": first})
    assert len(atomics) == 4
    with pytest.raises(TooLarge, match="too many alternatives; received 4 rules"):
        decompose(rule(text, First="Provider"), SCHEMA, {"First": first}, alternatives=3)


def test_decompose_exponential_joins_are_rejected() -> None:
    rules_by_name = {"R0": decompose(rule("search Provider p register p"), SCHEMA)}
    with pytest.raises(TooLarge, match="the rule has too many joins"):
        for n in range(100):
            text = f"search R{n} a, R{n} b register a where a.partners? = b"
            rules_by_name[f"R{n + 1}"] = decompose(rule(text, **{f"R{n}": "Provider"}), SCHEMA, rules_by_name)
