"""Triggers on both databases, the listener and Spark tell whom the definition tells: one history, five answers."""

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

from tests.objects.applying import Applying, References, Statements, Values
from tests.objects.cdc.test_object_changes import log_of
from tests.objects.databases import Database, Memory, Postgres
from tests.objects.declared import Program, declared
from tests.objects.engines import in_memory
from tests.objects.histories import Expected, History, as_expected, create_tables, outbox
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
"""In one run on Spark, because a run takes seconds whatever is in it."""


@pytest.fixture(scope="module")
def postgres(postgres_server: Server) -> Iterator[Postgres]:
    with psycopg.connect(postgres_server.url(), autocommit=True) as connection:
        yield Postgres(connection)


def told_of(all: Iterable[Expected]) -> set[tuple[str, str, str, tuple[str, ...]]]:
    """Who is told of which change of which object, and because of what."""
    return {
        (str(who), each.change.kind.value, str(each.change.object), tuple(why.render() for why in whys))
        for each in all
        for who, whys in find_reasons(
            each.change.object, each.propagation.steps, each.propagation.hits
        ).items()
    }


@dataclass(frozen=True)
class Everywhere:
    """The same change made in several ways, one after the other."""

    ways: tuple[Applying, ...]

    def insert(self, cls: str, one: Object, values: Values, references: References) -> None:
        for way in self.ways:
            way.insert(cls, one, values, references)

    def update(self, cls: str, one: Object, values: Values, references: References) -> None:
        for way in self.ways:
            way.update(cls, one, values, references)

    def delete(self, cls: str, one: Object, from_the_lowest: bool) -> None:
        for way in self.ways:
            way.delete(cls, one, from_the_lowest)

    def link(self, new: ObjectLink, instead_of: ObjectLink | None) -> None:
        for way in self.ways:
            way.link(new, instead_of)

    def unlink(self, old: ObjectLink) -> None:
        for way in self.ways:
            way.unlink(old)

    def watch(self, watch: Watch, cls: str) -> None:
        for way in self.ways:
            way.watch(watch, cls)


@dataclass
class Lived:
    """A history that is over: its log, and after how many entries of it what was expected."""

    placed: MappedModel
    log: list[tuple[str, str, Any, Any]] = field(default_factory=list)
    expected: list[tuple[int, list[Expected]]] = field(default_factory=list)


def logging(table: str, columns: list[str]) -> Iterator[str]:
    """Triggers that write each change of a row down. Before deletions: what goes with a row goes after it."""
    rows = {
        row: "json_object("
        + ", ".join(f"{quote_literal(name)}, {row}.{quote_name(name)}" for name in columns)
        + ")"
        for row in ("OLD", "NEW")
    }
    for op, moment, old, new in (
        ("c", "AFTER INSERT", "NULL", rows["NEW"]),
        ("u", "AFTER UPDATE", rows["OLD"], rows["NEW"]),
        ("d", "BEFORE DELETE", rows["OLD"], "NULL"),
    ):
        said = f"INSERT INTO log VALUES ({quote_literal(table)}, {quote_literal(op)}, {old}, {new});"
        yield f"CREATE TRIGGER {quote_name(f'log {op} {table}')} {moment} ON {quote_name(table)} BEGIN {said} END"


def logged(placed: MappedModel, key_type: str) -> Memory:
    """A database that keeps a log."""
    database = Memory()
    watches = "CREATE TABLE tidings_watches (subscriber_class, subscriber_key, class, key)"
    for sql in ('CREATE TABLE log ("table", op, before, after)', watches, *create_tables(placed, key_type)):
        database.run(sql)
    for (table,) in database.run("SELECT name FROM sqlite_master WHERE type = 'table' AND name <> 'log'"):
        columns = [
            name for (name,) in database.run(f"SELECT name FROM pragma_table_info({quote_literal(table)})")
        ]
        for sql in logging(table, columns):
            database.run(sql)
    return database


def with_triggers(database: Database, placed: MappedModel, key_type: str, limits: Limits) -> Database:
    for sql in create_tables(placed, key_type):
        database.run(sql)
    database.install(placed, limits)
    return database


