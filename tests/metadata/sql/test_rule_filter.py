"""The filter on the paper's example, step by step, and cases that random histories miss."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

import pytest
from sqlalchemy import Connection, select

from tests.support.oracles.naive_filter import results
from tidings.errors import IdConflict, InputError
from tidings.metadata.resources import SUBJECT, Ref, Resource, Value
from tidings.metadata.rules.atomic import AtomicRule, JoinCondition, JoinRule, JoinSide, TriggeringRule
from tidings.metadata.rules.syntax import Operator
from tidings.metadata.schema.model import Class, Property, Reference, Schema
from tidings.metadata.sql import rule_base, rule_filter
from tidings.metadata.sql.rule_base import NamedRule, load_groups, load_triggering
from tidings.metadata.sql.rule_filter import FilterOutcome
from tidings.metadata.sql.tables import (
    RULE_TABLES,
    atomic_rules,
    join_rules,
    metadata_classes,
    rule_groups,
    run_delta,
)
from tidings.store.store import Store
from tidings.values import Kind

CYCLE, SERVER = "CycleProvider", "ServerInformation"


def _property(name: str, of: str, kind: Kind | None = None, **more: object) -> Property:
    return Property(name, f"http://example.org/{name}", of, kind, **more)


SCHEMA = Schema(
    {name: Class(name, f"http://example.org/{name}") for name in (CYCLE, SERVER)},
    {
        each.name: (each,)
        for each in (
            _property("serverHost", CYCLE, Kind.STRING),
            _property("serverPort", CYCLE, Kind.NUMBER),
            _property("serverInformation", CYCLE, leads_to=SERVER, reference=Reference.STRONG),
            _property("memory", SERVER, Kind.NUMBER),
            _property("cpu", SERVER, Kind.NUMBER),
        )
    },
)

MEMORY = TriggeringRule(SERVER, "memory", Operator.GREATER, 64)
CPU = TriggeringRule(SERVER, "cpu", Operator.GREATER, 500)
PASSAU = TriggeringRule(CYCLE, "serverHost", Operator.CONTAINS, "uni-passau.de")
SAME = JoinCondition(JoinSide(SERVER), Operator.EQUAL, JoinSide(SERVER), True)
OF_SERVER = JoinCondition(JoinSide(SERVER), Operator.EQUAL, JoinSide(CYCLE, "serverInformation"), False)
EXAMPLE = JoinRule(OF_SERVER, JoinRule(SAME, MEMORY, CPU), PASSAU)
"""The rule of section 3.3.1, in the parts of figure 7."""

HOST, INFO = "doc.rdf#host", "doc.rdf#info"


def host(info: str = INFO, uri: str = HOST, name: str = "pirates.uni-passau.de") -> Resource:
    return Resource(
        uri, CYCLE, {"serverHost": (name,), "serverPort": (5874,), "serverInformation": (Ref(info),)}
    )


def info(memory: Value = 92, uri: str = INFO) -> Resource:
    return Resource(uri, SERVER, {"memory": (memory,), "cpu": (600,)})


def named(name: str, *ends: AtomicRule) -> NamedRule:
    return NamedRule(name, "ana", "search ...", ends)


def add(store: Store, *rules: NamedRule) -> set[tuple[str, str]]:
    added = store.database.transact(lambda connection: rule_filter.add_rules(connection, SCHEMA, rules))
    return set(added.entered)


def run(connection: Connection, versions: Mapping[str, Resource | None]) -> FilterOutcome:
    present = {uri: version for uri, version in versions.items() if version is not None}
    satisfied = [
        (uri, number)
        for number, triggering in load_triggering(connection).items()
        for uri in results(triggering, present, SCHEMA)
    ]
    return rule_filter.run_filter(connection, SCHEMA, versions, satisfied)


def register(store: Store, *resources: Resource) -> FilterOutcome:
    return store.database.transact(lambda connection: run(connection, {each.uri: each for each in resources}))


def delete(store: Store, *uris: str) -> FilterOutcome:
    return store.database.transact(lambda connection: run(connection, dict.fromkeys(uris)))


def outcome(
    entered: Iterable[tuple[str, str]] = (),
    changed: Iterable[tuple[str, str]] = (),
    left: Iterable[tuple[str, str]] = (),
) -> FilterOutcome:
    return FilterOutcome(frozenset(entered), frozenset(changed), frozenset(left))


def test_add_rules_gives_tables_of_figure_7(store: Store) -> None:
    add(store, named("example", EXAMPLE))
    with store.database.read() as connection:
        assert load_triggering(connection) == {1: MEMORY, 2: CPU, 3: PASSAU}
        joins = connection.execute(select(*join_rules.c).order_by(join_rules.c.rule)).all()
        assert [tuple(row) for row in joins] == [(4, 1, 1, 2, 1), (5, 2, 4, 3, 2)]
        assert load_groups(connection) == {1: SAME, 2: OF_SERVER}


def test_run_filter_gives_iterations_of_figure_9(store: Store) -> None:
    add(store, named("example", EXAMPLE))

    def work(connection: Connection) -> list[tuple[int, str, int]]:
        run(connection, {HOST: host(), INFO: info()})
        rows = connection.execute(select(run_delta.c.level, run_delta.c.uri, run_delta.c.rule))
        return sorted(row._tuple() for row in rows)

    initial = [(0, HOST, 3), (0, INFO, 1), (0, INFO, 2)]
    assert store.database.transact(work) == [*initial, (1, INFO, 4), (2, HOST, 5)]


def test_run_filter_follows_reference_to_other_document(store: Store) -> None:
    far = "other.rdf#info"
    add(store, named("example", EXAMPLE))
    assert register(store, host(far)) == outcome()
    assert register(store, info(92, far)) == outcome(entered=[("example", HOST)])
    assert register(store, info(128, far)) == outcome(changed=[("example", HOST)])
    assert register(store, info(128, far)) == outcome()
    assert register(store, info(32, far)) == outcome(left=[("example", HOST)])
    assert register(store, info(65, far)) == outcome(entered=[("example", HOST)])
    assert delete(store, far) == outcome(left=[("example", HOST)])


def test_run_filter_follows_changed_reference(store: Store) -> None:
    add(store, named("example", EXAMPLE))
    poor, rich = "doc.rdf#poor", "doc.rdf#rich"
    assert register(store, info(1, poor), info(99, INFO), info(98, rich), host()).entered == {
        ("example", HOST)
    }
    assert register(store, host(poor)) == outcome(left=[("example", HOST)])
    assert register(store, host(rich)) == outcome(entered=[("example", HOST)])
    assert register(store, host(INFO)) == outcome(changed=[("example", HOST)])
    # No result refers to what changes here.
    assert register(store, info(97, rich)) == outcome()


def test_run_filter_changed_resource_and_target_in_one_run(store: Store) -> None:
    add(store, named("example", EXAMPLE))
    register(store, host(), info())
    moved = "doc.rdf#moved"
    both = {INFO: None, moved: info(70, moved), HOST: host(moved)}
    assert store.database.transact(lambda c: run(c, both)) == outcome(changed=[("example", HOST)])


def test_run_filter_alternatives_left_when_none_holds(store: Store) -> None:
    at_uni = TriggeringRule(CYCLE, "serverPort", Operator.EQUAL, 80)
    add(store, named("either", PASSAU, at_uni))
    assert register(store, host()) == outcome(entered=[("either", HOST)])
    elsewhere = replace(host(name="x.org"), values={"serverHost": ("x.org",), "serverPort": (80,)})
    assert register(store, elsewhere) == outcome(changed=[("either", HOST)])
    assert register(store, host(name="x.org")) == outcome(left=[("either", HOST)])


def test_add_rules_new_rule_has_stored_results(store: Store) -> None:
    register(store, host(), info(), host("doc.rdf#none", "doc.rdf#lonely"))
    one = TriggeringRule(CYCLE, SUBJECT, Operator.EQUAL, HOST, True)
    assert add(store, named("all", TriggeringRule(CYCLE)), named("one", one), named("example", EXAMPLE)) == {
        ("all", HOST),
        ("all", "doc.rdf#lonely"),
        ("one", HOST),
        ("example", HOST),
    }
    # Another name for a rule that is already materialized.
    assert add(store, named("again", EXAMPLE)) == {("again", HOST)}


def test_delete_rules_shared_atomic_rule_goes_with_last_rule(store: Store) -> None:
    register(store, host(), info())
    add(store, named("example", EXAMPLE), named("server", JoinRule(SAME, MEMORY, CPU)))
    add(store, named("example-2", EXAMPLE), named("host", PASSAU))

    def remove(*names: str) -> tuple[int, ...]:
        return store.database.transact(lambda c: rule_base.delete_rules(c, names)).atomic

    assert remove("example") == ()
    assert remove("example-2") == (5,)
    assert remove("host") == (3,)
    assert remove("server", "nobody") == (1, 2, 4)
    kept = {metadata_classes, rule_groups}
    with store.database.read() as connection:
        remaining = {
            table.name
            for table in RULE_TABLES
            if connection.execute(select(table).limit(1)).first() is not None
        }
    assert remaining == {table.name for table in kept} | {"metadata_resources", "metadata_atoms"}


def test_add_rules_constants_equal_in_python_stay_distinct(store: Store) -> None:
    flags = Schema(SCHEMA.classes, {"open": (_property("open", CYCLE, Kind.BOOLEAN),), **SCHEMA.properties})
    rules = [
        named(str(i), TriggeringRule(CYCLE, name, Operator.EQUAL, constant))
        for i, (name, constant) in enumerate([("open", True), ("open", 1), ("open", 1.0), ("open", "true")])
    ]
    store.database.transact(lambda connection: rule_filter.add_rules(connection, flags, rules))
    with store.database.read() as connection:
        constants = [each.constant for each in load_triggering(connection).values()]
    assert [repr(constant) for constant in constants] == ["True", "1", "'true'"]


def test_add_rules_existing_name_is_rejected(store: Store) -> None:
    add(store, named("example", EXAMPLE))
    with pytest.raises(IdConflict, match="a rule of this name already exists"):
        add(store, named("new", CPU), named("example", CPU))
    with pytest.raises(IdConflict):
        add(store, named("twin", CPU), named("twin", PASSAU))
    with store.database.read() as connection:
        assert len(connection.execute(select(atomic_rules.c.rule)).all()) == 5


def test_run_filter_failure_is_rolled_back(store: Store) -> None:
    add(store, named("example", EXAMPLE))

    def fails(connection: Connection) -> None:
        assert run(connection, {HOST: host(), INFO: info()}).entered
        raise RuntimeError("no")

    with pytest.raises(RuntimeError):
        store.database.transact(fails)
    assert register(store, host()) == outcome()
    assert register(store, info()) == outcome(entered=[("example", HOST)])


def test_run_filter_unstorable_text_is_rejected(store: Store) -> None:
    with pytest.raises(InputError, match="a character that no database keeps"):
        register(store, host(name="a\x00b"))
    with pytest.raises(InputError, match="a resource's URI"):
        register(store, info(uri="x" * 501))


def test_run_filter_distinguishes_long_values(store: Store) -> None:
    """The index has only their first characters, as PostgreSQL limits the size of its entries."""
    long, longer = "ö" * 5_000, "ö" * 5_001
    same = JoinCondition(JoinSide(CYCLE, "serverHost"), Operator.EQUAL, JoinSide(CYCLE, "serverHost"), True)
    one = TriggeringRule(CYCLE, "serverPort", Operator.EQUAL, 5874)
    other = TriggeringRule(CYCLE, SUBJECT, Operator.EQUAL, HOST, True)
    add(
        store,
        named("like", JoinRule(same, one, other)),
        named("long", replace(PASSAU, constant=long, operator=Operator.EQUAL)),
    )
    register(store, host(name=long), host(uri="a#a", name=long), host(uri="b#b", name=longer))
    with store.database.read() as connection:
        members = {
            (row.name, row.uri)
            for row in connection.execute(
                select(rule_filter.rule_ends.c.name, rule_filter.rule_results.c.uri).where(
                    rule_filter.rule_ends.c.rule == rule_filter.rule_results.c.rule
                )
            )
        }
    assert members == {(name, uri) for name in ("like", "long") for uri in (HOST, "a#a")}
