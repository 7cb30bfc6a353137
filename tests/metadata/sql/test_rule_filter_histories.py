"""Random histories of the filter: its results and outcomes equal the definition.

Resources are added, changed, moved to another class and removed, in several documents at once; rules are added and
removed, new ones over stored resources. The store is compared with all atomic rules evaluated from scratch.
"""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from sqlalchemy import func, select

from tests.support.oracles.naive_filter import (
    SCHEMA,
    URIS,
    atomics,
    changed,
    closure,
    joins_by_two,
    parts,
    plain_joins,
    resources,
    results,
)
from tests.support.strategies.effort import share
from tidings.metadata.resources import Resource
from tidings.metadata.rules.atomic import AtomicRule, JoinRule
from tidings.metadata.sql import resource_rows, rule_base, rule_filter
from tidings.metadata.sql.rule_base import NamedRule, load_triggering
from tidings.metadata.sql.tables import atomic_rules, join_rules, rule_ends, rule_inputs, rule_results
from tidings.store.store import open_store

NAMES = [f"rule-{i}" for i in range(5)]
PLAIN = st.sampled_from(plain_joins()) | st.sampled_from(joins_by_two())
NAME = st.sampled_from(NAMES)


class History(RuleBasedStateMachine):
    """A store, and next to it its expected resources and rules."""

    def __init__(self, url: str) -> None:
        super().__init__()
        self.store = open_store(url)
        self.resources: dict[str, Resource] = {}
        self.rules: dict[str, tuple[AtomicRule, ...]] = {}

    def teardown(self) -> None:
        self.store.close()

    def members(self) -> set[tuple[str, str]]:
        return {
            (name, uri)
            for name, ends in self.rules.items()
            for end in ends
            for uri in results(end, self.resources, SCHEMA)
        }

    @initialize(joins=st.lists(PLAIN, min_size=5, max_size=10, unique=True))
    def begin(self, joins: list[JoinRule]) -> None:
        self.add_many({f"plain-{i}": [join] for i, join in enumerate(joins)})

    @rule(name=NAME, ends=st.lists(atomics(), min_size=1, max_size=2))
    def add(self, name: str, ends: list[AtomicRule]) -> None:
        if name in self.rules:
            self.remove(name)
        self.add_many({name: ends})

    def add_many(self, drawn: dict[str, list[AtomicRule]]) -> None:
        added_rules = [NamedRule(name, "ana", "search ...", tuple(ends)) for name, ends in drawn.items()]
        added = self.store.database.transact(lambda c: rule_filter.add_rules(c, SCHEMA, added_rules))
        self.rules |= {each.name: each.ends for each in added_rules}
        assert added.entered == {(name, uri) for name, uri in self.members() if name in drawn}

    @precondition(lambda self: self.rules)
    @rule(data=st.data())
    def withdraw(self, data: st.DataObject) -> None:
        self.remove(data.draw(st.sampled_from(sorted(self.rules))))

    def remove(self, name: str) -> None:
        removed = self.store.database.transact(lambda c: rule_base.delete_rules(c, [name, "no-such-rule"]))
        assert removed.rules == (name,)
        del self.rules[name]

    @rule(data=st.data(), uris=st.sets(st.sampled_from(URIS), min_size=1, max_size=4))
    def change(self, data: st.DataObject, uris: set[str]) -> None:
        """Register some new versions at once; some of them may be unchanged or still missing."""
        before, resources_before = self.members(), dict(self.resources)
        versions = {
            uri: data.draw(st.none() | st.just(resources_before.get(uri)) | resources(uri))
            for uri in sorted(uris)
        }
        self.resources = {
            uri: version for uri, version in (resources_before | versions).items() if version is not None
        }
        outcome = self.store.database.transact(
            lambda c: rule_filter.run_filter(
                c, SCHEMA, versions, self.satisfied(c, uris & set(self.resources))
            )
        )
        now = self.members()
        assert outcome.entered == now - before
        assert outcome.left == before - now
        different = {
            uri
            for uri in uris
            if _comparable(resources_before.get(uri)) != _comparable(self.resources.get(uri))
        }
        reached = {
            uri
            for uri in self.resources
            if different & (closure(uri, resources_before, SCHEMA) | closure(uri, self.resources, SCHEMA))
        }
        assert outcome.changed == {pair for pair in before & now if pair[1] in reached}

    def satisfied(self, connection: object, uris: set[str]) -> list[tuple[str, int]]:
        """Return what the common index would find."""
        return [
            (uri, number)
            for number, triggering in load_triggering(connection).items()
            for uri in results(triggering, {uri: self.resources[uri] for uri in uris}, SCHEMA)
        ]

    @invariant()
    def store_equals_definition(self) -> None:
        with self.store.database.read() as connection:
            ends = connection.execute(
                select(rule_ends.c.name, rule_results.c.uri).where(rule_ends.c.rule == rule_results.c.rule)
            )
            assert {row._tuple() for row in ends} == self.members()
            expected = [len(uris) for uris in self.results_of_atomic_rules().values()]
            counts = connection.execute(
                select(func.count(rule_results.c.uri))
                .join_from(
                    atomic_rules, rule_results, atomic_rules.c.rule == rule_results.c.rule, isouter=True
                )
                .group_by(atomic_rules.c.rule)
            )
            assert sorted(counts.scalars()) == sorted(expected)
            joins = connection.execute(select(*join_rules.c)).all()
            expected_feeds = {(each.left_rule, each.grp, each.level, 1) for each in joins}
            expected_feeds |= {(each.right_rule, each.grp, each.level, 0) for each in joins}
            assert {row._tuple() for row in connection.execute(select(*rule_inputs.c))} == expected_feeds
            loaded = resource_rows.load_resources(connection, URIS)
        assert {uri: _comparable(resource) for uri, resource in loaded.items()} == {
            uri: _comparable(one) for uri, one in self.resources.items()
        }

    def results_of_atomic_rules(self) -> dict[object, frozenset[str]]:
        results_by_key: dict[object, frozenset[str]] = {}
        for ends in self.rules.values():
            for end in ends:
                for each in parts(end):
                    results_by_key[_key(each)] = results(each, self.resources, SCHEMA)
        return results_by_key


