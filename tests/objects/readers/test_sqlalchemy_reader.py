"""SQLAlchemy's declarative classes as models: inheritance, both directions of a relationship, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import Column, ForeignKey, Integer, String, Table, case, literal_column
from sqlalchemy.orm import DeclarativeBase, backref, column_property, mapped_column, registry, relationship

from tidings import association, implicit, propagates, stored, subscriber
from tidings.objects.model.class_model import (
    Association,
    Attribute,
    Cardinality,
    ChangeKind,
    End,
    ImplicitMark,
    MarkLimits,
    ModelClass,
    PropagatesMark,
)
from tidings.objects.model.draft import ModelError
from tidings.objects.model.table_mapping import ClassTable, Discriminator, LinkTable, MappedModel
from tidings.objects.model.table_mapping import ForeignKey as Held
from tidings.objects.readers.sqlalchemy_reader import read_sqlalchemy

MANY, ONE, MAYBE = Cardinality(), Cardinality(1, 1), Cardinality(0, 1)


def base() -> Any:
    class Base(DeclarativeBase):
        pass

    return Base


def key() -> Any:
    return mapped_column(Integer, primary_key=True)


def links(base: Any, name: str = "ab") -> Table:
    a, b = ForeignKey("a.id"), ForeignKey("b.id")
    return Table(
        name, base.metadata, Column("a_id", a, primary_key=True), Column("b_id", b, primary_key=True)
    )


def said(base: Any) -> str:
    with pytest.raises(ModelError) as caught:
        read_sqlalchemy(base)
    return caught.value.message()


def only(placed: MappedModel) -> tuple[Association, Any]:
    [found] = placed.model.associations
    return found, placed.link(found)


def test_joined_tables() -> None:
    Base = base()

    @subscriber
    class Person(Base):
        __tablename__ = "person"
        id, name, kind = key(), mapped_column(String), mapped_column(String)
        __mapper_args__ = {"polymorphic_on": "kind", "polymorphic_identity": "person"}  # noqa: RUF012

    class Student(Person):
        __tablename__ = "student"
        number = mapped_column("student_id", ForeignKey("person.id"), primary_key=True)
        since = mapped_column("since_year", Integer)
        __mapper_args__ = {"polymorphic_identity": "student"}  # noqa: RUF012

    placed = read_sqlalchemy(Base)
    assert placed.model.classes == {
        "Person": ModelClass("Person", (Attribute("name", "string"),), subscriber=True),
        "Student": ModelClass("Student", (Attribute("since", "integer"),), ("Person",)),
    }
    assert placed.model.is_subscriber("Student") and placed.model.associations == ()
    assert placed.tables == {
        "Person": ClassTable("person", "id", {"name": "name"}),
        "Student": ClassTable("student", "student_id", {"since": "since_year"}, parent_key="id"),
    }
    assert placed.column("Student", "name") == ("person", "name")


def test_a_single_table() -> None:
    Base = base()

    class Material(Base):
        __tablename__ = "material"
        id, title, kind = key(), mapped_column(String), mapped_column(String)
        __mapper_args__ = {"polymorphic_on": "kind", "polymorphic_identity": "material"}  # noqa: RUF012

    class Script(Material):
        pages = mapped_column(Integer)
        __mapper_args__ = {"polymorphic_identity": "script"}  # noqa: RUF012

    placed = read_sqlalchemy(Base)
    assert [each.name for each in placed.model.attributes_of("Script")] == ["title", "pages"]
    assert placed.tables == {
        "Material": ClassTable(
            "material", "id", {"title": "title"}, discriminator=Discriminator("kind", "material")
        ),
        "Script": ClassTable(
            "material", "id", {"pages": "pages"}, discriminator=Discriminator("kind", "script")
        ),
    }


def test_a_class_does_not_have_what_one_beside_its_parent_put_into_the_topmost_table() -> None:
    """SQLAlchemy maps it there, too: Tutor.pages, since the table of Person has it by then."""
    Base = base()

    class Person(Base):
        __tablename__ = "person"
        id, kind = key(), mapped_column(String)
        __mapper_args__ = {"polymorphic_on": "kind", "polymorphic_identity": "person"}  # noqa: RUF012

    class Student(Person):
        __tablename__ = "student"
        id = mapped_column(ForeignKey("person.id"), primary_key=True)
        __mapper_args__ = {"polymorphic_identity": "student"}  # noqa: RUF012

    class Author(Person):
        pages = mapped_column(Integer)
        __mapper_args__ = {"polymorphic_identity": "author"}  # noqa: RUF012

    class Tutor(Student):
        subject = mapped_column(String)
        __mapper_args__ = {"polymorphic_identity": "tutor"}  # noqa: RUF012

    placed = read_sqlalchemy(Base)
    assert "pages" in Tutor.__mapper__.column_attrs
    assert {name: dict(table.columns) for name, table in placed.tables.items()} == {
        "Person": {},
        "Student": {},
        "Author": {"pages": "pages"},
        "Tutor": {"subject": "subject"},
    }


def test_relationships_are_inherited_once() -> None:
    Base = base()

    class A(Base):
        __tablename__ = "a"
        id, b_id = key(), mapped_column(ForeignKey("b.id"), nullable=False)
        b = relationship("B", back_populates="all_a", info=propagates())

    class Below(A):
        __tablename__ = "below"
        id = mapped_column(ForeignKey("a.id"), primary_key=True)

    class B(Base):
        __tablename__ = "b"
        id = key()
        all_a = relationship("A", back_populates="b")

    made = Association("b", "A", "B", MANY, ONE, propagates=PropagatesMark(End.TARGET))
    assert only(read_sqlalchemy(Base)) == (made, Held("a", "b_id", End.SOURCE))


@pytest.mark.parametrize("nullable", [True, False])
def test_without_a_mark_the_foreign_key_says_where_to_read_from(nullable: bool) -> None:
    Base = base()

    class A(Base):
        __tablename__ = "a"
        id, b_id = key(), mapped_column(ForeignKey("b.id"), nullable=nullable)

    class B(Base):
        __tablename__ = "b"
        id = key()
        all_a = relationship(A, backref=backref("b"))

    made = Association("b", "A", "B", MANY, MAYBE if nullable else ONE)
    assert only(read_sqlalchemy(Base)) == (made, Held("a", "b_id", End.SOURCE))
    assert read_sqlalchemy(Base).model.classes["A"].attributes == ()


def test_from_the_one_to_the_many_alone() -> None:
    Base = base()

    class A(Base):
        __tablename__ = "a"
        id, b_id, other_id = key(), mapped_column(ForeignKey("b.id")), mapped_column(ForeignKey("b.id"))

    class B(Base):
        __tablename__ = "b"
        id = key()
        all_a = relationship(A, foreign_keys=A.b_id)

    placed = read_sqlalchemy(Base)
    assert only(placed) == (Association("all_a", "B", "A", MAYBE, MANY), Held("a", "b_id", End.TARGET))
    assert placed.model.classes["A"].attributes == (Attribute("other_id", "integer"),)


def test_one_to_one() -> None:
    Base = base()

    class A(Base):
        __tablename__ = "a"
        id, b_id = key(), mapped_column(ForeignKey("b.id"), unique=True, nullable=False)
        b = relationship("B")

    class B(Base):
        __tablename__ = "b"
        id = key()

    assert only(read_sqlalchemy(Base))[0] == Association("b", "A", "B", MAYBE, ONE)


def test_whose_column_it_is_the_mapping_says() -> None:
    """One to one, marked from the side without the key: the other side has the reference among its attributes."""
    Base = base()

    @subscriber
    class A(Base):
        __tablename__ = "a"
        id = key()
        b = relationship("B", back_populates="a", uselist=False, info=implicit(attributes="b"))

    class B(Base):
        __tablename__ = "b"
        id, a_id = key(), mapped_column(ForeignKey("a.id"), nullable=False)
        a = relationship("A", back_populates="b")

    placed = read_sqlalchemy(Base)
    limits = MarkLimits(frozenset("b"))
    made = Association("b", "A", "B", ONE, MAYBE, ImplicitMark(End.SOURCE, limits))
    assert only(placed) == (made, Held("b", "a_id", End.TARGET))
    assert placed.references_of("B") == (made,) and placed.references_of("A") == ()


def test_many_to_many_with_two_marks_and_limits() -> None:
    Base = base()

    @stored(label="nick")
    @subscriber
    class A(Base):
        __tablename__ = "a"
        id, nick = key(), mapped_column(String)
        bs = relationship(
            "B",
            secondary=links(Base),
            back_populates="all_a",
            info=implicit(attributes="x", kinds=("update",), name="a to b") | propagates(towards="source"),
        )

    class B(Base):
        __tablename__ = "b"
        id, x = key(), mapped_column(String)
        all_a = relationship("A", secondary="ab", back_populates="bs")

    limits = MarkLimits(frozenset("x"), frozenset((ChangeKind.UPDATE,)))
    made = Association(
        "a to b", "A", "B", implicit=ImplicitMark(End.SOURCE, limits), propagates=PropagatesMark(End.SOURCE)
    )
    placed = read_sqlalchemy(Base)
    assert only(placed) == (made, LinkTable("ab", "a_id", "b_id"))
    assert (placed.model.classes["A"].subscriber, placed.model.label_of("A")) == (True, "nick")


def test_a_class_that_refers_to_itself() -> None:
    Base = base()

    class A(Base):
        __tablename__ = "a"
        id, boss_id = key(), mapped_column(ForeignKey("a.id"))
        boss = relationship("A", remote_side="A.id", back_populates="team")
        team = relationship("A", back_populates="boss", info=association())

    made = Association("team", "A", "A", MAYBE, MANY)
    assert only(read_sqlalchemy(Base)) == (made, Held("a", "boss_id", End.TARGET))


def test_keys_are_no_attributes_and_other_ids_are() -> None:
    mapped = registry()

    @mapped.mapped
    class A:
        __table__ = Table(
            "a", mapped.metadata, Column("code", String, primary_key=True), Column("id", Integer)
        )
        twice = column_property(__table__.c.id * 2)

    placed = read_sqlalchemy(mapped)
    assert placed.model.classes["A"].attributes == (Attribute("id", "integer"),)
    assert placed.tables["A"] == ClassTable("a", "code", {"id": "id"})


def test_several_columns_as_key_are_refused() -> None:
    Base = base()

    class A(Base):
        __tablename__ = "a"
        one, two = key(), key()

    assert said(Base) == (
        "the model: composite primary keys are not supported (A); received one, two; accepted: one column; "
        "an association with attributes is a class with a key of its own and two associations"
    )


def test_classes_that_an_expression_tells_apart_are_refused() -> None:
    """A trigger has to look it up in a column."""
    Base = base()

    class A(Base):
        __tablename__ = "a"
        __mapper_args__ = {  # noqa: RUF012 - SQLAlchemy reads it
            "polymorphic_on": case((literal_column("kind") == "b", "B"), else_="A"),
            "polymorphic_identity": "A",
        }
        id = key()

    class B(A):
        __mapper_args__ = {"polymorphic_identity": "B"}  # noqa: RUF012 - SQLAlchemy reads it

    assert "the discriminator is an expression (A); accepted: a column" in said(Base)


def test_marks_that_make_no_sense_are_refused_at_their_relationship() -> None:
    Base = base()

    class A(Base):
        __tablename__ = "a"
        id = key()
        bs = relationship("B", secondary=links(Base), info=implicit())
        more = relationship(
            "B", secondary=links(Base, "more"), info=propagates(attributes=("y",), kinds="changed")
        )

    class B(Base):
        __tablename__ = "b"
        id, x = key(), mapped_column(String)

    assert said(Base).split("\n") == [
        "the model: 3 problems",
        "  bs is implicit, and neither A nor B is a subscriber (A.bs); "
        "accepted: an end whose class or ancestor class is a subscriber; mark A or B as subscriber",
        "  A has no such attribute (A.more); received y",
        "  not a kind of change (A.more); received changed; accepted: insert, update, delete, link or unlink",
    ]


def test_marks_on_both_directions_and_on_views_are_refused() -> None:
    Base = base()
    table = links(Base)

    class A(Base):
        __tablename__ = "a"
        id = key()
        bs = relationship("B", secondary=table, back_populates="all_a", info=propagates())
        seen = relationship("B", secondary=table, viewonly=True, info=propagates())
        unmarked = relationship("B", secondary=table, viewonly=True)

    class B(Base):
        __tablename__ = "b"
        id = key()
        all_a = relationship("A", secondary=table, back_populates="bs", info=propagates())

    assert said(Base).split("\n") == [
        "the model: 2 problems",
        "  both directions of an association are marked (A.bs); received B.all_a; accepted: marks on one of them",
        "  a mark on a viewonly relationship (A.seen)",
    ]


def test_links_that_are_no_foreign_keys_are_refused() -> None:
    Base = base()

    class A(Base):
        __tablename__ = "a"
        id, b_code = key(), mapped_column(String)
        b = relationship("B", primaryjoin="foreign(A.b_code) == B.code")

    class B(Base):
        __tablename__ = "b"
        id, code = key(), mapped_column(String, unique=True)

    assert said(Base) == (
        "the model: not stored as one foreign key (A.b); received b.code = a.b_code; "
        "accepted: one column with the key of the other object"
    )


def test_tables_that_repeat_their_parents_columns_are_refused() -> None:
    Base = base()

    class A(Base):
        __tablename__ = "a"
        id, code = key(), mapped_column(String)

    class Below(A):
        __tablename__ = "below"
        id, code = key(), mapped_column(String)
        __mapper_args__ = {"concrete": True}  # noqa: RUF012

    assert said(Base) == (
        "the model: concrete table inheritance is not supported (Below); "
        "accepted: joined tables, or a single table with a discriminator"
    )


def test_what_is_no_base_or_does_not_configure() -> None:
    assert "not a declarative base" in said(object())
    assert "the model has no classes" in said(base())
    Base = base()

    class A(Base):
        __tablename__ = "a"
        id = key()
        b = relationship("Nowhere")

    assert "SQLAlchemy cannot configure it" in said(Base)
