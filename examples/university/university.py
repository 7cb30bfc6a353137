"""The university of the paper on semantic notification (figures 1 and 5) as declarative classes of SQLAlchemy."""

from __future__ import annotations

from sqlalchemy import Column, ForeignKey, Table
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column, relationship

from tidings import association, implicit, propagates, subscriber


class Base(DeclarativeBase):
    """Base of all classes of the university."""


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
    """A student, who is notified of changes of attended courses."""

    __tablename__ = "student"
    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str]
    attends: Mapped[list[Course]] = relationship(
        secondary=attends, back_populates="attendants", info=implicit()
    )


class Lecturer(Base):
    """A lecturer, who gives courses."""

    __tablename__ = "lecturer"
    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str]
    phone: Mapped[str]
    gives: Mapped[list[Course]] = relationship(back_populates="lecturer", info=association())


class Course(Base):
    """A course with attendants, material, and one lecturer."""

    __tablename__ = "course"
    id: Mapped[int] = mapped_column(primary_key=True)
    title: Mapped[str]
    room: Mapped[str]
    lecturer_id: Mapped[int] = mapped_column(ForeignKey("lecturer.id"))
    lecturer: Mapped[Lecturer] = relationship(back_populates="gives")
    attendants: Mapped[list[Student]] = relationship(secondary=attends, back_populates="attends")


class LearningMaterial(Base):
    """A script or an exercise: a change of it is also a change of the courses that use it."""

    __tablename__ = "learning_material"
    id: Mapped[int] = mapped_column(primary_key=True)
    title: Mapped[str]
    used_in: Mapped[list[Course]] = relationship(secondary=used_in, info=propagates(name="usedIn"))
