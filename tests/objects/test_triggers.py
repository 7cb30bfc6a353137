"""Triggers generated from random models tell whom the definition tells, whatever happens to the objects."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import String

from tests.objects.applying import Statements
from tests.objects.databases import Database, Memory, Postgres
from tests.objects.declared import declared
from tests.objects.histories import Expected, History, create_tables, outbox
from tests.objects.university import PLACED as UNIVERSITY
from tests.objects.university import filled
from tests.support.strategies.models import as_plantuml, models
from tidings.errors import InputError
from tidings.objects.model.class_model import Attribute, Model, ModelClass
from tidings.objects.model.table_mapping import ClassTable, Discriminator, MappedModel
from tidings.objects.outbox.installation import install_triggers
from tidings.objects.propagation import Limits, Object, Truncation, find_reasons
from tidings.objects.readers.plantuml_reader import read_plantuml
from tidings.objects.readers.sqlalchemy_reader import read_sqlalchemy
from tidings.objects.triggers.generator import generate_schema, render_script
from tidings.objects.triggers.postgresql_dialect import PostgresqlDialect
from tidings.objects.triggers.sqlite_dialect import SqliteDialect

LIMITS = st.builds(Limits, st.none() | st.integers(0, 3), st.none() | st.integers(0, 3))
MODELS = models().filter(lambda model: any(each.implicit or each.propagates for each in model.associations))


def as_said(all: list[Expected]) -> list[tuple[str, str, str, str, str]]:
    """Changes in no order: of one statement that does several things at once, nobody promises any."""
    return sorted(
        (
            each.change.kind.value,
            each.cls,
            str(each.change.object),
            str(sorted(each.change.attributes)),
            str(sorted((str(one), [why.render() for why in whys]) for one, whys in told_by(each).items())),
        )
        for each in all
    )


def told_by(each: Expected) -> Any:
    return find_reasons(each.change.object, each.propagation.steps, each.propagation.hits)


@given(MODELS, LIMITS, st.booleans(), st.data())
def test_sqlite_tells_whom_the_definition_tells(
    model: Model, limits: Limits, numbered: bool, data: st.DataObject
) -> None:
    agrees(Memory(), model, limits, numbered, data)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(MODELS, LIMITS, st.booleans(), st.data())
def test_postgresql_tells_whom_the_definition_tells(
    postgres: Postgres, model: Model, limits: Limits, numbered: bool, data: st.DataObject
) -> None:
    agrees(postgres.emptied(), model, limits, numbered, data)


def agrees(database: Database, model: Model, limits: Limits, numbered: bool, data: st.DataObject) -> None:
    placed = lying(model, data)
    keys: list[Any] = list(range(1, 100))
    if not numbered:  # languages put small letters before large ones, and letters with accents among others
        keys = [f"{'kKö'[number % 3]}'{number}" for number in keys]
    for sql in create_tables(placed, "INTEGER" if numbered else "TEXT"):
        database.run(sql)
    database.install(placed, limits)
    history = History(placed, Statements(placed, database), keys, limits)
    for _ in range(data.draw(st.integers(8, 24))):
        history.step(data.draw)
        found = outbox(database, int if numbered else str)
        assert as_said(found) == as_said(history.expected)
        by_change = {(each.change, each.cls): each.propagation for each in history.expected}
        assert all(each.propagation == by_change[each.change, each.cls] for each in found)
    assert database.site.labels(placed, list(history.graph.classes)) == history.labels()


def lying(model: Model, data: st.DataObject) -> MappedModel:
    """By convention, or as a program of SQLAlchemy has it: with several classes in one table."""
    below = [name for name, cls in model.classes.items() if cls.parents]
    if not below or data.draw(st.booleans()):
        return read_plantuml(as_plantuml(model))
    return read_sqlalchemy(declared(model, String, data.draw(st.sets(st.sampled_from(below))))[0])


LABELS: dict[str, dict[object, str]] = {
    "Lecturer": {},
    "Student": {1: "S1", 2: "S2", 3: "S3"},
    "Course": {1: "ProgrammingBasics", 2: "DataStructures"},
    "LearningMaterial": {1: "Script1", 2: "Script2"},
}


def why(database: Database) -> dict[str, list[str]]:
    """For each subscriber why, over all that happened since it was asked last."""
    found: dict[str, list[str]] = {}
    for each in outbox(database, int):
        for who, whys in told_by(each).items():
            found.setdefault(LABELS[who.family][who.key], []).extend(
                reason.render(lambda one: LABELS[one.family].get(one.key, str(one))) for reason in whys
            )
    return found


def test_the_paper_s_university(university: Database) -> None:
    university.run("UPDATE learning_material SET title = 'Script2, second edition' WHERE id = 2")
    assert university.run("SELECT attributes, before, after FROM tidings_changes") == [
        ('["title"]', '{"title":"Script2"}', '{"title":"Script2, second edition"}')
    ]
    assert why(university) == {
        "S1": ["Script2 -usedIn-> ProgrammingBasics (S1 watches it)"],
        "S2": [
            "Script2 -usedIn-> ProgrammingBasics (S2 watches Course)",
            "Script2 -usedIn-> ProgrammingBasics <-attends- S2",
            "Script2 -usedIn-> DataStructures (S2 watches Course)",
        ],
        "S3": ["Script2 -usedIn-> DataStructures <-attends- S3"],
    }


def test_who_sets_a_value_to_what_it_is_changes_nothing(university: Database) -> None:
    university.run("UPDATE learning_material SET title = title")
    university.run("UPDATE course SET lecturer_id = NULL, room = room")
    assert why(university) == {}


def test_what_is_rolled_back_tells_nobody(university: Database) -> None:
    university.run("BEGIN")
    university.run("UPDATE learning_material SET title = 'never'")
    assert university.run("SELECT count(*) FROM tidings_changes") == [(2,)]
    university.run("ROLLBACK")
    assert why(university) == {}


def test_a_course_has_another_script(university: Database) -> None:
    university.run("INSERT INTO used_in VALUES (1, 2)")
    row = "SELECT kind, class, CAST(key AS INTEGER), association, other_family FROM tidings_changes"
    assert university.run(row) == [("link", "Course", 2, "usedIn", "LearningMaterial")]
    assert why(university)["S3"] == ["DataStructures <-attends- S3"]
    university.run("DELETE FROM used_in WHERE learning_material_id = 2 AND course_id = 2")
    assert why(university)["S3"] == ["DataStructures <-attends- S3"]


def test_a_script_goes_while_it_is_still_known_where_it_was_used(university: Database) -> None:
    """Its links go with it, which is no second reason."""
    university.run("DELETE FROM learning_material WHERE id = 2")
    kinds = university.run("SELECT kind, before FROM tidings_changes")
    assert kinds == [("delete", '{"title":"Script2"}')]
    assert why(university)["S3"] == ["Script2 -usedIn-> DataStructures <-attends- S3"]


def test_bytes_do_not_stop_an_update_in_sqlite() -> None:
    """Its columns take them, whatever their type."""
    database = filled(Memory())
    database.run("UPDATE course SET room = x'00ff' WHERE id = 1")
    assert database.run("SELECT after FROM tidings_changes") == [('{"room":"00FF"}',)]


def test_watches_take_keys_as_numbers_and_as_texts(university: Database) -> None:
    university.run(
        "INSERT INTO tidings_watches VALUES ('Student', '3', 'Lecturer', '7'), ('Student', 2, 'Lecturer', 7)"
    )
    university.run("INSERT INTO lecturer VALUES (7, 'Ada', '4711')")
    assert why(university) == {"S2": ["Lecturer:7 (S2 watches it)"], "S3": ["Lecturer:7 (S3 watches it)"]}


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ("'Student', 1, 'Cuorse', 1", "the model has Student, Lecturer, Course, LearningMaterial"),
        ("'Course', 1, 'Course', 1", "subscribers are Student"),
    ],
)
def test_watches_of_what_there_is_not_are_refused(university: Database, row: str, problem: str) -> None:
    with pytest.raises(university.problem, match=problem):
        university.run(f"INSERT INTO tidings_watches VALUES ({row})")


def test_several_classes_in_one_table(database: Database) -> None:
    """A seminar is a course that says so in a column; who watches seminars hears of no lecture."""
    course = ModelClass("Course", (Attribute("title"),), subscriber=True)
    model = Model({"Course": course, "Seminar": ModelClass("Seminar", (Attribute("topic"),), ("Course",))})
    tables = {
        "Course": ClassTable("course", "id", {"title": "title"}, None, Discriminator("type", "c")),
        "Seminar": ClassTable("course", "id", {"topic": "topic"}, None, Discriminator("type", "s")),
    }
    database.run("CREATE TABLE course (id INTEGER PRIMARY KEY, type TEXT, title TEXT, topic TEXT)")
    database.install(MappedModel(model, tables, {}))
    database.run(
        "INSERT INTO tidings_watches VALUES ('Course', 9, 'Seminar', NULL), ('Course', 8, 'Course', NULL)"
    )
    database.run("INSERT INTO course VALUES (1, 'c', 'Logic', NULL), (2, 's', 'Sets', 'infinity')")
    database.run("UPDATE course SET topic = 'choice' WHERE id = 2")
    assert database.run("SELECT kind, class, CAST(key AS INTEGER) FROM tidings_changes ORDER BY id") == [
        ("insert", "Course", 1),
        ("insert", "Seminar", 2),
        ("update", "Seminar", 2),
    ]
    keys = "CAST(key AS INTEGER), CAST(subscriber_key AS INTEGER)"
    hits = f"SELECT {keys}, by FROM tidings_hits ORDER BY change, subscriber_key"
    expected = [(1, 8, "Course"), (2, 8, "Course"), (2, 9, "Seminar"), (2, 8, "Course"), (2, 9, "Seminar")]
    assert database.run(hits) == expected


def test_several_classes_in_one_table_below_another(database: Database) -> None:
    """What a row of seminars is, a column of courses says, as SQLAlchemy has it."""
    courses = {"Course": ModelClass("Course", (Attribute("title"),), subscriber=True)}
    courses["Seminar"] = ModelClass("Seminar", (Attribute("topic"),), ("Course",))
    courses["Colloquium"] = ModelClass("Colloquium", (Attribute("guest"),), ("Seminar",))
    tables = {
        "Course": ClassTable("course", "id", {"title": "title"}),
        "Seminar": ClassTable(
            "seminar", "nr", {"topic": "topic"}, "id", Discriminator("type", "s", "course", "id")
        ),
        "Colloquium": ClassTable(
            "seminar", "nr", {"guest": "guest"}, None, Discriminator("type", "k", "course", "id")
        ),
    }
    database.run("CREATE TABLE course (id INTEGER PRIMARY KEY, type TEXT, title TEXT)")
    database.run("CREATE TABLE seminar (nr INTEGER PRIMARY KEY, topic TEXT, guest TEXT)")
    install_triggers(database.site, MappedModel(Model(courses), tables, {}))
    database.run("INSERT INTO tidings_watches VALUES ('Course', 9, 'Colloquium', NULL)")
    database.run("INSERT INTO course VALUES (1, 's', 'Sets'), (2, 'k', 'Guests')")
    database.run("INSERT INTO seminar VALUES (1, 'choice', NULL), (2, 'all', 'Emmy')")
    found = database.site.changes(most=10)
    assert [(each.cls, len(each.propagation.hits)) for each in found] == [("Seminar", 0), ("Colloquium", 1)]


LIMITED = """
class A <<subscriber>> {
  x
  y
}
A "*" -- "*" A : next <<propagates {attributes = x}>> >
A "*" -- "*" A : of <<implicit {told = source, attributes = y}>> >
"""


@pytest.mark.parametrize(
    ("change", "reached", "told"),
    [
        ("UPDATE a SET x = 1 WHERE id = 1", [1, 2, 3], [2, 3]),
        ("UPDATE a SET y = 1 WHERE id = 1", [1], [1]),
        ("UPDATE a SET x = 1, y = 1 WHERE id = 1", [1, 2, 3], [1, 2, 3]),
        ("DELETE FROM a WHERE id = 1", [1, 2, 3], [1, 2, 3]),
    ],
)
def test_attributes_limit_where_a_change_begins_also_in_a_circle(
    database: Database, change: str, reached: list[int], told: list[int]
) -> None:
    """1, 2 and 3 lead to each other, and each is told about itself."""
    placed = read_plantuml(LIMITED)
    for sql in create_tables(placed, "INTEGER"):
        database.run(sql)
    database.install(placed)
    database.run("INSERT INTO a (id) VALUES (1), (2), (3)")
    database.run("INSERT INTO next VALUES (1, 2), (2, 3), (3, 1)")
    database.run('INSERT INTO "of" VALUES (1, 1), (2, 2), (3, 3)')
    database.run("DELETE FROM tidings_changes")
    database.run(change)
    assert database.run("SELECT CAST(key AS INTEGER) FROM tidings_reached ORDER BY key") == [
        (key,) for key in reached
    ]
    assert database.run("SELECT CAST(key AS INTEGER) FROM tidings_hits ORDER BY key") == [
        (key,) for key in told
    ]


def test_names_cannot_end_a_comment() -> None:
    """A table of an XMI file may be called anything."""
    model = Model({"A": ModelClass("A")})
    evil = ClassTable("a\nDROP TABLE b;--", "id")
    for dialect in (SqliteDialect(), PostgresqlDialect()):
        sql = render_script(MappedModel(model, {"A": evil}, {}), dialect, "a\nDROP TABLE b;--")
        assert r"-- A row of a\nDROP TABLE b;--" in sql and r"-- Generated from a\nDROP TABLE b;--" in sql
        outside = re.sub(r'"[^"]*"', "", sql)
        assert not any(line.startswith("DROP") for line in outside.split("\n"))


def test_two_things_of_one_name_are_refused() -> None:
    """Links in a table a_c_id, and links in the column c_id of a."""
    placed = read_plantuml(
        """