def _version(uri: str, was: Resource | None) -> st.SearchStrategy[Resource | None]:
    if was is None:
        return st.one_of(resources(uri), resources(uri), resources(uri), st.none())
    return st.one_of(changed(was), changed(was), changed(was), resources(uri), st.just(was), st.none())


def _key(rule: AtomicRule) -> object:
    """Return what identifies an atomic rule.

    Not the rule itself: `1`, `1.0` and `True` are equal in Python.
    """
    if isinstance(rule, JoinRule):
        return rule.condition, _key(rule.left), _key(rule.right)
    declared = SCHEMA.property_of(rule.cls, rule.property) if rule.property else None
    constant = None if rule.constant is None else resource_rows.to_comparable(rule.constant, declared)
    return rule.cls, rule.property, rule.operator, constant, rule.is_resource


def _comparable(resource: Resource | None) -> object:
    """Return a resource as the store compares it: 1 equals 1.0, instants have many spellings."""
    if resource is None:
        return None
    return resource.cls, {
        (name, place, resource_rows.to_comparable(value, SCHEMA.property_of(resource.cls, name)))
        for name, values in resource.values.items()
        for place, value in enumerate(values)
    }


def test_run_filter_random_history_equals_definition(new_url: Callable[[], str]) -> None:
    url = new_url()
    few = url.startswith("postgresql")
    run_state_machine_as_test(
        lambda: History(new_url()),
        settings=share(10 if few else 3, stateful_step_count=8 if few else 14),
    )
