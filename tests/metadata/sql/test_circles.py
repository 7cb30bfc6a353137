"""Rules whose variables run in circles: opened along references, they have the results that their meaning says."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from research.metadata.semantics import evaluate_atomic_rule, evaluate_query
from tests.metadata.sql.test_metadata_histories import batches, drafts, members, told
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
CIRCLES = {
    # what a rule says, and what is compared behind a reference when it is opened
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
REFUSED = (
    "search Host c, Host d, Host e register c where c.port = d.port and d.rank = e.rank and e.port = c.rank",
    "search Host c, Host d register c where c.near?.port = d.port and c.rank = d.rank",
)
RULES = {f"r{number}": parse_rule(text) for number, text in enumerate(CIRCLES)}


@pytest.mark.parametrize("text", CIRCLES)
def test_what_closes_a_circle_is_asked_from_where_it_is_known(text: str) -> None:
    check_rule(parse_rule(text), SCHEMA, {}, text)
    (normal,) = normalize_rule(parse_rule(text), SCHEMA, {})
    assert CIRCLES[text] in format_rule(normal)


@pytest.mark.parametrize("text", REFUSED)
def test_others_are_refused(text: str) -> None:
    with pytest.raises(SubscriptionError, match="a cycle of joins is not supported"):
        check_rule(parse_rule(text), SCHEMA, {}, text)


@given(histories(SCHEMA))
def test_atomic_rules_say_what_sparql_says(history: Sequence[Step]) -> None:
    there = list(state(history).values())
    for rule in RULES.values():
        found = set().union(*(evaluate_atomic_rule(each, there, SCHEMA) for each in decompose(rule, SCHEMA)))
        assert found == sparql_results(rule, there, SCHEMA)


@share(10, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    history=histories(SCHEMA),
    sizes=st.lists(st.integers(1, 3), min_size=1, max_size=4),
    begin=st.integers(0, 4),
)
def test_any_history(new_url: Callable[[], str], history: list[Step], sizes: list[int], begin: int) -> None:
    """Told is what became different, with reasons; what rules have in the end, queries find, too."""
    with open_store(new_url()) as store:
        provider = Provider(store)
        entries = [draft.at(i) for i, draft in enumerate(drafts(history, SCHEMA), 1)]
        provider.apply(entries[: begin + 1])
        first = provider.add_rules({name: format_rule(rule) for name, rule in RULES.items()}, "ana")
        assert first == members(history[:begin], RULES, SCHEMA)
        for batch in batches(entries[begin + 1 :], sizes):
            done, sequence = provider.position - 1, store.notifications.last_sequence("ana")
            provider.apply(batch)
            before, now = (members(history[:end], RULES, SCHEMA) for end in (done, done + len(batch)))
            found = told(store, sequence, state(history[: done + len(batch)]))
            assert sorted(found["entered"]) == sorted(now - before)
            assert sorted(found["left"]) == sorted(before - now)
        _ask(store, list(state(history).values()))


def _ask(store: Store, there: list[Resource]) -> None:
    """Queries find the same, and what all variables stand for together."""
    queries = QueryEngine.at_provider(store)
    for rule in RULES.values():
        asked = f"{format_rule(rule)} select {', '.join(each.variable for each in rule.searched)}"
        assert queries.ask(asked).rows == evaluate_query(parse_query(asked), there, SCHEMA).rows
        found = {each.uri for each in queries.ask(format_rule(rule)).resources}
        assert found == evaluate_rule(rule, there, SCHEMA)