class A {
}
class B {
}
A "*" -- "*" B : links <<propagates {table = a_c_id}>> >
A "*" -- "1" B : c <<propagates>> >
"""
    )
    with pytest.raises(
        InputError, match="2 of the model would need one trigger; received tidings_a_c_id_linked"
    ):
        generate_schema(placed, SqliteDialect())


PARTS = """
class Student <<subscriber>> {
}
class Lecturer {
}
class Course {
  room
}
class Chapter {
}
Student "*" -- "*" Course : attends <<implicit {attributes = gives}>> >
Lecturer "0..1 lecturer" -- "*" Course : gives >
Chapter "*" -- "0..1 course" Course : belongsTo <<propagates>> >
"""


@pytest.fixture
def parts(database: Database) -> Database:
    """A course with a lecturer and a chapter, both in columns, beside one without; a student attends both."""
    placed = read_plantuml(PARTS)
    for sql in create_tables(placed, "INTEGER"):
        database.run(sql)
    database.install(placed)
    database.run("INSERT INTO student VALUES (1)")
    database.run("INSERT INTO lecturer VALUES (1), (2)")
    database.run("INSERT INTO course (id, lecturer_id) VALUES (1, 1), (2, NULL)")
    database.run("INSERT INTO chapter VALUES (1, 1)")
    database.run("INSERT INTO attends VALUES (1, 1), (1, 2)")
    database.run("DELETE FROM tidings_changes")
    return database


def test_another_lecturer_is_an_update_that_a_mark_may_be_limited_to(parts: Database) -> None:
    parts.run("UPDATE course SET room = 'A1' WHERE id = 1")
    assert parts.run("SELECT attributes FROM tidings_changes") == [('["room"]',)]
    assert parts.run("SELECT * FROM tidings_hits") == []
    parts.run("UPDATE course SET lecturer_id = 2 WHERE id = 1")
    assert parts.run(
        "SELECT before, after FROM tidings_changes WHERE id = (SELECT max(change) FROM tidings_hits)"
    ) == [('{"gives":1}', '{"gives":2}')]


def test_a_chapter_that_moves_changes_both_courses(parts: Database) -> None:
    """The one that it leaves and the one that it comes to; the chapter is what it was."""
    parts.run("UPDATE chapter SET course_id = 2")
    rows = "SELECT kind, class, CAST(key AS INTEGER), other_family FROM tidings_changes ORDER BY id"
    assert parts.run(rows) == [("unlink", "Course", 1, "Chapter"), ("link", "Course", 2, "Chapter")]
    hits = "SELECT CAST(key AS INTEGER), how FROM tidings_hits ORDER BY key"
    assert parts.run(hits) == [(1, "implicit"), (2, "implicit")]


def test_a_new_chapter_is_inserted_and_not_linked_besides(parts: Database) -> None:
    parts.run("INSERT INTO chapter VALUES (2, 2)")
    assert parts.run("SELECT kind, class FROM tidings_changes") == [("insert", "Chapter")]
    assert parts.run("SELECT association, to_family FROM tidings_steps") == [("belongsTo", "Course")]


def test_steps_are_followed_so_far_and_no_farther(database: Database) -> None:
    """1 leads to 2, 2 to 3 and 4, 3 back to 1 and on to 5."""
    chained(database, Limits(steps=1))
    database.run("UPDATE a SET x = 1 WHERE id = 1")
    [found] = database.site.changes(most=10)
    assert {each.key for each in found.propagation.reached} == {"1", "2"}
    assert {(each.origin.key, each.to.key) for each in found.propagation.steps} == {("1", "2")}
    assert found.propagation.truncations == {Truncation("steps", 1, 2)}
    assert database.site.forget([found.id]) and database.run("SELECT * FROM tidings_cuts") == []


def test_a_limit_that_is_not_reached_leaves_no_trace(database: Database) -> None:
    chained(database, Limits(steps=3, subscribers=2))
    database.run("UPDATE a SET x = 1 WHERE id = 1")
    [found] = database.site.changes(most=10)
    assert {each.key for each in found.propagation.reached} == set("12345")
    assert len(found.propagation.steps) == 5 and not found.propagation.truncations


def chained(database: Database, limits: Limits) -> None:
    placed = read_plantuml(LIMITED)
    for sql in create_tables(placed, "INTEGER"):
        database.run(sql)
    database.install(placed, limits)
    database.run("INSERT INTO a (id) VALUES (1), (2), (3), (4), (5)")
    database.run("INSERT INTO next VALUES (1, 2), (2, 3), (2, 4), (3, 1), (3, 5)")
    database.run("DELETE FROM tidings_changes")


def test_who_is_told_first_does_not_depend_on_the_language_of_a_database(database: Database) -> None:
    """By code points B comes before a; by what PostgreSQL knows of English it does not."""
    for sql in create_tables(UNIVERSITY, "TEXT"):
        database.run(sql)
    database.install(UNIVERSITY, Limits(subscribers=1))
    if database.dialect.name == "postgresql":
        database.run('ALTER TABLE tidings_watches ALTER subscriber_key TYPE text COLLATE "en-x-icu"')
    database.run(
        "INSERT INTO tidings_watches VALUES ('Student', 'a', 'Course', NULL), ('Student', 'B', 'Course', NULL)"
    )
    database.run("INSERT INTO course (id) VALUES ('c')")
    [found] = database.site.changes(most=10)
    assert {str(each.subscriber) for each in found.propagation.hits} == {"Student:B"}
    assert found.propagation.truncations == {Truncation("told", 1, 2)}


@pytest.mark.parametrize("name", ["reached", "hits", "found", "changed"])
def test_tables_may_be_called_as_parts_of_queries_are(database: Database, name: str) -> None:
    placed = read_plantuml(LIMITED.replace(": next", f": {name}"))
    for sql in create_tables(placed, "INTEGER"):
        database.run(sql)
    database.install(placed, Limits(steps=9, subscribers=9))
    database.run("INSERT INTO a (id) VALUES (1), (2), (3)")
    database.run(f"INSERT INTO {name} VALUES (1, 2), (2, 3)")
    database.run("DELETE FROM tidings_changes")
    database.run("DELETE FROM a WHERE id = 1")
    assert database.run("SELECT key FROM tidings_reached ORDER BY key") == [("1",), ("2",), ("3",)]


SAID = {
    "sqlite": ["INSERT INTO tidings_author VALUES ('{cls}', {key})", "DELETE FROM tidings_author"],
    "postgresql": ["SET LOCAL tidings.author = '{cls}:{key}'"],
}


def by(database: Database, cls: str, key: object, *statements: str) -> None:
    """Statements in one transaction of somebody."""
    said, *unsaid = SAID[database.dialect.name]
    for sql in ("BEGIN", said.format(cls=cls, key=key), *statements, *unsaid, "COMMIT"):
        database.run(sql)


def test_who_made_a_change_is_known_if_the_program_says_so(university: Database) -> None:
    everything = (
        "UPDATE course SET room = 'B1' WHERE id = 1",
        "INSERT INTO lecturer VALUES (1, 'Ada', '4711')",
        "INSERT INTO used_in VALUES (1, 2)",
        "DELETE FROM learning_material WHERE id = 1",
    )
    by(university, "Lecturer", 1, *everything)
    university.run("UPDATE course SET room = 'B2' WHERE id = 1")
    by(university, "Student", 2, "UPDATE course SET room = 'B3' WHERE id = 1")
    assert [str(each.author) for each in university.site.changes(most=10)] == [
        *["Lecturer:1"] * len(everything),
        "None",
        "Student:2",
    ]


def test_who_made_a_change_is_known_by_the_family(database: Database) -> None:
    placed = read_plantuml("class Author {\n  name\n}\nclass Poet <<subscriber>> {\n}\nAuthor <|-- Poet\n")
    for sql in create_tables(placed, "TEXT"):
        database.run(sql)
    database.install(placed)
    by(
        database,
        "Poet",
        "'a:b'" if database.dialect.name == "sqlite" else "a:b",
        "INSERT INTO author VALUES (1, 'A')",
    )
    [found] = database.site.changes(most=10)
    assert found.author == Object("Author", "a:b")


def test_an_author_of_no_class_is_refused(university: Database) -> None:
    with pytest.raises(
        university.problem, match=r"author.*the model.* Student, Lecturer, Course, LearningMaterial"
    ):
        by(university, "Studnet", 2, "UPDATE course SET room = 'B3'")
    university.run("ROLLBACK")
    assert university.site.changes(most=10) == []


def test_who_is_said_last_made_the_change_in_sqlite() -> None:
    """A program may have forgotten to take away whom it said before."""
    database = filled(Memory())
    database.run("INSERT INTO tidings_author VALUES ('Student', 1)")
    database.run("INSERT INTO tidings_author VALUES ('Student', 2)")
    assert database.run("SELECT class, key FROM tidings_author") == [("Student", "2")]
