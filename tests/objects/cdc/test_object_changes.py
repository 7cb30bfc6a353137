"""Object changes derived from a log of row changes on Spark, for complete histories."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from tests.objects.university import MAPPED
from tidings.objects.cdc.change_log_reader import LOG_ORDER, read_log
from tidings.objects.cdc.object_changes import derive_object_changes
from tidings.objects.model.class_model import Attribute, Model, ModelClass
from tidings.objects.model.table_mapping import ClassTable, Discriminator, MappedModel

pytestmark = pytest.mark.spark

LOG = "table string, op string, before map<string,string>, after map<string,string>, id long"


def texts(row: dict[str, Any] | None) -> dict[str, str | None] | None:
    return (
        None if row is None else {name: value if value is None else str(value) for name, value in row.items()}
    )


def log_of(session, changes):
    """Return a table of changes in the given order: table, op, before, after."""
    rows = [(table, op, texts(old), texts(new), pos) for pos, (table, op, old, new) in enumerate(changes, 1)]
    return session.createDataFrame(rows, LOG)


UNIVERSITY = [
    *(("student", "r", None, {"id": id, "name": f"S{id}"}) for id in (1, 2, 3)),
    ("course", "r", None, {"id": 1, "title": "ProgrammingBasics", "room": "A1", "lecturer_id": None}),
    ("course", "r", None, {"id": 2, "title": "DataStructures", "room": "A2", "lecturer_id": None}),
    *(("learning_material", "r", None, {"id": id, "title": f"Script{id}"}) for id in (1, 2)),
    *(
        ("attends", "r", None, {"student_id": student, "course_id": course})
        for student, course in ((2, 1), (3, 2))
    ),
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
"""Figure 2 of the paper, as its text describes it."""


def test_derive_object_changes_example_of_paper_notifies_three_students(session):
    edition = {"id": 2, "title": "Script2, second edition"}
    changes = [*UNIVERSITY, ("learning_material", "u", {"id": 2, "title": "Script2"}, edition)]
    result = derive_object_changes(session, MAPPED, log_of(session, changes), ["id"])
    (change,) = result.iter_changes()
    assert (change.id, change.cls) == ("15 update LearningMaterial:2", "LearningMaterial")
    assert (change.before, change.after) == ({"title": "Script2"}, {"title": "Script2, second edition"})
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
    assert result.notified.count() == 3
    assert result.rejects.isEmpty()


ONE_TABLE = MappedModel(
    Model(
        {
            "Course": ModelClass("Course", (Attribute("title"),), subscriber=True),
            "Seminar": ModelClass("Seminar", (Attribute("topic"),), ("Course",)),
            "Lecture": ModelClass("Lecture", (Attribute("topic"),), ("Course",)),
        }
    ),
    {
        "Course": ClassTable("course", "id", {"title": "title"}, None, Discriminator("type", "c")),
        "Seminar": ClassTable("course", "id", {"topic": "topic"}, None, Discriminator("type", "s")),
        "Lecture": ClassTable("course", "id", {"topic": "about"}, None, Discriminator("type", "l")),
    },
    {},
)


def test_derive_object_changes_several_classes_in_one_table(session):
    """A discriminator names the class, which may change; a new key is an update."""

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
    result = derive_object_changes(session, ONE_TABLE, log_of(session, changes), ["id"], base)
    rows = result.notified.orderBy("change", "subscriber_key").collect()
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
    (reject,) = result.rejects.collect()
    assert (reject.id, reject.table) == ("Curse:8", "tidings_watches")


COURSE = "id int, type string, title string, topic string, about string"
WATCHES = "subscriber_class string, subscriber_key int, class string, key int"


def as_lines(changes, wrapped=False, **source):
    """Generate envelopes, one per line."""
    for number, (table, op, before, after) in enumerate(changes):
        source_fields = {"table": table, **{name: value + number for name, value in source.items()}}
        payload = {"op": op, "source": source_fields, "before": before, "after": after}
        yield json.dumps({"schema": {"type": "struct"}, "payload": payload} if wrapped else payload)


def reasons_by_subscriber(result) -> dict[str, list[str]]:
    reasons_of_subscriber: dict[str, list[str]] = {}
    for row in result.notices("university").collect():
        reasons_of_subscriber.setdefault(row.subscriber, []).extend(each.reason for each in row.because)
    return {subscriber: sorted(reasons) for subscriber, reasons in reasons_of_subscriber.items()}


def test_read_log_folder_of_envelopes_with_base_tables(session, tmp_path):
    """One file per table, as topics have it: the positions of the log give the order.

    Repeated entries count once, unusable ones are rejected with their place, and links deleted with a course are no
    changes.
    """
    room = {"id": 2, "title": "DataStructures", "room": "A2", "lecturer_id": None}
    courses = [
        ("course", "u", room, {**room, "room": "B1"}),
        ("course", "d", {"id": 2}, None),  # a log with keys only: the previous row is known
    ]
    (tmp_path / "b.jsonl").write_text("\n".join(as_lines(courses, wrapped=True, lsn=30)))
    deletion = [("attends", "d", {"student_id": 3, "course_id": 2}, None)]
    link_changes = [
        ("attends", "c", None, {"student_id": 1, "course_id": 2}),
        ("used_in", "d", {"learning_material_id": 2, "course_id": 1}, None),
    ]
    repeated = list(as_lines(link_changes, lsn=10))
    broken = [
        "{",
        '{"op": "t", "source": {"table": "attends"}}',
        '{"op": "u", "source": {"table": "course"}, "after": {"id": 9}}',
    ]
    lines = [
        *as_lines(deletion, lsn=40),
        *repeated,
        *repeated,
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
    result = derive_object_changes(session, MAPPED, log.changes, LOG_ORDER, base).with_rejects(log.rejects)
    assert [row.id for row in result.changes.orderBy("change").collect()] == [
        "00000000000000000011 unlink Course:1 usedIn LearningMaterial:2",
        "00000000000000000030 update Course:2",
        "00000000000000000031 delete Course:2",
    ]
    assert reasons_by_subscriber(result) == {
        "Student:1": ["DataStructures <-attends- you", "DataStructures <-attends- you"],
        "Student:2": ["ProgrammingBasics <-attends- you"],
        "Student:3": ["DataStructures <-attends- you", "DataStructures <-attends- you"],
    }
    assert {row.id: re.split("[:;]", row.reason)[0] for row in result.rejects.collect()} == {
        "a.jsonl:6": "expected a key (column 2)",
        "a.jsonl:7": "a truncation does not list the deleted rows",
        "a.jsonl:8": "the previous row is unknown",
    }
