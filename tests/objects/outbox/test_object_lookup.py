"""Objects by the names that people have for them, and back."""

from __future__ import annotations

import pytest

from tests.objects.databases import Database
from tests.objects.histories import create_tables
from tests.objects.university import PLACED as UNIVERSITY
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
    """1 is a person, 2 a student without a nick, 3 and 4 are called the same."""
    for sql in create_tables(BELOW, "INTEGER"):
        database.run(sql)
    database.install(BELOW)
    database.run("INSERT INTO person VALUES (1, 'Ada'), (2, 'Ben'), (3, 'Cy'), (4, 'Cy'), (5, 'Cy')")
    database.run("INSERT INTO student VALUES (2, NULL), (3, 'c'), (4, 'c')")
    database.run("INSERT INTO room VALUES (7)")
    return database


def test_labels_of_what_is_there(university: Database) -> None:
    asked = [Object("Course", "1"), Object("Course", "9"), Object("Student", "3"), Object("Gone", "1")]
    assert university.site.labels(UNIVERSITY, asked) == {asked[0]: "ProgrammingBasics", asked[2]: "S3"}


def test_the_lowest_class_says_the_label_and_the_key_is_one_for_want_of_another(persons: Database) -> None:
    asked = {"1": "Ada", "2": "2", "3": "c", "4": "c", "5": "Cy"}
    expected = {Object("Person", key): label for key, label in asked.items()} | {Object("Room", "7"): "7"}
    assert persons.site.labels(BELOW, list(expected)) == expected


def test_a_subscriber_who_cannot_exist_takes_no_label_from_the_others(university: Database) -> None:
    """Whoever inserts a watch may write anything: keys of students are numbers."""
    asked = [Object("Student", "abc"), Object("Student", "1")]
    assert university.site.labels(UNIVERSITY, asked) == {asked[1]: "S1"}


def test_several_classes_in_one_table(database: Database) -> None:
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
    placed = MappedModel(model, tables, {})
    database.run("CREATE TABLE course (id INTEGER PRIMARY KEY, type TEXT, title TEXT, topic TEXT)")
    database.install(placed)
    database.run("INSERT INTO course VALUES (1, 'c', 'Logic', NULL), (2, 's', 'Sets', 'infinity')")
    one, two = Object("Course", "1"), Object("Course", "2")
    assert database.site.labels(placed, [one, two]) == {one: "Logic", two: "infinity"}
    assert database.site.find(placed, "Seminar", "infinity") == "2"


def test_found_by_key_or_by_the_label_that_only_one_has(persons: Database) -> None:
    site = persons.site
    assert [site.find(BELOW, "Person", word) for word in ("1", "Ada", "2", "Cy")] == ["1", "1", "2", "5"]
    assert site.find(BELOW, "Student", "3") == "3" and site.find(BELOW, "Room", "7") == "7"


def test_a_key_goes_before_a_label(university: Database) -> None:
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
def test_what_nobody_or_more_than_one_is_called(persons: Database, cls: str, word: str, problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        persons.site.find(BELOW, cls, word)
