"""Lookup of objects by label or key, and labels of objects."""

from __future__ import annotations

import pytest

from tests.objects.databases import Database
from tests.objects.histories import create_tables
from tests.objects.university import MAPPED as UNIVERSITY
from tidings.errors import InputError
from tidings.objects.model.class_model import Attribute, Model, ModelClass
from tidings.objects.model.table_mapping import ClassTable, Discriminator, MappedModel
from tidings.objects.propagation import Object
from tidings.objects.readers.plantuml_reader import read_plantuml

BELOW = read_plantuml(
    """
class Person {
  name
}
class Student <<subscriber {label = nick}>> {
  nick
}
class Room {
}
Person <|-- Student
"""
)


@pytest.fixture
def persons(database: Database) -> Database:
    """Person 1, student 2 without a nick, and three persons with the same name."""
    for sql in create_tables(BELOW, "INTEGER"):
        database.run(sql)
    database.install(BELOW)
    database.run("INSERT INTO person VALUES (1, 'Ada'), (2, 'Ben'), (3, 'Cy'), (4, 'Cy'), (5, 'Cy')")
    database.run("INSERT INTO student VALUES (2, NULL), (3, 'c'), (4, 'c')")
    database.run("INSERT INTO room VALUES (7)")
    return database


def test_labels_returns_those_of_existing_objects(university: Database) -> None:
    objects = [Object("Course", "1"), Object("Course", "9"), Object("Student", "3"), Object("Gone", "1")]
    assert university.site.labels(UNIVERSITY, objects) == {objects[0]: "ProgrammingBasics", objects[2]: "S3"}


def test_labels_use_lowest_class_and_fall_back_to_key(persons: Database) -> None:
    labels = {"1": "Ada", "2": "2", "3": "c", "4": "c", "5": "Cy"}
    expected = {Object("Person", key): label for key, label in labels.items()} | {Object("Room", "7"): "7"}
    assert persons.site.labels(BELOW, list(expected)) == expected


def test_labels_ignore_keys_of_wrong_type(university: Database) -> None:
    """A watch may have any text as a key; keys of students are numbers."""
    objects = [Object("Student", "abc"), Object("Student", "1")]
    assert university.site.labels(UNIVERSITY, objects) == {objects[1]: "S1"}


def test_labels_and_find_several_classes_in_one_table(database: Database) -> None:
    course = ModelClass("Course", (Attribute("title"),), subscriber=True)
    model = Model(
        {
            "Course": course,
            "Seminar": ModelClass("Seminar", (Attribute("topic"),), ("Course",), label="topic"),
        }
    )
    tables = {
        "Course": ClassTable("course", "id", {"title": "title"}, None, Discriminator("type", "c")),
        "Seminar": ClassTable("course", "id", {"topic": "topic"}, None, Discriminator("type", "s")),
    }
    mapped = MappedModel(model, tables, {})
    database.run("CREATE TABLE course (id INTEGER PRIMARY KEY, type TEXT, title TEXT, topic TEXT)")
    database.install(mapped)
    database.run("INSERT INTO course VALUES (1, 'c', 'Logic', NULL), (2, 's', 'Sets', 'infinity')")
    first, second = Object("Course", "1"), Object("Course", "2")
    assert database.site.labels(mapped, [first, second]) == {first: "Logic", second: "infinity"}
    assert database.site.find(mapped, "Seminar", "infinity") == "2"


def test_find_by_key_or_unique_label(persons: Database) -> None:
    site = persons.site
    assert [site.find(BELOW, "Person", word) for word in ("1", "Ada", "2", "Cy")] == ["1", "1", "2", "5"]
    assert site.find(BELOW, "Student", "3") == "3" and site.find(BELOW, "Room", "7") == "7"


def test_find_key_takes_precedence_over_label(university: Database) -> None:
    university.run("INSERT INTO student VALUES (4, '1')")
    assert university.site.find(UNIVERSITY, "Student", "1") == "1"


@pytest.mark.parametrize(
    ("cls", "word", "problem"),
    [
        (
            "Student",
            "c",
            "2 objects of Student have this label; received c; accepted: a key; their keys are 3, 4",
        ),
        ("Person", "Adda", "no such Person; received Adda; accepted: a key or name; did you mean 'Ada'"),
        ("Student", "1", "no such Student; received 1; accepted: a key or nick"),
        ("Room", "8", "no such Room; received 8; accepted: a key$"),
        (
            "Studnet",
            "1",
            "no such class; received Studnet; accepted: Person, Student, Room; did you mean 'Student'",
        ),
    ],
)
def test_find_unknown_or_ambiguous_label_is_rejected(
    persons: Database, cls: str, word: str, problem: str
) -> None:
    with pytest.raises(InputError, match=problem):
        persons.site.find(BELOW, cls, word)
