"""Domains: accepted values, order of values, invalid declarations."""

from __future__ import annotations

import pickle
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.strategies.schemas import domains, orders
from tidings.errors import SchemaError
from tidings.events.schema.concept_hierarchy import find_cycle
from tidings.events.schema.domains import Domain, DomainKind

ACCEPTED = {
    DomainKind.NUMERIC: [0, 1.5, -(2**63)],
    DomainKind.STRING: ["", "x", "2026-01-31"],
    DomainKind.BOOLEAN: [True, False],
    DomainKind.INSTANT: ["2026-01-31", "2026-01-31T12:00:00Z"],
}


@pytest.mark.parametrize("kind", ACCEPTED)
@pytest.mark.parametrize("other", ACCEPTED)
def test_domain_accepts_values_of_own_kind(kind: DomainKind, other: DomainKind) -> None:
    domain = Domain("d", kind)
    for value in ACCEPTED[other]:
        is_string = kind is DomainKind.STRING and isinstance(value, str)
        is_instant = kind is DomainKind.INSTANT and value in ("2026-01-31", "2026-01-31T12:00:00Z")
        assert domain.accepts(value) == (kind is other or is_string or is_instant)


def test_domain_bounds_are_inclusive() -> None:
    domain = Domain("d", DomainKind.NUMERIC, minimum=0, maximum=10)
    assert [domain.accepts(number) for number in (-0.1, 0, 10, 10.5)] == [False, True, True, False]


def test_domain_enumerated_accepts_only_listed_values() -> None:
    domain = Domain("size", DomainKind.ENUMERATED, {"1": (), "2": ()})
    assert domain.accepts("1") and not domain.accepts(1) and not domain.accepts("3")
    assert not domain.is_ordered


def test_at_most_hierarchy_is_reflexive_and_transitive() -> None:
    below = {
        "dining room": (),
        "outdoor": (),
        "table": ("dining room",),
        "dining table": ("table", "outdoor"),
    }
    domain = Domain("category", DomainKind.HIERARCHICAL, below)
    assert domain.at_most("dining table", "dining room") and domain.at_most("table", "table")
    assert not domain.at_most("dining room", "table") and not domain.at_most("bed", "bed")
    assert domain.ancestors("dining table") == {"dining table", "table", "dining room", "outdoor"}
    assert domain.ancestors("bed") == frozenset()


def test_at_most_long_chain_does_not_recurse() -> None:
    values = [str(number) for number in range(1500)]
    domain = Domain(
        "d", DomainKind.ENUMERATED, dict(zip(values, [()] + [(v,) for v in values], strict=False))
    )
    assert domain.at_most("1499", "0")


INVALID_ORDERS = {
    "domain d has a cycle: a < b < c < a": {"a": ("b",), "b": ("c",), "c": ("a",)},
    "domain d has a cycle: a < a": {"x": ("a",), "a": ("a",)},
    "'tabel' is below 'dinning', which is not a value": {"dining": (), "tabel": ("dinning",)},
    "domain d is hierarchical and has no values": {},
    "a value of domain d is not a valid name; received ''": {"": ()},
}


@pytest.mark.parametrize("message", INVALID_ORDERS)
def test_domain_invalid_order_is_rejected(message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        Domain("d", DomainKind.HIERARCHICAL, INVALID_ORDERS[message])


def test_domain_unknown_parent_suggests_similar_value() -> None:
    with pytest.raises(SchemaError, match="did you mean 'dining'"):
        Domain("d", DomainKind.HIERARCHICAL, {"dining": (), "table": ("dinning",)})


def test_domain_invalid_settings_are_rejected() -> None:
    with pytest.raises(SchemaError, match="minimum 5 is above its maximum 1"):
        Domain("d", DomainKind.NUMERIC, minimum=5, maximum=1)
    with pytest.raises(SchemaError, match="only numeric domains have bounds"):
        Domain("d", DomainKind.STRING, minimum=5)
    with pytest.raises(SchemaError, match="cannot list values"):
        Domain("d", DomainKind.STRING, {"x": ()})
    with pytest.raises(SchemaError, match="a domain needs a name"):
        Domain("", DomainKind.STRING)


@given(orders())
def test_at_most_is_partial_order(below: dict[str, tuple[str, ...]]) -> None:
    domain = Domain("d", DomainKind.HIERARCHICAL, below)
    for a in domain.values:
        assert domain.at_most(a, a)
        for b in domain.ancestors(a):
            assert a == b or not domain.at_most(b, a)
            assert domain.ancestors(b) <= domain.ancestors(a)


@given(st.dictionaries(st.sampled_from("abcdef"), st.lists(st.sampled_from("abcdef"), max_size=2)))
def test_find_cycle_finds_cycle_unless_topological_order_exists(edges: dict[str, list[str]]) -> None:
    graph = {**{value: [] for value in "abcdef"}, **edges}
    cycle = find_cycle(graph)
    remaining = dict(graph)
    while free := [value for value, above in remaining.items() if not set(above) & set(remaining)]:
        remaining = {value: above for value, above in remaining.items() if value not in free}
    assert bool(cycle) == bool(remaining)
    assert not cycle or cycle[0] == cycle[-1]
    assert all(high in graph[low] for low, high in pairwise(cycle))


@given(domains(st.just("d")))
def test_domain_pickled_is_equal(domain: Domain) -> None:
    domain.ancestors("something")
    assert pickle.loads(pickle.dumps(domain)) == domain and hash(domain) == hash(domain)
