"""Many objects for Spark: a regular campus in which each change concerns few, however large it is.

Of ten objects six are students, two are courses and two are pieces of material. Each course has 22 attendants and one
piece of material; pieces of material are in groups of four, in which each builds on the next two, in a circle: a change
of one is a change of all four, and of their courses. So there are five references to an object.
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
"""One student in so many watches an object, any of all."""

STRIDE = 7919
"""A prime: objects that are changed or watched one after the other do not lie beside each other."""

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
"""And their tables."""


class One(NamedTuple):
    """An object."""

    cls: str
    key: int


@dataclass(frozen=True)
class Campus:
    """So many objects, of which so many are updated. Keys begin with 0."""

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
        """And as many pieces of material."""
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

    def object(self, number: int) -> One:
        """Students come first, then courses, then material."""
        if number < self.students:
            return One("Student", number)
        beyond = number - self.students
        return One("LearningMaterial" if beyond >= self.courses else "Course", beyond % self.courses)

    def changed(self) -> list[One]:
        """In the order in which they are updated."""
        return [self.object((at * STRIDE + 1) % self.objects) for at in range(self.changes)]

    def reached(self, one: One) -> list[One]:
        if one.cls != "LearningMaterial":
            return [one]
        group = range(one.key - one.key % GROUP, one.key - one.key % GROUP + GROUP)
        return [One(cls, key) for cls in ("LearningMaterial", "Course") for key in group]

    def told(self, one: One) -> set[int]:
        """The students who should know, by the rules above and not by any query."""
        reached = self.reached(one)
        found = {student for each in reached for student in self._watchers.get(each, ())}
        found |= {1 + at for at, cls in enumerate(CLASSES) if any(each.cls == cls for each in reached)}
        return found | {
            (3 * each.key + turn * STRIDE) % self.students
            for each in reached
            if each.cls == "Course"
            for turn in range(ATTENDANTS)
        }

    @cached_property
    def _watchers(self) -> dict[One, list[int]]:
        found: dict[One, list[int]] = {}
        for at in range(self.students // WATCHING):
            found.setdefault(self.object(at * STRIDE % self.objects), []).append(at * WATCHING)
        return found

    def tables(self, session: SparkSession) -> dict[str, DataFrame]:
        """All objects, links and watches, as they are before anything changes."""
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
        course, turn = _apart(ATTENDANTS)
        student = (3 * course + turn * STRIDE) % self.students
        return session.range(self.courses * ATTENDANTS).select(
            student.alias("student_id"), course.alias("course_id")
        )

    def _builds_on(self, session: SparkSession) -> DataFrame:
        later, turn = _apart(BUILT_ON)
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
        """Each update gives another title: table, op, before, after, pos."""
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
        """`object`, for Spark."""
        beyond = number - self.students
        cls = (
            F.when(beyond < 0, "Student").when(beyond < self.courses, "Course").otherwise("LearningMaterial")
        )
        return cls, F.when(beyond < 0, number).otherwise(beyond % self.courses)


def _apart(turns: int) -> tuple[Column, Column]:
    """A number of a range as the object that it belongs to, and which of its turns it is."""
    return F.floor(F.col("id") / turns), F.col("id") % turns
