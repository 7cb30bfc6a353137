"""Many objects for Spark: a regular campus in which each change affects few subscribers, for any size.

Of ten objects six are students, two are courses and two are pieces of material. Each course has 22 attendants and one
piece of material. Pieces of material are in groups of four, in which each builds on the next two, in a cycle: a change
of one is a change of all four, and of their courses. So there are five references per object.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from tidings.objects.model.table_mapping import MappedModel
from tidings.objects.readers.plantuml_reader import read_plantuml

ATTENDANTS, GROUP, BUILT_ON = 22, 4, 2
WATCHING = 12
"""One of this many students watches an object, of any class."""

STRIDE = 7919
"""A prime: consecutive changed or watched objects are not adjacent."""

MODEL = """
class Student <<subscriber>> {
  title
}
class Course {
  title
}
class LearningMaterial {
  title
}
Student "*" -- "*" Course : attends <<implicit>> >
LearningMaterial "*" --> "*" Course : usedIn <<propagates>>
LearningMaterial "*" --> "*" LearningMaterial : buildsOn <<propagates {towards = source, LATER}>>
""".replace("LATER", "source_column = later, target_column = earlier")
CLASSES = {"Student": "student", "Course": "course", "LearningMaterial": "learning_material"}
"""Classes and their tables."""


class ObjectId(NamedTuple):
    """Class and key of an object."""

    cls: str
    key: int


@dataclass(frozen=True)
class Campus:
    """Numbers of objects and of updated objects. Keys begin with 0."""

    objects: int
    changes: int

    def __post_init__(self) -> None:
        assert self.objects % 40 == 0, "ten objects are six students, two courses, two of a group of four"
        assert self.changes <= self.objects and self.objects % STRIDE

    @cached_property
    def placed(self) -> MappedModel:
        return read_plantuml(MODEL)

    @property
    def courses(self) -> int:
        """Return the number of courses, which is also that of pieces of material."""
        return self.objects // 5

    @property
    def students(self) -> int:
        return 3 * self.courses

    @property
    def references(self) -> int:
        return self.courses * (ATTENDANTS + 1 + BUILT_ON)

    @property
    def watches(self) -> int:
        return len(CLASSES) + self.students // WATCHING

    def object(self, number: int) -> ObjectId:
        """Return an object by number: students first, then courses, then material."""
        if number < self.students:
            return ObjectId("Student", number)
        beyond = number - self.students
        return ObjectId("LearningMaterial" if beyond >= self.courses else "Course", beyond % self.courses)

    def changed(self) -> list[ObjectId]:
        """Return the updated objects in order."""
        return [self.object((at * STRIDE + 1) % self.objects) for at in range(self.changes)]

    def reached(self, one: ObjectId) -> list[ObjectId]:
        if one.cls != "LearningMaterial":
            return [one]
        group = range(one.key - one.key % GROUP, one.key - one.key % GROUP + GROUP)
        return [ObjectId(cls, key) for cls in ("LearningMaterial", "Course") for key in group]

    def expected_subscribers(self, one: ObjectId) -> set[int]:
        """Return the expected subscribers, from the rules above and not by a query."""
        reached = self.reached(one)
        subscribers = {student for each in reached for student in self._watchers.get(each, ())}
        subscribers |= {1 + at for at, cls in enumerate(CLASSES) if any(each.cls == cls for each in reached)}
        return subscribers | {
            (3 * each.key + turn * STRIDE) % self.students
            for each in reached
            if each.cls == "Course"
            for turn in range(ATTENDANTS)
        }

    @cached_property
    def _watchers(self) -> dict[ObjectId, list[int]]:
        watchers: dict[ObjectId, list[int]] = {}
        for at in range(self.students // WATCHING):
            watchers.setdefault(self.object(at * STRIDE % self.objects), []).append(at * WATCHING)
        return watchers

    def tables(self, session: SparkSession) -> dict[str, DataFrame]:
        """Return all objects, links and watches before the changes."""
        sizes = zip(CLASSES.values(), (self.students, self.courses, self.courses), strict=True)
        objects = {
            name: session.range(size).select("id", F.lit("old").alias("title")) for name, size in sizes
        }
        return objects | {
            "attends": self._attends(session),
            "used_in": session.range(self.courses).select(
                F.col("id").alias("learning_material_id"), F.col("id").alias("course_id")
            ),
            "builds_on": self._builds_on(session),
            "tidings_watches": self._watches(session),
        }

    def _attends(self, session: SparkSession) -> DataFrame:
        course, turn = _split_row_number(ATTENDANTS)
        student = (3 * course + turn * STRIDE) % self.students
        return session.range(self.courses * ATTENDANTS).select(
            student.alias("student_id"), course.alias("course_id")
        )

    def _builds_on(self, session: SparkSession) -> DataFrame:
        later, turn = _split_row_number(BUILT_ON)
        earlier = later - later % GROUP + (later % GROUP + 1 + turn) % GROUP
        return session.range(self.courses * BUILT_ON).select(later.alias("later"), earlier.alias("earlier"))

    def _watches(self, session: SparkSession) -> DataFrame:
        cls, key = self._object(F.col("id") * STRIDE % self.objects)
        student = F.lit("Student").alias("subscriber_class")
        watching = session.range(self.students // WATCHING).select(
            student, (F.col("id") * WATCHING).alias("subscriber_key"), cls.alias("class"), key.alias("key")
        )
        classes = F.element_at(F.array(*map(F.lit, CLASSES)), (F.col("id") + 1).cast("int"))
        everything = session.range(len(CLASSES)).select(
            student, F.col("id") + 1, classes, F.lit(None).cast("long")
        )
        return watching.union(everything)

    def log(self, session: SparkSession) -> DataFrame:
        """Return the log of updates, each of a title: table, op, before, after, pos."""
        cls, key = self._object((F.col("id") * STRIDE + 1) % self.objects)
        tables = F.create_map(*(F.lit(word) for pair in CLASSES.items() for word in pair))
        before, after = (
            F.create_map(F.lit("id"), key.cast("string"), F.lit("title"), F.lit(title)).alias(name)
            for name, title in (("before", "old"), ("after", "new"))
        )
        table = F.element_at(tables, cls).alias("table")
        return session.range(self.changes).select(
            table, F.lit("u").alias("op"), before, after, F.col("id").alias("pos")
        )

    def _object(self, number: Column) -> tuple[Column, Column]:
        """Return `object` as Spark columns."""
        beyond = number - self.students
        cls = (
            F.when(beyond < 0, "Student").when(beyond < self.courses, "Course").otherwise("LearningMaterial")
        )
        return cls, F.when(beyond < 0, number).otherwise(beyond % self.courses)


def _split_row_number(turns: int) -> tuple[Column, Column]:
    """Split a row number into the object that it belongs to, and its turn."""
    return F.floor(F.col("id") / turns), F.col("id") % turns
