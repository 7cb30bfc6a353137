"""Triggers on both databases, the listener and Spark give the results of the definition."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from sqlalchemy import Integer, String
from sqlalchemy.orm import Session

from tests.objects.cdc.test_object_changes import log_of
from tests.objects.change_targets import ChangeTarget, References, Statements, Values
from tests.objects.databases import Database, Memory, Postgres
from tests.objects.declarative_models import Program, declare_model
from tests.objects.engines import in_memory
from tests.objects.histories import Expected, History, create_tables, take_outbox, to_expected
from tests.objects.test_triggers import MODELS
from tests.support.servers.postgres import Server
from tidings import notice
from tidings.objects.cdc.object_changes import derive_object_changes
from tidings.objects.model.class_model import Model
from tidings.objects.model.relational_view import quote_literal, quote_name
from tidings.objects.model.table_mapping import ClassTable, LinkTable, MappedModel
from tidings.objects.notices import ObjectChange
from tidings.objects.propagation import (
    UNLIMITED,
    Change,
    HitKind,
    Limits,
    Object,
    ObjectLink,
    PropagationResult,
    Watch,
    find_reasons,
)
from tidings.objects.readers.sqlalchemy_reader import read_sqlalchemy

pytestmark = pytest.mark.spark

HISTORIES = 6
"""Histories in one run on Spark, because each run takes seconds."""


@pytest.fixture(scope="module")
def postgres(postgres_server: Server) -> Iterator[Postgres]:
    with psycopg.connect(postgres_server.url(), autocommit=True) as connection:
        yield Postgres(connection)


def described(changes: Iterable[Expected]) -> set[tuple[str, str, str, tuple[str, ...]]]:
    """Describe which subscriber is notified of which change of which object, with the reasons."""
    return {
        (
            str(subscriber),
            each.change.kind.value,
            str(each.change.object),
            tuple(reason.render() for reason in reasons),
        )
        for each in changes
        for subscriber, reasons in find_reasons(
            each.change.object, each.propagation.steps, each.propagation.hits
        ).items()
    }


@dataclass(frozen=True)
class ChangeTargets:
    """Applies each change to several targets, one after the other."""

    targets: tuple[ChangeTarget, ...]

    def insert(self, cls: str, instance: Object, values: Values, references: References) -> None:
        for target in self.targets:
            target.insert(cls, instance, values, references)

    def update(self, cls: str, instance: Object, values: Values, references: References) -> None:
        for target in self.targets:
            target.update(cls, instance, values, references)

    def delete(self, cls: str, instance: Object, lowest_first: bool) -> None:
        for target in self.targets:
            target.delete(cls, instance, lowest_first)

    def link(self, new: ObjectLink, replaced: ObjectLink | None) -> None:
        for target in self.targets:
            target.link(new, replaced)

    def unlink(self, old: ObjectLink) -> None:
        for target in self.targets:
            target.unlink(old)

    def watch(self, watch: Watch, cls: str) -> None:
        for target in self.targets:
            target.watch(watch, cls)


@dataclass
class FinishedHistory:
    """A finished history: its log, and the expected changes by number of log entries."""

    mapped: MappedModel
    log: list[tuple[str, str, Any, Any]] = field(default_factory=list)
    expected: list[tuple[int, list[Expected]]] = field(default_factory=list)


def logging_triggers(table: str, columns: list[str]) -> Iterator[str]:
    """Generate triggers that log each change of a row.

    Deletions are logged before they happen, so that dependent rows follow.
    """
    rows = {
        row: "json_object("
        + ", ".join(f"{quote_literal(name)}, {row}.{quote_name(name)}" for name in columns)
        + ")"
        for row in ("OLD", "NEW")
    }
    for op, timing, old, new in (
        ("c", "AFTER INSERT", "NULL", rows["NEW"]),
        ("u", "AFTER UPDATE", rows["OLD"], rows["NEW"]),
        ("d", "BEFORE DELETE", rows["OLD"], "NULL"),
    ):
        statement = f"INSERT INTO log VALUES ({quote_literal(table)}, {quote_literal(op)}, {old}, {new});"
        yield f"CREATE TRIGGER {quote_name(f'log {op} {table}')} {timing} ON {quote_name(table)} BEGIN {statement} END"


def create_logging_database(mapped: MappedModel, key_type: str) -> Memory:
    """Create a database that keeps a log."""
    database = Memory()
    watches = "CREATE TABLE tidings_watches (subscriber_class, subscriber_key, class, key)"
    for sql in ('CREATE TABLE log ("table", op, before, after)', watches, *create_tables(mapped, key_type)):
        database.run(sql)
    for (table,) in database.run("SELECT name FROM sqlite_master WHERE type = 'table' AND name <> 'log'"):
        columns = [
            name for (name,) in database.run(f"SELECT name FROM pragma_table_info({quote_literal(table)})")
        ]
        for sql in logging_triggers(table, columns):
            database.run(sql)
    return database


def create_triggers(database: Database, mapped: MappedModel, key_type: str, limits: Limits) -> Database:
    for sql in create_tables(mapped, key_type):
        database.run(sql)
    database.install(mapped, limits)
    return database


def run_history(draw: st.DrawFn, limits: Limits, server: Postgres) -> FinishedHistory:
    """Run a random history over a random model.

    After each step, both databases and the listener agree with the definition.
    """
    model, numbered = draw(MODELS), draw(st.booleans())
    subclasses = [name for name, cls in model.classes.items() if cls.parents]
    base, classes = declare_model(
        model,
        Integer if numbered else String,
        draw(st.sets(st.sampled_from(subclasses))) if subclasses else (),
    )
    mapped, key = read_sqlalchemy(base), int if numbered else str
    keys: list[Any] = list(range(1, 100)) if numbered else [f"k'{number}" for number in range(1, 100)]
    key_type = "INTEGER" if numbered else "TEXT"
    log = create_logging_database(mapped, key_type)
    triggers = [
        create_triggers(each, mapped, key_type, limits) for each in (Memory(), server.recreate_schema())
    ]
    engine, events = in_memory(), list[ObjectChange]()
    base.metadata.create_all(engine)
    with Session(engine, autoflush=False) as session:
        program = Program(session, classes, model, draw)
        notice(session, base, report=events.extend, watches=program.watches, limits=limits)
        targets = *(Statements(mapped, each) for each in (log, *triggers)), program
        history, finished = History(mapped, ChangeTargets(targets), keys, limits), FinishedHistory(mapped)
        for _ in range(draw(st.integers(8, 24))):
            history.step(draw)
            session.commit()
            expected = described(history.expected)
            assert [described(take_outbox(each, key)) for each in triggers] == [expected] * 2
            assert described(to_expected(events, key)) == expected
            events.clear()
            finished.expected.append((log.run("SELECT count(*) FROM log")[0][0], history.expected))
    for table, op, *rows in log.run("SELECT * FROM log ORDER BY rowid"):
        finished.log.append((table, op, *(row and json.loads(row) for row in rows)))
    return finished


def with_prefix(mapped: MappedModel, prefix: str) -> MappedModel:
    """Return the same model with prefixed names of classes and tables."""
    model = mapped.model
    classes = {
        f"{prefix}{name}": replace(
            cls, name=f"{prefix}{name}", parents=tuple(prefix + each for each in cls.parents)
        )
        for name, cls in model.classes.items()
    }
    associations = tuple(
        replace(each, source=prefix + each.source, target=prefix + each.target) for each in model.associations
    )
    tables = {prefix + name: _moved(table, prefix) for name, table in mapped.tables.items()}
    links = {
        (prefix + source, name): replace(link, name=prefix + link.name)
        if isinstance(link, LinkTable)
        else replace(link, table=prefix + link.table)
        for (source, name), link in mapped.links.items()
    }
    return MappedModel(Model(classes, associations), tables, links)


def _moved(table: ClassTable, prefix: str) -> ClassTable:
    discriminator = table.discriminator
    if discriminator is not None and discriminator.table is not None:
        discriminator = replace(discriminator, table=prefix + discriminator.table)
    return replace(table, name=prefix + table.name, discriminator=discriminator)


def merge_models(parts: list[MappedModel]) -> MappedModel:
    classes = {name: cls for each in parts for name, cls in each.model.classes.items()}
    associations = tuple(instance for each in parts for instance in each.model.associations)
    tables = {name: table for each in parts for name, table in each.tables.items()}
    links = {name: link for each in parts for name, link in each.links.items()}
    return MappedModel(Model(classes, associations), tables, links)


def entry(prefix: str, table: str, op: str, before: Any, after: Any) -> tuple[str, str, Any, Any]:
    if table != "tidings_watches":
        return prefix + table, op, before, after
    named = {name: prefix + after[name] for name in ("subscriber_class", "class")}
    return table, op, None, {**after, **named}


def expected_on_spark(prefix: str, each: Expected) -> tuple[Change, str, PropagationResult]:
    """Return an expected change with its names and texts on Spark."""

    def convert(of: Object) -> Object:
        return Object(prefix + of.family, str(of.key))

    steps = (
        replace(step, origin=convert(step.origin), to=convert(step.to)) for step in each.propagation.steps
    )
    hits = (
        replace(
            hit,
            subscriber=convert(hit.subscriber),
            object=convert(hit.object),
            by=prefix + hit.by if hit.how is HitKind.CLASS else hit.by,
        )
        for hit in each.propagation.hits
    )
    propagation = replace(
        each.propagation,
        reached=frozenset(map(convert, each.propagation.reached)),
        steps=frozenset(steps),
        hits=frozenset(hits),
    )
    return replace(each.change, object=convert(each.change.object)), prefix + each.cls, propagation


@settings(
    max_examples=max(1, settings.default.max_examples // 60),
    phases=[Phase.explicit, Phase.reuse, Phase.generate],  # shrinking a failure would need a hundred runs
    suppress_health_check=list(HealthCheck),
)
@given(st.sampled_from([UNLIMITED, Limits(1, 2), Limits(2), Limits(subscribers=1), Limits(0)]), st.data())
def test_all_implementations_agree_with_definition(session, postgres, limits, data):
    histories = {f"h{number}": run_history(data.draw, limits, postgres) for number in range(HISTORIES)}
    mapped = merge_models([with_prefix(each.mapped, prefix) for prefix, each in histories.items()])
    log = [entry(prefix, *row) for prefix, each in histories.items() for row in each.log]
    result = derive_object_changes(session, mapped, log_of(session, log), ["id"], limits=limits)
    changes_by_position: dict[int, list[Any]] = {}
    for each in result.iter_changes(notified_only=False):
        changes_by_position.setdefault(int(each.id.split()[0]), []).append(
            (each.change, each.cls, each.propagation)
        )
    assert result.rejects.isEmpty()
    first = 0
    for prefix, each in histories.items():
        after = 0
        for last, expected in each.expected:
            actual = [
                change
                for pos in range(first + after + 1, first + last + 1)
                for change in changes_by_position.pop(pos, [])
            ]
            expected_changes = [expected_on_spark(prefix, change) for change in expected]
            assert described(Expected(*change) for change in actual) == described(
                Expected(*change) for change in expected_changes
            )
            assert sorted(actual, key=repr) == sorted(expected_changes, key=repr)
            after = last
        first += len(each.log)
    assert not changes_by_position
