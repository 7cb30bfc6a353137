"""Whom a log of row changes concerns, on Spark: what the definition says, for whole histories at once."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.generated_models import as_plantuml
from tests.objects.applying import Statements
from tests.objects.databases import Memory
from tests.objects.histories import Expected, History, create_tables
from tests.objects.test_triggers import MODELS
from tests.objects.university import PLACED
from tidings.objects.definition import UNLIMITED, Change, Graph, Limits, Told, told
from tidings.objects.model import Attribute, Class, Model
from tidings.objects.placing import ClassTable, Discriminator, LinkTable, Placed
from tidings.objects.plantuml import read_plantuml
from tidings.objects.reasons import How, Object
from tidings.objects.triggers.words import quoted, text
from tidings.spark.objects.following import object_changes
from tidings.spark.objects.reading import ORDER, read_log

pytestmark = pytest.mark.spark

LOG = "table string, op string, before map<string,string>, after map<string,string>, id long"


def texts(row: dict[str, Any] | None) -> dict[str, str | None] | None:
    return (
        None if row is None else {name: value if value is None else str(value) for name, value in row.items()}
    )


def log_of(session, changes):
    """A table of changes in the order given: table, op, before, after."""
    rows = [(table, op, texts(old), texts(new), pos) for pos, (table, op, old, new) in enumerate(changes, 1)]
    return session.createDataFrame(rows, LOG)


UNIVERSITY = [
    *(("student", "r", None, {"id": id, "name": f"S{id}"}) for id in (1, 2, 3)),
    ("course", "r", None, {"id": 1, "title": "ProgrammingBasics", "room": "A1", "lecturer_id": None}),
    ("course", "r", None, {"id": 2, "title": "DataStructures", "room": "A2", "lecturer_id": None}),
    *(("learning_material", "r", None, {"id": id, "title": f"Script{id}"}) for id in (1, 2)),
    *(("attends", "r", None, {"student_id": who, "course_id": what}) for who, what in ((2, 1), (3, 2))),
    *(
        ("used_in", "r", None, {"learning_material_id": script, "course_id": course})
        for script, course in ((1, 1), (2, 1), (2, 2))
    ),
    (
        "tidings_watches",
        "r",
        None,
        {"subscriber_class": "Student", "subscriber_key": 1, "class": "Course", "key": 1},
    ),
    (
        "tidings_watches",
        "r",
        None,
        {"subscriber_class": "Student", "subscriber_key": 2, "class": "Course", "key": None},
    ),
]
"""Figure 2 of the paper, as its text tells it."""


def test_the_paper_s_university(session):
    edition = {"id": 2, "title": "Script2, second edition"}
    changes = [*UNIVERSITY, ("learning_material", "u", {"id": 2, "title": "Script2"}, edition)]
    result = object_changes(session, PLACED, log_of(session, changes), ["id"])
    (noticed,) = result.noticed()
    assert (noticed.id, noticed.cls) == ("15 update LearningMaterial:2", "LearningMaterial")
    assert (noticed.before, noticed.after) == ({"title": "Script2"}, {"title": "Script2, second edition"})
    rows = result.notices("university").collect()
    assert {row.subscriber: [each.reason for each in row.because] for row in rows} == {
        "Student:1": ["Script2, second edition -usedIn-> ProgrammingBasics (you watch it)"],
        "Student:2": [
            "Script2, second edition -usedIn-> ProgrammingBasics (you watch Course)",
            "Script2, second edition -usedIn-> ProgrammingBasics <-attends- you",
            "Script2, second edition -usedIn-> DataStructures (you watch Course)",
        ],
        "Student:3": ["Script2, second edition -usedIn-> DataStructures <-attends- you"],
    }
    assert result.told.count() == 3
    assert result.rejects.isEmpty()


@dataclass
class Limited(History):
    """A history whose changes are followed within limits."""

    limits: Limits = UNLIMITED

    def happens(self, change: Change, graph: Graph) -> None:
        found = told(graph, self.watches, change, self.limits)
        self.expected.append(Expected(change, graph.classes[change.object], found))


@dataclass
class Lived:
    """A history that is over: its log, and after how many entries of it what was expected."""

    placed: Placed
    log: list[tuple[str, str, Any, Any]] = field(default_factory=list)
    expected: list[tuple[int, list[Expected]]] = field(default_factory=list)


def logging(table: str, columns: list[str]) -> Iterator[str]:
    """Triggers that write each change of a row down. Before deletions: what goes with a row goes after it."""
    rows = {
        row: "json_object(" + ", ".join(f"{text(name)}, {row}.{quoted(name)}" for name in columns) + ")"
        for row in ("OLD", "NEW")
    }
    for op, moment, old, new in (
        ("c", "AFTER INSERT", "NULL", rows["NEW"]),
        ("u", "AFTER UPDATE", rows["OLD"], rows["NEW"]),
        ("d", "BEFORE DELETE", rows["OLD"], "NULL"),
    ):
        said = f"INSERT INTO log VALUES ({text(table)}, {text(op)}, {old}, {new});"
        yield f"CREATE TRIGGER {quoted(f'log {op} {table}')} {moment} ON {quoted(table)} BEGIN {said} END"


def logged(placed: Placed, key_type: str) -> Memory:
    """A database that keeps a log."""
    database = Memory()
    watches = "CREATE TABLE tidings_watches (subscriber_class, subscriber_key, class, key)"
    for sql in ('CREATE TABLE log ("table", op, before, after)', watches, *create_tables(placed, key_type)):
        database.run(sql)
    for (table,) in database.run("SELECT name FROM sqlite_master WHERE type = 'table' AND name <> 'log'"):
        columns = [name for (name,) in database.run(f"SELECT name FROM pragma_table_info({text(table)})")]
        for sql in logging(table, columns):
            database.run(sql)
    return database


@st.composite
def lives(draw: st.DrawFn, limits: Limits) -> Lived:
    placed, numbered = read_plantuml(as_plantuml(draw(MODELS))), draw(st.booleans())
    database = logged(placed, "INTEGER" if numbered else "TEXT")
    keys: list[Any] = list(range(1, 100)) if numbered else [f"k'{number}" for number in range(1, 100)]
    history = Limited(placed, Statements(placed, database), keys, limits=limits)
    done = Lived(placed)
    for _ in range(draw(st.integers(8, 24))):
        history.step(draw)
        done.expected.append((database.run("SELECT count(*) FROM log")[0][0], history.expected))
    for table, op, *rows in database.run("SELECT * FROM log ORDER BY rowid"):
        done.log.append((table, op, *(row and json.loads(row) for row in rows)))
    return done


@st.composite
def several(draw: st.DrawFn) -> tuple[Limits, list[Lived]]:
    """In one run, because a run takes seconds whatever is in it."""
    limits = draw(st.sampled_from([UNLIMITED, Limits(1, 2), Limits(2), Limits(told=1), Limits(0)]))
    return limits, draw(st.lists(lives(limits), min_size=HISTORIES, max_size=HISTORIES))


HISTORIES = 10


def called(placed: Placed, prefix: str) -> Placed:
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
    tables = {
        prefix + name: replace(table, name=prefix + table.name) for name, table in placed.tables.items()
    }
    links = {
        (prefix + source, name): replace(link, name=prefix + link.name)
        if isinstance(link, LinkTable)
        else replace(link, table=prefix + link.table)
        for (source, name), link in placed.links.items()
    }
    return Placed(Model(classes, associations), tables, links)


def together(all: list[Placed]) -> Placed:
    classes = {name: cls for each in all for name, cls in each.model.classes.items()}
    associations = tuple(one for each in all for one in each.model.associations)
    tables = {name: table for each in all for name, table in each.tables.items()}
    links = {name: link for each in all for name, link in each.links.items()}
    return Placed(Model(classes, associations), tables, links)


def entry(prefix: str, table: str, op: str, before: Any, after: Any) -> tuple[str, str, Any, Any]:
    if table != "tidings_watches":
        return prefix + table, op, before, after
    named = {name: prefix + after[name] for name in ("subscriber_class", "class")}
    return table, op, None, {**after, **named}


def as_there(prefix: str, each: Expected) -> tuple[Change, str, Told]:
    """What is expected, with the names and texts that it has on Spark."""

    def one(of: Object) -> Object:
        return Object(prefix + of.family, str(of.key))

    steps = (replace(step, origin=one(step.origin), to=one(step.to)) for step in each.told.steps)
    hits = (
        replace(
            hit,
            subscriber=one(hit.subscriber),
            object=one(hit.object),
            by=prefix + hit.by if hit.how is How.CLASS else hit.by,
        )
        for hit in each.told.hits
    )
    found = replace(
        each.told,
        reached=frozenset(map(one, each.told.reached)),
        steps=frozenset(steps),
        hits=frozenset(hits),
    )
    return replace(each.change, object=one(each.change.object)), prefix + each.cls, found


@settings(
    max_examples=max(2, settings.default.max_examples // 60),
    phases=[Phase.explicit, Phase.reuse, Phase.generate],  # making a failure smaller would be a hundred runs
    suppress_health_check=list(HealthCheck),
)
@given(several())
def test_spark_tells_whom_the_definition_tells(session, drawn):
    limits, all = drawn
    histories = {f"h{number}": each for number, each in enumerate(all)}
    placed = together([called(each.placed, prefix) for prefix, each in histories.items()])
    log = [entry(prefix, *row) for prefix, each in histories.items() for row in each.log]
    result = object_changes(session, placed, log_of(session, log), ["id"], limits=limits)
    found: dict[int, list[Any]] = {}
    for each in result.noticed(telling=False):
        found.setdefault(int(each.id.split()[0]), []).append((each.change, each.cls, each.told))
    assert result.rejects.isEmpty()
    first = 0
    for prefix, each in histories.items():
        after = 0
        for last, expected in each.expected:
            got = [one for pos in range(first + after + 1, first + last + 1) for one in found.pop(pos, [])]
            assert sorted(got, key=repr) == sorted((as_there(prefix, one) for one in expected), key=repr)
            after = last
        first += len(each.log)
    assert not found


ONE_TABLE = Placed(
    Model(
        {
            "Course": Class("Course", (Attribute("title"),), subscriber=True),
            "Seminar": Class("Seminar", (Attribute("topic"),), ("Course",)),
            "Lecture": Class("Lecture", (Attribute("topic"),), ("Course",)),
        }
    ),
    {
        "Course": ClassTable("course", "id", {"title": "title"}, None, Discriminator("type", "c")),
        "Seminar": ClassTable("course", "id", {"topic": "topic"}, None, Discriminator("type", "s")),
        "Lecture": ClassTable("course", "id", {"topic": "about"}, None, Discriminator("type", "l")),
    },
    {},
)


def test_several_classes_in_one_table(session):
    """A seminar says in a column that it is one, and may become one. An object that gets another key is updated."""

    def course(id: int, type: str, title: str, topic: str | None = None, about: str | None = None):
        return {"id": id, "type": type, "title": title, "topic": topic, "about": about}

    changes = [
        ("course", "c", None, course(2, "s", "Sets", topic="infinity")),
        ("course", "u", course(2, "s", "Sets", "infinity"), course(2, "s", "Sets", "choice")),
        ("course", "u", course(1, "c", "Logic"), course(1, "l", "Logic", about="truth")),
        ("course", "u", course(2, "s", "Sets", "choice"), course(3, "s", "Sets", "choice")),
        ("course", "u", None, course(3, "s", "Sets II", "choice")),
        ("course", "d", {"id": 1}, None),
        ("course", "d", {"id": 7}, None),
    ]
    base = {
        "course": session.createDataFrame([course(1, "c", "Logic"), course(4, "s", "Art")], COURSE),
        "tidings_watches": session.createDataFrame(
            [("Course", 9, "Seminar", None), ("Course", 8, "Course", None), ("Curse", 8, "Course", None)],
            WATCHES,
        ),
    }
    result = object_changes(session, ONE_TABLE, log_of(session, changes), ["id"], base)
    rows = result.told.orderBy("change", "subscriber_key").collect()
    assert [(row.id, row["class"], row.before, row.after, row.subscriber_key) for row in rows] == [
        ("1 insert Course:2", "Seminar", None, {"title": "Sets", "topic": "infinity"}, "8"),
        ("1 insert Course:2", "Seminar", None, {"title": "Sets", "topic": "infinity"}, "9"),
        ("2 update Course:2", "Seminar", {"topic": "infinity"}, {"topic": "choice"}, "8"),
        ("2 update Course:2", "Seminar", {"topic": "infinity"}, {"topic": "choice"}, "9"),
        ("3 update Course:1", "Lecture", {"topic": None}, {"topic": "truth"}, "8"),
        ("5 update Course:3", "Seminar", {"title": "Sets"}, {"title": "Sets II"}, "8"),
        ("5 update Course:3", "Seminar", {"title": "Sets"}, {"title": "Sets II"}, "9"),
        ("6 delete Course:1", "Lecture", {"title": "Logic", "topic": "truth"}, None, "8"),
        ("7 delete Course:7", "Course", {"title": None, "topic": None}, None, "8"),
    ]
    (refused,) = result.rejects.collect()
    assert (refused.id, refused.table) == ("Curse:8", "tidings_watches")


COURSE = "id int, type string, title string, topic string, about string"
WATCHES = "subscriber_class string, subscriber_key int, class string, key int"


def as_lines(changes, wrapped=False, **source):
    """Envelopes, a line each."""
    for number, (table, op, before, after) in enumerate(changes):
        said = {"table": table, **{name: value + number for name, value in source.items()}}
        payload = {"op": op, "source": said, "before": before, "after": after}
        yield json.dumps({"schema": {"type": "struct"}, "payload": payload} if wrapped else payload)


def why(result) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for row in result.notices("university").collect():
        found.setdefault(row.subscriber, []).extend(each.reason for each in row.because)
    return {who: sorted(reasons) for who, reasons in found.items()}


def test_a_folder_of_envelopes_beside_tables_as_they_were(session, tmp_path):
    """A file for each table, as topics have it: the log's own positions put them in order. What was delivered twice
    counts once, what cannot be used is told with its place, and what goes with a course is no news of its own."""
    room = {"id": 2, "title": "DataStructures", "room": "A2", "lecturer_id": None}
    courses = [
        ("course", "u", room, {**room, "room": "B1"}),
        ("course", "d", {"id": 2}, None),  # a log that has keys only: what the row was is known
    ]
    (tmp_path / "b.jsonl").write_text("\n".join(as_lines(courses, wrapped=True, lsn=30)))
    goes = [("attends", "d", {"student_id": 3, "course_id": 2}, None)]
    moves = [
        ("attends", "c", None, {"student_id": 1, "course_id": 2}),
        ("used_in", "d", {"learning_material_id": 2, "course_id": 1}, None),
    ]
    twice = list(as_lines(moves, lsn=10))
    broken = [
        "{",
        '{"op": "t", "source": {"table": "attends"}}',
        '{"op": "u", "source": {"table": "course"}, "after": {"id": 9}}',
    ]
    lines = [
        *as_lines(goes, lsn=40),
        *twice,
        *twice,
        *broken,
        "null",
        '{"op": "c", "source": {"table": "other"}}',
    ]
    (tmp_path / "a.jsonl").write_text("\n".join(lines))
    base = {
        table: session.createDataFrame([row for name, _, _, row in UNIVERSITY if name == table], schema)
        for table, schema in {
            "student": "id int, name string",
            "course": "id int, title string, room string, lecturer_id int",
            "attends": "student_id int, course_id int",
            "used_in": "learning_material_id int, course_id int",
        }.items()
    }
    log = read_log(session, tmp_path)
    result = object_changes(session, PLACED, log.changes, ORDER, base).refusing(log.rejects)
    assert [row.id for row in result.changes.orderBy("change").collect()] == [
        "00000000000000000011 unlink Course:1 usedIn LearningMaterial:2",
        "00000000000000000030 update Course:2",
        "00000000000000000031 delete Course:2",
    ]
    assert why(result) == {
        "Student:1": ["DataStructures <-attends- you", "DataStructures <-attends- you"],
        "Student:2": ["ProgrammingBasics <-attends- you"],
        "Student:3": ["DataStructures <-attends- you", "DataStructures <-attends- you"],
    }
    assert {row.id: re.split("[:;]", row.reason)[0] for row in result.rejects.collect()} == {
        "a.jsonl:6": "expected a key (column 2)",
        "a.jsonl:7": "a truncated table does not say which rows are gone",
        "a.jsonl:8": "what the row was is missing, and nothing before says it",
    }
