"""Section 5 of paper 000: students, courses, learning material, watches, and updated objects.

The paper gives the numbers of each (P, C, L), the shares of persons that watch an object (EO) or a class (EC), and that
40% of all objects are updated. It does not give how many courses a person attends and how many use a piece of material:
here these are four and two. Each course has the same number of attendants for any size.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from sqlalchemy import Column, ForeignKey, Table
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column, relationship

from tidings import implicit, propagates, subscriber

ATTENDED, USED_IN = 4, 2
UPDATED = 0.4


class Base(DeclarativeBase):
    """The classes of figure 5 that section 5 has objects of."""


attends = Table(
    "attends",
    Base.metadata,
    Column("student_id", ForeignKey("student.id"), primary_key=True),
    Column("course_id", ForeignKey("course.id"), primary_key=True),
)
used_in = Table(
    "used_in",
    Base.metadata,
    Column("learning_material_id", ForeignKey("learning_material.id"), primary_key=True),
    Column("course_id", ForeignKey("course.id"), primary_key=True),
)


@subscriber
class Student(Base):
    """Persons (P)."""

    __tablename__ = "student"
    id: Mapped[int] = mapped_column(primary_key=True)
    title: Mapped[str]
    attends: Mapped[list[Course]] = relationship(secondary=attends, info=implicit())


class Course(Base):
    """Courses (C)."""

    __tablename__ = "course"
    id: Mapped[int] = mapped_column(primary_key=True)
    title: Mapped[str]


class LearningMaterial(Base):
    """Pieces of learning material (L)."""

    __tablename__ = "learning_material"
    id: Mapped[int] = mapped_column(primary_key=True)
    title: Mapped[str]
    used_in: Mapped[list[Course]] = relationship(secondary=used_in, info=propagates(name="usedIn"))


CLASSES = (Student, Course, LearningMaterial)
Pairs = Sequence[tuple[int, int]]


class ObjectId(NamedTuple):
    """Class and key of an object."""

    cls: type[Base]
    key: int


class PersonWatch(NamedTuple):
    """A person's watch of an object, or of a class."""

    person: int
    cls: type[Base]
    key: int | None


@dataclass(frozen=True)
class University:
    """Numbers of objects and watches. Keys begin with 1; the same numbers give the same objects and watches."""

    persons: int = 400
    courses: int = 80
    material: int = 32
    object_watches: int = 0
    class_watches: int = 0
    seed: int = 1

    def __post_init__(self) -> None:
        assert self.persons % self.courses == 0, "all courses have the same number of attendants"
        assert (ATTENDED - 1) * self.persons // self.courses < self.courses, (
            "a person attends a course only once"
        )
        assert USED_IN * self.material <= self.courses

    @classmethod
    def of_the_paper(cls, times: int, objects: float, classes: float) -> University:
        """Scale the paper's 400, 80 and 32 by `times`, with its two shares of persons."""
        persons = cls.persons * times
        return cls(
            persons,
            cls.courses * times,
            cls.material * times,
            round(objects * persons),
            round(classes * persons),
        )

    def objects(self) -> list[ObjectId]:
        sizes = zip(CLASSES, (self.persons, self.courses, self.material), strict=True)
        return [ObjectId(cls, key) for cls, size in sizes for key in range(1, size + 1)]

    @cached_property
    def attends(self) -> Pairs:
        """Pairs (person, course). Each group of as many persons as courses has another step between its courses."""
        placed = self._rng(0).permutation(self.persons)
        return [
            (person + 1, int(place + turn * (1 + place // self.courses)) % self.courses + 1)
            for person, place in enumerate(placed)
            for turn in range(ATTENDED)
        ]

    @cached_property
    def used_in(self) -> Pairs:
        """Pairs (material, course)."""
        courses = self._rng(1).permutation(self.courses)[: self.material * USED_IN]
        return [(at // USED_IN + 1, int(course) + 1) for at, course in enumerate(courses)]

    @cached_property
    def watches(self) -> list[PersonWatch]:
        """Watches of random objects, and of the three classes in turn, each by another person."""
        rng, everything = self._rng(2), self.objects()
        persons = iter((rng.permutation(self.persons) + 1).tolist())
        chosen = rng.integers(len(everything), size=self.object_watches).tolist()
        to_objects = [PersonWatch(next(persons), *everything[at]) for at in chosen]
        to_classes = [
            PersonWatch(next(persons), CLASSES[at % len(CLASSES)], None) for at in range(self.class_watches)
        ]
        return [*to_objects, *to_classes]

    def updated(self) -> list[ObjectId]:
        """Return 40% of all objects, in random order."""
        everything = self.objects()
        chosen = self._rng(3).permutation(len(everything))[: round(UPDATED * len(everything))]
        return [everything[at] for at in chosen]

    def expected_subscribers(self, one: ObjectId) -> set[int]:
        """Return the expected subscribers, from the lists above and not by a measured program."""
        reached = [one]
        if one.cls is LearningMaterial:
            reached += [ObjectId(Course, course) for course in self._courses[one.key]]
        subscribers = {person for each in reached for person in self._watchers.get(each, ())}
        subscribers |= {person for each in reached for person in self._watchers.get(each._replace(key=0), ())}
        return subscribers | {
            person for each in reached if each.cls is Course for person in self._attendants[each.key]
        }

    def usual_audience(self, cls: type[Base]) -> int:
        """Count the subscribers of an object that has no watches of its own and no subscriber for two reasons."""
        course = self.persons * ATTENDED // self.courses + self._watching(Course)
        if cls is Course:
            return course
        if cls is LearningMaterial:
            return USED_IN * course - (USED_IN - 1) * self._watching(Course) + self._watching(cls)
        return self._watching(cls)

    def _watching(self, cls: type[Base]) -> int:
        return len(self._watchers.get(ObjectId(cls, 0), ()))

    @cached_property
    def _attendants(self) -> dict[int, list[int]]:
        return _grouped((course, person) for person, course in self.attends)

    @cached_property
    def _courses(self) -> dict[int, list[int]]:
        return _grouped(self.used_in)

    @cached_property
    def _watchers(self) -> dict[ObjectId, list[int]]:
        """Watchers by object; those of a class have the key 0, which no object has."""
        watchers: dict[ObjectId, list[int]] = {}
        for each in self.watches:
            watchers.setdefault(ObjectId(each.cls, each.key or 0), []).append(each.person)
        return watchers

    def _rng(self, purpose: int) -> np.random.Generator:
        return np.random.default_rng((self.seed, purpose))


def _grouped(pairs: Iterator[tuple[int, int]] | Pairs) -> dict[int, list[int]]:
    groups: dict[int, list[int]] = {}
    for one, other in pairs:
        groups.setdefault(one, []).append(other)
    return groups
