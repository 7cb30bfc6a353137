"""Watches by labels or keys, of objects that have several classes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.objects.databases import Memory
from tests.objects.histories import create_tables
from tidings.errors import InputError
from tidings.objects.model.class_model import Model
from tidings.objects.readers.plantuml_reader import read_plantuml
from tidings.objects.sources import OpenSource
from tidings.objects.watches import WatchDescription, WatchRegistry

MAPPED = read_plantuml("""
class Person <<subscriber>> {
  name
}
class Student
class Course {
  title
}
class Seminar
Person <|-- Student
Course <|-- Seminar
""")
ROWS = (
    "INSERT INTO person VALUES (1, 'Ana'), (2, 'Bo')",
    "INSERT INTO student VALUES (1)",
    "INSERT INTO course VALUES (1, 'Trees'), (2, 'Graphs')",
    "INSERT INTO seminar VALUES (2)",
)
GRAPHS = WatchDescription("Person:1", "Ana", "Seminar", "Course:2", "Graphs")


@pytest.fixture
def database() -> Memory:
    opened = Memory()
    for sql in create_tables(MAPPED, "INTEGER"):
        opened.run(sql)
    opened.install(MAPPED)
    for sql in ROWS:
        opened.run(sql)
    return opened


@pytest.fixture
def watches(database: Memory) -> WatchRegistry:
    return WatchRegistry(OpenSource("school", MAPPED, database.site))


def test_add_watch_any_class_of_family_names_same_object(watches: WatchRegistry) -> None:
    """The subscriber is named by the topmost class, as in notifications."""
    assert watches.add("Student:Ana", "Seminar:Graphs") == (GRAPHS, True)
    assert watches.add("Person:1", "Course:2")[1] is False
    assert watches.list_watches("Person:Ana") == watches.list_watches("Student:1") == [GRAPHS]
    assert watches.remove("Person:1", "Course:Graphs")[1] is True
    assert watches.list_watches() == [] and watches.remove("Person:1", "Seminar:2")[1] is False


def test_remove_watch_of_class_keeps_that_of_subclass(watches: WatchRegistry) -> None:
    assert watches.add("Person:2", "Seminar")[1] and watches.add("Person:2", "Course")[1]
    assert watches.remove("Person:2", "Course")[1]
    assert watches.list_watches("Person:2") == [WatchDescription("Person:2", "Bo", "Seminar", None, None)]


def test_add_watch_object_of_other_class_is_rejected(watches: WatchRegistry) -> None:
    with pytest.raises(InputError, match="there is no such Student"):
        watches.add("Student:Bo", "Course")
    with pytest.raises(InputError, match="there is no such Seminar"):
        watches.add("Person:1", "Seminar:Trees")


def test_remove_watch_of_class_missing_in_model_succeeds(database: Memory, watches: WatchRegistry) -> None:
    watches.add("Person:1", "Course:1")
    reduced = replace(MAPPED, model=Model({"Course": MAPPED.model.classes["Course"]}))
    newer = WatchRegistry(OpenSource("school", reduced, database.site))
    old = WatchDescription("Person:1", "Person:1", "Course", "Course:1", "Trees")
    assert newer.list_watches() == newer.list_watches("Person:1") == [old]
    assert newer.remove("Person:1", "Course:1") == (old, True)
