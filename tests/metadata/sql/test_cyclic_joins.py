"""Rules with cyclic joins: expanded along references, they have the results of the definition."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from research.metadata.semantics import evaluate_atomic_rule, evaluate_query
from tests.metadata.sql.test_metadata_histories import batches, drafts, members, read_moves
from tests.support.oracles.metadata_sparql import sparql_results
from tests.support.strategies.effort import share
from tests.support.strategies.metadata import Step, histories, state
from tidings.errors import SubscriptionError
from tidings.metadata.provider.provider import Provider
from tidings.metadata.queries.engine import QueryEngine
from tidings.metadata.resources import Resource
from tidings.metadata.rules.atomic import decompose
from tidings.metadata.rules.normal_form import normalize_rule
from tidings.metadata.rules.rule_parser import parse_query, parse_rule
from tidings.metadata.rules.semantics import evaluate_rule
from tidings.metadata.rules.syntax import format_rule
from tidings.metadata.rules.validation import check_rule
from tidings.metadata.schema.model import Class, Property, Reference, Schema
from tidings.store.store import Store, open_store
from tidings.values import Kind

A = "http://example.org/a#"


def _property(of: str, name: str, leads_to: str | None = None, several: bool = False) -> Property:
    if leads_to is None:
        return Property(name, A + name, of, kind=Kind.NUMBER, several=several)
    return Property(name, A + name, of, leads_to=leads_to, reference=Reference.STRONG, several=several)


PROPERTIES = (
    *(_property("Host", "port"), _property("Host", "rank"), _property("Host", "info", "Info")),
    *(_property("Host", "twin", "Host"), _property("Host", "near", "Host", several=True)),
    *(_property("Info", "size"), _property("Info", "host", "Host")),
)
SCHEMA = Schema(
    {
        "Host": Class("Host", A + "Host"),
        "Big": Class("Big", A + "Big", ("Host",)),
        "Info": Class("Info", A + "Info"),
    },
    {each.name: (each,) for each in PROPERTIES},
)
CYCLES = {
    # a rule, and the comparison behind a reference after its expansion
    "search Host c register c where c.info.size > c.twin.port": "c.info.size > c.twin.port",
    "search Host c register c where c.info.host.port = c.twin.port": "c.info.host.port = c.twin.port",
    "search Host c, Host d register c where c.info.size = d.info.size and c.port = d.port": "c.info.size = d.info.size",
    "search Host c, Host d register d where c.info.size != d.port and c.port <= d.port": "c.info.size != d.port",
    "search Host c, Big d register c where c.info.size > d.twin.port and c.twin.port < d.info.size and d.rank = 1": (
        "c.twin.port < d.info.size"
    ),
    "search Host c, Host d, Big e register c where c.near? = d and d.near? = e and e.twin = c": "e.twin.near? = d",
    "search Host c, Host d, Host e register e where c.twin = d and d.twin = e and e.twin = c": "c.twin.twin.twin = c",
    "search Host c, Info i, Host d register i where c.info = i and d.info = i and c.port = d.port": "d.info = c.info",
    "search Big c, Info i, Host d register d where c.info = i and i.host = d and d.twin = c and c.port > d.port": (
        "c.info.host.twin = c"
    ),
}
REJECTED = (
    "search Host c, Host d, Host e register c where c.port = d.port and d.rank = e.rank and e.port = c.rank",
    "search Host c, Host d register c where c.near?.port = d.port and c.rank = d.rank",
)
RULES = {f"r{number}": parse_rule(text) for number, text in enumerate(CYCLES)}


@pytest.mark.parametrize("text", CYCLES)
def test_normalize_rule_cyclic_join_is_expanded_along_reference(text: str) -> None:
    check_rule(parse_rule(text), SCHEMA, {}, text)
    (normal,) = normalize_rule(parse_rule(text), SCHEMA, {})
    assert CYCLES[text] in format_rule(normal)


@pytest.mark.parametrize("text", REJECTED)
def test_check_rule_unsupported_cycle_is_rejected(text: str) -> None:
    with pytest.raises(SubscriptionError, match="a cycle of joins is not supported"):
        check_rule(parse_rule(text), SCHEMA, {}, text)


@given(histories(SCHEMA))
def test_evaluate_atomic_rules_of_cycles_equals_sparql(history: Sequence[Step]) -> None:
    resources = list(state(history).values())
    for rule in RULES.values():
        results = set().union(
            *(evaluate_atomic_rule(each, resources, SCHEMA) for each in decompose(rule, SCHEMA))
        )
        assert results == sparql_results(rule, resources, SCHEMA)


@share(10, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    history=histories(SCHEMA),
    sizes=st.lists(st.integers(1, 3), min_size=1, max_size=4),
    split=st.integers(0, 4),
)
def test_provider_cyclic_rules_random_history_equals_definition(
    new_url: Callable[[], str], history: list[Step], sizes: list[int], split: int
) -> None:
    """Notifications are the differences, with reasons; queries give the same final results."""
    with open_store(new_url()) as store:
        provider = Provider(store)
        entries = [draft.at(i) for i, draft in enumerate(drafts(history, SCHEMA), 1)]
        provider.apply(entries[: split + 1])
        entered = provider.add_rules({name: format_rule(rule) for name, rule in RULES.items()}, "ana")
        assert entered == members(history[:split], RULES, SCHEMA)
        for batch in batches(entries[split + 1 :], sizes):
            position, sequence = provider.position - 1, store.notifications.last_sequence("ana")
            provider.apply(batch)
            before, now = (members(history[:end], RULES, SCHEMA) for end in (position, position + len(batch)))
            moves = read_moves(store, sequence, state(history[: position + len(batch)]))
            assert sorted(moves["entered"]) == sorted(now - before)
            assert sorted(moves["left"]) == sorted(before - now)
        _check_queries(store, list(state(history).values()))


def _check_queries(store: Store, resources: list[Resource]) -> None:
    """Check that queries give the same results, also for all variables together."""
    queries = QueryEngine.at_provider(store)
    for rule in RULES.values():
        query = f"{format_rule(rule)} select {', '.join(each.variable for each in rule.searched)}"
        assert queries.ask(query).rows == evaluate_query(parse_query(query), resources, SCHEMA).rows
        uris = {each.uri for each in queries.ask(format_rule(rule)).resources}
        assert uris == evaluate_rule(rule, resources, SCHEMA)