def live(draw: st.DrawFn, limits: Limits, server: Postgres) -> Lived:
    """A random history over a random model. After each step, both databases and the listener have told the same."""
    model, numbered = draw(MODELS), draw(st.booleans())
    below = [name for name, cls in model.classes.items() if cls.parents]
    base, classes = declared(
        model, Integer if numbered else String, draw(st.sets(st.sampled_from(below))) if below else ()
    )
    placed, key = read_sqlalchemy(base), int if numbered else str
    keys: list[Any] = list(range(1, 100)) if numbered else [f"k'{number}" for number in range(1, 100)]
    key_type = "INTEGER" if numbered else "TEXT"
    log = logged(placed, key_type)
    triggers = [with_triggers(each, placed, key_type, limits) for each in (Memory(), server.emptied())]
    engine, heard = in_memory(), list[ObjectChange]()
    base.metadata.create_all(engine)
    with Session(engine, autoflush=False) as session:
        program = Program(session, classes, model, draw)
        notice(session, base, tell=heard.extend, watches=program.watches, limits=limits)
        ways = *(Statements(placed, each) for each in (log, *triggers)), program
        history, done = History(placed, Everywhere(ways), keys, limits), Lived(placed)
        for _ in range(draw(st.integers(8, 24))):
            history.step(draw)
            session.commit()
            expected = told_of(history.expected)
            assert [told_of(outbox(each, key)) for each in triggers] == [expected] * 2
            assert told_of(as_expected(heard, key)) == expected
            heard.clear()
            done.expected.append((log.run("SELECT count(*) FROM log")[0][0], history.expected))
    for table, op, *rows in log.run("SELECT * FROM log ORDER BY rowid"):
        done.log.append((table, op, *(row and json.loads(row) for row in rows)))
    return done


def called(placed: MappedModel, prefix: str) -> MappedModel:
    """The same model with other names for classes and tables."""
    model = placed.model
    classes = {
        f"{prefix}{name}": replace(
            cls, name=f"{prefix}{name}", parents=tuple(prefix + each for each in cls.parents)
        )
        for name, cls in model.classes.items()
    }
    associations = tuple(
        replace(each, source=prefix + each.source, target=prefix + each.target) for each in model.associations
    )
    tables = {prefix + name: _moved(table, prefix) for name, table in placed.tables.items()}
    links = {
        (prefix + source, name): replace(link, name=prefix + link.name)
        if isinstance(link, LinkTable)
        else replace(link, table=prefix + link.table)
        for (source, name), link in placed.links.items()
    }
    return MappedModel(Model(classes, associations), tables, links)


def _moved(table: ClassTable, prefix: str) -> ClassTable:
    kept = table.discriminator
    if kept is not None and kept.table is not None:
        kept = replace(kept, table=prefix + kept.table)
    return replace(table, name=prefix + table.name, discriminator=kept)


def together(all: list[MappedModel]) -> MappedModel:
    classes = {name: cls for each in all for name, cls in each.model.classes.items()}
    associations = tuple(one for each in all for one in each.model.associations)
    tables = {name: table for each in all for name, table in each.tables.items()}
    links = {name: link for each in all for name, link in each.links.items()}
    return MappedModel(Model(classes, associations), tables, links)


def entry(prefix: str, table: str, op: str, before: Any, after: Any) -> tuple[str, str, Any, Any]:
    if table != "tidings_watches":
        return prefix + table, op, before, after
    named = {name: prefix + after[name] for name in ("subscriber_class", "class")}
    return table, op, None, {**after, **named}


def as_there(prefix: str, each: Expected) -> tuple[Change, str, PropagationResult]:
    """What is expected, with the names and texts that it has on Spark."""

    def one(of: Object) -> Object:
        return Object(prefix + of.family, str(of.key))

    steps = (replace(step, origin=one(step.origin), to=one(step.to)) for step in each.propagation.steps)
    hits = (
        replace(
            hit,
            subscriber=one(hit.subscriber),
            object=one(hit.object),
            by=prefix + hit.by if hit.how is HitKind.CLASS else hit.by,
        )
        for hit in each.propagation.hits
    )
    found = replace(
        each.propagation,
        reached=frozenset(map(one, each.propagation.reached)),
        steps=frozenset(steps),
        hits=frozenset(hits),
    )
    return replace(each.change, object=one(each.change.object)), prefix + each.cls, found


@settings(
    max_examples=max(1, settings.default.max_examples // 60),
    phases=[Phase.explicit, Phase.reuse, Phase.generate],  # making a failure smaller would be a hundred runs
    suppress_health_check=list(HealthCheck),
)
@given(st.sampled_from([UNLIMITED, Limits(1, 2), Limits(2), Limits(subscribers=1), Limits(0)]), st.data())
def test_all_tell_whom_the_definition_tells(session, postgres, limits, data):
    histories = {f"h{number}": live(data.draw, limits, postgres) for number in range(HISTORIES)}
    placed = together([called(each.placed, prefix) for prefix, each in histories.items()])
    log = [entry(prefix, *row) for prefix, each in histories.items() for row in each.log]
    result = derive_object_changes(session, placed, log_of(session, log), ["id"], limits=limits)
    found: dict[int, list[Any]] = {}
    for each in result.noticed(telling=False):
        found.setdefault(int(each.id.split()[0]), []).append((each.change, each.cls, each.propagation))
    assert result.rejects.isEmpty()
    first = 0
    for prefix, each in histories.items():
        after = 0
        for last, expected in each.expected:
            got = [one for pos in range(first + after + 1, first + last + 1) for one in found.pop(pos, [])]
            there = [as_there(prefix, one) for one in expected]
            assert told_of(Expected(*one) for one in got) == told_of(Expected(*one) for one in there)
            assert sorted(got, key=repr) == sorted(there, key=repr)
            after = last
        first += len(each.log)
    assert not found
