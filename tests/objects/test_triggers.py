"""Triggers generated from random models have the effects of the definition, for any changes."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import String

from tests.objects.change_targets import Statements
from tests.objects.databases import Database, Memory, Postgres
from tests.objects.declarative_models import declare_model
from tests.objects.histories import Expected, History, create_tables, take_outbox
from tests.objects.university import MAPPED as UNIVERSITY
from tests.objects.university import create_university
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


def describe_changes(changes: list[Expected]) -> list[tuple[str, str, str, str, str]]:
    """Describe changes in sorted order: the order within one statement is undefined."""
    return sorted(
        (
            each.change.kind.value,
            each.cls,
            str(each.change.object),
            str(sorted(each.change.attributes)),
            str(
                sorted(
                    (str(subscriber), [reason.render() for reason in reasons])
                    for subscriber, reasons in reasons_by_subscriber(each).items()
                )
            ),
        )
        for each in changes
    )


def reasons_by_subscriber(each: Expected) -> Any:
    return find_reasons(each.change.object, each.propagation.steps, each.propagation.hits)


@given(MODELS, LIMITS, st.booleans(), st.data())
def test_triggers_on_sqlite_agree_with_definition(
    model: Model, limits: Limits, numbered: bool, data: st.DataObject
) -> None:
    check_agreement(Memory(), model, limits, numbered, data)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(MODELS, LIMITS, st.booleans(), st.data())
def test_triggers_on_postgresql_agree_with_definition(
    postgres: Postgres, model: Model, limits: Limits, numbered: bool, data: st.DataObject
) -> None:
    check_agreement(postgres.recreate_schema(), model, limits, numbered, data)


def check_agreement(
    database: Database, model: Model, limits: Limits, numbered: bool, data: st.DataObject
) -> None:
    mapped = draw_mapping(model, data)
    keys: list[Any] = list(range(1, 100))
    if not numbered:  # collations order cases and accents in their own way
        keys = [f"{'kKö'[number % 3]}'{number}" for number in keys]
    for sql in create_tables(mapped, "INTEGER" if numbered else "TEXT"):
        database.run(sql)
    database.install(mapped, limits)
    history = History(mapped, Statements(mapped, database), keys, limits)
    for _ in range(data.draw(st.integers(8, 24))):
        history.step(data.draw)
        changes = take_outbox(database, int if numbered else str)
        assert describe_changes(changes) == describe_changes(history.expected)
        by_change = {(each.change, each.cls): each.propagation for each in history.expected}
        assert all(each.propagation == by_change[each.change, each.cls] for each in changes)
    assert database.site.labels(mapped, list(history.graph.classes)) == history.labels()


def draw_mapping(model: Model, data: st.DataObject) -> MappedModel:
    """Map a model by convention, or as SQLAlchemy does, with several classes in a table."""
    subclasses = [name for name, cls in model.classes.items() if cls.parents]
    if not subclasses or data.draw(st.booleans()):
        return read_plantuml(as_plantuml(model))
    return read_sqlalchemy(declare_model(model, String, data.draw(st.sets(st.sampled_from(subclasses))))[0])


LABELS: dict[str, dict[object, str]] = {
    "Lecturer": {},
    "Student": {1: "S1", 2: "S2", 3: "S3"},
    "Course": {1: "ProgrammingBasics", 2: "DataStructures"},
    "LearningMaterial": {1: "Script1", 2: "Script2"},
}


def describe_reasons(database: Database) -> dict[str, list[str]]:
    """Return the reasons for each subscriber since the last call."""
    reasons_of_subscriber: dict[str, list[str]] = {}
    for each in take_outbox(database, int):
        for subscriber, reasons in reasons_by_subscriber(each).items():
            reasons_of_subscriber.setdefault(LABELS[subscriber.family][subscriber.key], []).extend(
                reason.render(lambda instance: LABELS[instance.family].get(instance.key, str(instance)))
                for reason in reasons
            )
    return reasons_of_subscriber


def test_triggers_example_of_paper_notifies_three_students(university: Database) -> None:
    university.run("UPDATE learning_material SET title = 'Script2, second edition' WHERE id = 2")
    assert university.run("SELECT attributes, before, after FROM tidings_changes") == [
        ('["title"]', '{"title":"Script2"}', '{"title":"Script2, second edition"}')
    ]
    assert describe_reasons(university) == {
        "S1": ["Script2 -usedIn-> ProgrammingBasics (S1 watches it)"],
        "S2": [
            "Script2 -usedIn-> ProgrammingBasics (S2 watches Course)",
            "Script2 -usedIn-> ProgrammingBasics <-attends- S2",
            "Script2 -usedIn-> DataStructures (S2 watches Course)",
        ],
        "S3": ["Script2 -usedIn-> DataStructures <-attends- S3"],
    }


def test_triggers_update_without_difference_is_no_change(university: Database) -> None:
    university.run("UPDATE learning_material SET title = title")
    university.run("UPDATE course SET lecturer_id = NULL, room = room")
    assert describe_reasons(university) == {}


def test_triggers_rollback_discards_changes(university: Database) -> None:
    university.run("BEGIN")
    university.run("UPDATE learning_material SET title = 'never'")
    assert university.run("SELECT count(*) FROM tidings_changes") == [(2,)]
    university.run("ROLLBACK")
    assert describe_reasons(university) == {}


def test_triggers_link_and_unlink_notify_of_course(university: Database) -> None:
    university.run("INSERT INTO used_in VALUES (1, 2)")
    row = "SELECT kind, class, CAST(key AS INTEGER), association, other_family FROM tidings_changes"
    assert university.run(row) == [("link", "Course", 2, "usedIn", "LearningMaterial")]
    assert describe_reasons(university)["S3"] == ["DataStructures <-attends- S3"]
    university.run("DELETE FROM used_in WHERE learning_material_id = 2 AND course_id = 2")
    assert describe_reasons(university)["S3"] == ["DataStructures <-attends- S3"]


def test_triggers_delete_notifies_along_links_before_they_go(university: Database) -> None:
    """Its links are deleted with it, which is no second reason."""
    university.run("DELETE FROM learning_material WHERE id = 2")
    kinds = university.run("SELECT kind, before FROM tidings_changes")
    assert kinds == [("delete", '{"title":"Script2"}')]
    assert describe_reasons(university)["S3"] == ["Script2 -usedIn-> DataStructures <-attends- S3"]


def test_triggers_on_sqlite_accept_bytes_in_text_column() -> None:
    """Columns of SQLite accept bytes, whatever their type."""
    database = create_university(Memory())
    database.run("UPDATE course SET room = x'00ff' WHERE id = 1")
    assert database.run("SELECT after FROM tidings_changes") == [('{"room":"00FF"}',)]


def test_triggers_watches_accept_keys_as_numbers_and_texts(university: Database) -> None:
    university.run(
        "INSERT INTO tidings_watches VALUES ('Student', '3', 'Lecturer', '7'), ('Student', 2, 'Lecturer', 7)"
    )
    university.run("INSERT INTO lecturer VALUES (7, 'Ada', '4711')")
    assert describe_reasons(university) == {
        "S2": ["Lecturer:7 (S2 watches it)"],
        "S3": ["Lecturer:7 (S3 watches it)"],
    }


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ("'Student', 1, 'Cuorse', 1", "the model has Student, Lecturer, Course, LearningMaterial"),
        ("'Course', 1, 'Course', 1", "subscribers are Student"),
    ],
)
def test_triggers_watch_of_unknown_class_is_rejected(university: Database, row: str, problem: str) -> None:
    with pytest.raises(university.problem, match=problem):
        university.run(f"INSERT INTO tidings_watches VALUES ({row})")


def test_triggers_several_classes_in_one_table(database: Database) -> None:
    """A discriminator marks seminars; watchers of seminars get no other courses."""
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


def test_triggers_several_classes_in_table_of_subclass(database: Database) -> None:
    """A column of courses says what a row of seminars is, as in SQLAlchemy."""
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
    changes = database.site.changes(limit=10)
    assert [(each.cls, len(each.propagation.hits)) for each in changes] == [("Seminar", 0), ("Colloquium", 1)]


LIMITED = """
class A <<subscriber>> {
  x
  y
}
A "*" -- "*" A : next <<propagates {attributes = x}>> >
A "*" -- "*" A : of <<implicit {told = source, attributes = y}>> >
"""


@pytest.mark.parametrize(
    ("change", "reached", "notified"),
    [
        ("UPDATE a SET x = 1 WHERE id = 1", [1, 2, 3], [2, 3]),
        ("UPDATE a SET y = 1 WHERE id = 1", [1], [1]),
        ("UPDATE a SET x = 1, y = 1 WHERE id = 1", [1, 2, 3], [1, 2, 3]),
        ("DELETE FROM a WHERE id = 1", [1, 2, 3], [1, 2, 3]),
    ],
)
def test_triggers_attribute_limit_applies_to_origin_in_cycle(
    database: Database, change: str, reached: list[int], notified: list[int]
) -> None:
    """1, 2 and 3 refer to each other, and each is notified of itself."""
    mapped = read_plantuml(LIMITED)
    for sql in create_tables(mapped, "INTEGER"):
        database.run(sql)
    database.install(mapped)
    database.run("INSERT INTO a (id) VALUES (1), (2), (3)")
    database.run("INSERT INTO next VALUES (1, 2), (2, 3), (3, 1)")
    database.run('INSERT INTO "of" VALUES (1, 1), (2, 2), (3, 3)')
    database.run("DELETE FROM tidings_changes")
    database.run(change)
    assert database.run("SELECT CAST(key AS INTEGER) FROM tidings_reached ORDER BY key") == [
        (key,) for key in reached
    ]
    assert database.run("SELECT CAST(key AS INTEGER) FROM tidings_hits ORDER BY key") == [
        (key,) for key in notified
    ]


def test_render_script_names_cannot_end_comment() -> None:
    """Tables in an XMI file may have any name."""
    model = Model({"A": ModelClass("A")})
    evil = ClassTable("a\nDROP TABLE b;--", "id")
    for dialect in (SqliteDialect(), PostgresqlDialect()):
        sql = render_script(MappedModel(model, {"A": evil}, {}), dialect, "a\nDROP TABLE b;--")
        assert r"-- A row of a\nDROP TABLE b;--" in sql and r"-- Generated from a\nDROP TABLE b;--" in sql
        outside = re.sub(r'"[^"]*"', "", sql)
        assert not any(line.startswith("DROP") for line in outside.split("\n"))


def test_generate_schema_duplicate_trigger_name_is_rejected() -> None:
    """Links in a table a_c_id, and links in the column c_id of a."""
    mapped = read_plantuml(
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
        InputError,
        match="2 elements of the model would need the same trigger; received tidings_a_c_id_linked",
    ):
        generate_schema(mapped, SqliteDialect())


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
def chapters(database: Database) -> Database:
    """A course with a lecturer and a chapter by columns, and one without; a student attends both."""
    mapped = read_plantuml(PARTS)
    for sql in create_tables(mapped, "INTEGER"):
        database.run(sql)
    database.install(mapped)
    database.run("INSERT INTO student VALUES (1)")
    database.run("INSERT INTO lecturer VALUES (1), (2)")
    database.run("INSERT INTO course (id, lecturer_id) VALUES (1, 1), (2, NULL)")
    database.run("INSERT INTO chapter VALUES (1, 1)")
    database.run("INSERT INTO attends VALUES (1, 1), (1, 2)")
    database.run("DELETE FROM tidings_changes")
    return database


def test_triggers_changed_reference_is_update_for_attribute_limit(chapters: Database) -> None:
    chapters.run("UPDATE course SET room = 'A1' WHERE id = 1")
    assert chapters.run("SELECT attributes FROM tidings_changes") == [('["room"]',)]
    assert chapters.run("SELECT * FROM tidings_hits") == []
    chapters.run("UPDATE course SET lecturer_id = 2 WHERE id = 1")
    assert chapters.run(
        "SELECT before, after FROM tidings_changes WHERE id = (SELECT max(change) FROM tidings_hits)"
    ) == [('{"gives":1}', '{"gives":2}')]


def test_triggers_moved_chapter_changes_both_courses(chapters: Database) -> None:
    """The course that it leaves and the one that it joins; the chapter itself is unchanged."""
    chapters.run("UPDATE chapter SET course_id = 2")
    rows = "SELECT kind, class, CAST(key AS INTEGER), other_family FROM tidings_changes ORDER BY id"
    assert chapters.run(rows) == [("unlink", "Course", 1, "Chapter"), ("link", "Course", 2, "Chapter")]
    hits = "SELECT CAST(key AS INTEGER), how FROM tidings_hits ORDER BY key"
    assert chapters.run(hits) == [(1, "implicit"), (2, "implicit")]


def test_triggers_new_chapter_is_insert_without_link(chapters: Database) -> None:
    chapters.run("INSERT INTO chapter VALUES (2, 2)")
    assert chapters.run("SELECT kind, class FROM tidings_changes") == [("insert", "Chapter")]
    assert chapters.run("SELECT association, to_family FROM tidings_steps") == [("belongsTo", "Course")]


def test_triggers_step_limit_stops_propagation(database: Database) -> None:
    """1 refers to 2, 2 to 3 and 4, 3 back to 1 and to 5."""
    create_chain(database, Limits(steps=1))
    database.run("UPDATE a SET x = 1 WHERE id = 1")
    [change] = database.site.changes(limit=10)
    assert {each.key for each in change.propagation.reached} == {"1", "2"}
    assert {(each.origin.key, each.to.key) for each in change.propagation.steps} == {("1", "2")}
    assert change.propagation.truncations == {Truncation("steps", 1, 2)}
    assert database.site.delete_changes([change.id]) and database.run("SELECT * FROM tidings_cuts") == []


def test_triggers_limit_not_reached_has_no_truncation(database: Database) -> None:
    create_chain(database, Limits(steps=3, subscribers=2))
    database.run("UPDATE a SET x = 1 WHERE id = 1")
    [change] = database.site.changes(limit=10)
    assert {each.key for each in change.propagation.reached} == set("12345")
    assert len(change.propagation.steps) == 5 and not change.propagation.truncations


def create_chain(database: Database, limits: Limits) -> None:
    mapped = read_plantuml(LIMITED)
    for sql in create_tables(mapped, "INTEGER"):
        database.run(sql)
    database.install(mapped, limits)
    database.run("INSERT INTO a (id) VALUES (1), (2), (3), (4), (5)")
    database.run("INSERT INTO next VALUES (1, 2), (2, 3), (2, 4), (3, 1), (3, 5)")
    database.run("DELETE FROM tidings_changes")


def test_triggers_subscriber_limit_ignores_collation(database: Database) -> None:
    """B is before a by code points, but not in the English collation of PostgreSQL."""
    for sql in create_tables(UNIVERSITY, "TEXT"):
        database.run(sql)
    database.install(UNIVERSITY, Limits(subscribers=1))
    if database.dialect.name == "postgresql":
        database.run('ALTER TABLE tidings_watches ALTER subscriber_key TYPE text COLLATE "en-x-icu"')
    database.run(
        "INSERT INTO tidings_watches VALUES ('Student', 'a', 'Course', NULL), ('Student', 'B', 'Course', NULL)"
    )
    database.run("INSERT INTO course (id) VALUES ('c')")
    [change] = database.site.changes(limit=10)
    assert {str(each.subscriber) for each in change.propagation.hits} == {"Student:B"}
    assert change.propagation.truncations == {Truncation("told", 1, 2)}


@pytest.mark.parametrize("name", ["reached", "hits", "found", "changed"])
def test_triggers_accept_tables_named_like_query_parts(database: Database, name: str) -> None:
    mapped = read_plantuml(LIMITED.replace(": next", f": {name}"))
    for sql in create_tables(mapped, "INTEGER"):
        database.run(sql)
    database.install(mapped, Limits(steps=9, subscribers=9))
    database.run("INSERT INTO a (id) VALUES (1), (2), (3)")
    database.run(f"INSERT INTO {name} VALUES (1, 2), (2, 3)")
    database.run("DELETE FROM tidings_changes")
    database.run("DELETE FROM a WHERE id = 1")
    assert database.run("SELECT key FROM tidings_reached ORDER BY key") == [("1",), ("2",), ("3",)]


AUTHOR_STATEMENTS = {
    "sqlite": ["INSERT INTO tidings_author VALUES ('{cls}', {key})", "DELETE FROM tidings_author"],
    "postgresql": ["SET LOCAL tidings.author = '{cls}:{key}'"],
}


def run_as_author(database: Database, cls: str, key: object, *statements: str) -> None:
    """Run statements in one transaction of an author."""
    set_author, *reset_author = AUTHOR_STATEMENTS[database.dialect.name]
    for sql in ("BEGIN", set_author.format(cls=cls, key=key), *statements, *reset_author, "COMMIT"):
        database.run(sql)


def test_triggers_record_author_set_by_program(university: Database) -> None:
    everything = (
        "UPDATE course SET room = 'B1' WHERE id = 1",
        "INSERT INTO lecturer VALUES (1, 'Ada', '4711')",
        "INSERT INTO used_in VALUES (1, 2)",
        "DELETE FROM learning_material WHERE id = 1",
    )
    run_as_author(university, "Lecturer", 1, *everything)
    university.run("UPDATE course SET room = 'B2' WHERE id = 1")
    run_as_author(university, "Student", 2, "UPDATE course SET room = 'B3' WHERE id = 1")
    assert [str(each.author) for each in university.site.changes(limit=10)] == [
        *["Lecturer:1"] * len(everything),
        "None",
        "Student:2",
    ]


def test_triggers_record_author_by_family(database: Database) -> None:
    mapped = read_plantuml("class Author {\n  name\n}\nclass Poet <<subscriber>> {\n}\nAuthor <|-- Poet\n")
    for sql in create_tables(mapped, "TEXT"):
        database.run(sql)
    database.install(mapped)
    run_as_author(
        database,
        "Poet",
        "'a:b'" if database.dialect.name == "sqlite" else "a:b",
        "INSERT INTO author VALUES (1, 'A')",
    )
    [change] = database.site.changes(limit=10)
    assert change.author == Object("Author", "a:b")


def test_triggers_author_of_unknown_class_is_rejected(university: Database) -> None:
    with pytest.raises(
        university.problem, match=r"author.*the model.* Student, Lecturer, Course, LearningMaterial"
    ):
        run_as_author(university, "Studnet", 2, "UPDATE course SET room = 'B3'")
    university.run("ROLLBACK")
    assert university.site.changes(limit=10) == []


def test_triggers_on_sqlite_last_author_replaces_previous_one() -> None:
    """A program may have forgotten to reset the previous author."""
    database = create_university(Memory())
    database.run("INSERT INTO tidings_author VALUES ('Student', 1)")
    database.run("INSERT INTO tidings_author VALUES ('Student', 2)")
    assert database.run("SELECT class, key FROM tidings_author") == [("Student", "2")]
