"""A school as declarative classes, with columns, shared tables, joined tables and link tables.

Chapters belong to a course by a column, seminars share the table of courses, people have two tables, and scripts are
used in courses."""

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
    """A person; one who is no student is not notified."""

    __tablename__ = "person"
    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str]
    kind: Mapped[str]
    __mapper_args__ = {"polymorphic_on": "kind", "polymorphic_identity": "person"}  # noqa: RUF012


@subscriber
class Student(Person):
    """A student, with rows in two tables."""

    __tablename__ = "student"
    id: Mapped[int] = mapped_column(ForeignKey("person.id"), primary_key=True)
    attends: Mapped[list[Course]] = relationship(secondary=attends, info=implicit())
    __mapper_args__ = {"polymorphic_identity": "student"}  # noqa: RUF012


class Course(Base):
    """A course with chapters, which are deleted with it."""

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
    """A lecturer, whose courses remain when she is deleted."""

    __tablename__ = "lecturer"
    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str]
    gives: Mapped[list[Course]] = relationship(info=association())


class Chapter(Base):
    """A chapter; its change is a change of its course."""

    __tablename__ = "chapter"
    id: Mapped[int] = mapped_column(primary_key=True)
    title: Mapped[str]
    course_id: Mapped[int | None] = mapped_column(ForeignKey("course.id"))
    course: Mapped[Course | None] = relationship(back_populates="chapters", info=propagates(name="belongsTo"))


class Script(Base):
    """A script; its key is a UUID, which SQLite stores in another form than Python writes."""

    __tablename__ = "script"
    id: Mapped[UUID] = mapped_column(primary_key=True, default=uuid4)
    title: Mapped[str]
    used_in: Mapped[list[Course]] = relationship(
        secondary=used_in, back_populates="scripts", info=propagates()
    )
