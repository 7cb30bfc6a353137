"""A school as a program has it: chapters that belong to a course in a column, seminars in the table of courses, people
in two tables, and scripts that are used in courses."""

from __future__ import annotations

from uuid import UUID, uuid4

from sqlalchemy import Column, ForeignKey, Table
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column, relationship

from tidings import association, implicit, propagates, subscriber


class Base(DeclarativeBase):
    """All classes of the school."""


attends = Table(
    "attends",
    Base.metadata,
    Column("student_id", ForeignKey("student.id")),
    Column("course_id", ForeignKey("course.id")),
)
used_in = Table(
    "used_in",
    Base.metadata,
    Column("script_id", ForeignKey("script.id")),
    Column("course_id", ForeignKey("course.id")),
)


class Person(Base):
    """Nobody tells a person who is no student."""

    __tablename__ = "person"
    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str]
    kind: Mapped[str]
    __mapper_args__ = {"polymorphic_on": "kind", "polymorphic_identity": "person"}  # noqa: RUF012


@subscriber
class Student(Person):
    """Has a row in two tables."""

    __tablename__ = "student"
    id: Mapped[int] = mapped_column(ForeignKey("person.id"), primary_key=True)
    attends: Mapped[list[Course]] = relationship(secondary=attends, info=implicit())
    __mapper_args__ = {"polymorphic_identity": "student"}  # noqa: RUF012


class Course(Base):
    """Has chapters, which go with it."""

    __tablename__ = "course"
    id: Mapped[int] = mapped_column(primary_key=True)
    title: Mapped[str]
    kind: Mapped[str]
    lecturer_id: Mapped[int | None] = mapped_column(ForeignKey("lecturer.id"))
    chapters: Mapped[list[Chapter]] = relationship(back_populates="course", cascade="all, delete-orphan")
    scripts: Mapped[list[Script]] = relationship(secondary=used_in, back_populates="used_in")
    __mapper_args__ = {"polymorphic_on": "kind", "polymorphic_identity": "course"}  # noqa: RUF012


class Seminar(Course):
    """A course in the same table."""

    topic: Mapped[str | None]
    __mapper_args__ = {"polymorphic_identity": "seminar"}  # noqa: RUF012


class Lecturer(Base):
    """Her courses stay when she goes."""

    __tablename__ = "lecturer"
    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str]
    gives: Mapped[list[Course]] = relationship(info=association())


class Chapter(Base):
    """A change of one is a change of its course."""

    __tablename__ = "chapter"
    id: Mapped[int] = mapped_column(primary_key=True)
    title: Mapped[str]
    course_id: Mapped[int | None] = mapped_column(ForeignKey("course.id"))
    course: Mapped[Course | None] = relationship(back_populates="chapters", info=propagates(name="belongsTo"))


class Script(Base):
    """Its key is a UUID, which SQLite stores as other letters than Python writes."""

    __tablename__ = "script"
    id: Mapped[UUID] = mapped_column(primary_key=True, default=uuid4)
    title: Mapped[str]
    used_in: Mapped[list[Course]] = relationship(
        secondary=used_in, back_populates="scripts", info=propagates()
    )
