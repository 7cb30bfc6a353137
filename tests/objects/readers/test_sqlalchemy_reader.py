"""SQLAlchemy's declarative classes as models: inheritance, both directions of a relationship, and what is refused."""

from __future__ import annotations

from enum import Enum
from typing import Any

import pytest
from sqlalchemy import (
    Column,
    Float,
    ForeignKey,
    Integer,
    String,
    Table,
    and_,
    case,
    create_engine,
    literal_column,
)
from sqlalchemy import Enum as EnumType
from sqlalchemy.ext.declarative import DeferredReflection
from sqlalchemy.ext.hybrid import hybrid_property
from sqlalchemy.orm import (
    DeclarativeBase,
    backref,
    column_property,
    foreign,
    mapped_column,
    registry,
    relationship,
    synonym,
)

from tests.support.executed_lines import count_executed_lines
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
from tidings.objects.triggers.generator import generate_schema
from tidings.objects.triggers.sqlite_dialect import SqliteDialect

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


def mapped(base: Any, name: str, /, *bases: type, **members: Any) -> Any:
    """Declare a class with a table of its name, and a key `id` unless the members have a primary key."""
    if "__table__" not in members and "__mapper_args__" not in members:
        members = {"__tablename__": name.lower(), "id": key()} | members
    return type(name, (*bases, base) if not bases or base not in bases[-1].__mro__ else bases, members)


@pytest.mark.parametrize("is_abstract", [True, False])
def test_marks_on_mixins_and_abstract_bases_are_inherited(is_abstract: bool) -> None:
    Base = base()
    bases = (Base,) if is_abstract else ()
    notified = subscriber(label="nick")(type("Notified", bases, {"__abstract__": True}))
    person = mapped(Base, "Person", notified, nick=mapped_column(String))
    robot = stored(label="nick")(mapped(Base, "Robot", notified, nick=mapped_column(String)))
    model = read_sqlalchemy(Base).model
    assert model.classes["Person"].subscriber and model.label_of("Person") == "nick"
    assert model.classes["Robot"].subscriber and model.label_of("Robot") == "nick"
    assert person and robot, "SQLAlchemy only refers to them weakly"


def test_mark_of_mapped_parent_is_not_repeated_in_child() -> None:
    Base = base()
    parent = subscriber(mapped(Base, "Person"))
    child = type(
        "Student",
        (parent,),
        {"__tablename__": "student", "sid": mapped_column(ForeignKey("person.id"), primary_key=True)},
    )
    assert [each.subscriber for each in read_sqlalchemy(Base).model.classes.values()] == [
        True,
        False,
    ] and child


def test_link_table_to_other_column_than_the_key_is_rejected() -> None:
    Base = base()
    table = Table("ab", Base.metadata, Column("a", ForeignKey("a.code")), Column("b", ForeignKey("b.id")))
    classes = [
        mapped(Base, "A", code=mapped_column(String, unique=True), bs=relationship("B", secondary=table)),
        mapped(Base, "B"),
    ]
    assert "not stored in a link table (A.bs); received a.code = ab.a; accepted: " in said(Base) and classes


def test_table_without_primary_key_is_rejected() -> None:
    Base = base()
    table = Table("a", Base.metadata, Column("id", Integer))
    cls = mapped(Base, "A", __table__=table, __mapper_args__={"primary_key": [table.c.id]})
    assert "the table has no primary key (A); accepted: one column" in said(Base) and cls


def test_mapper_with_another_key_than_its_table_is_rejected() -> None:
    Base = base()
    table = Table("a", Base.metadata, Column("id", Integer, primary_key=True), Column("x", Integer))
    cls = mapped(Base, "A", __table__=table, __mapper_args__={"primary_key": [table.c.x]})
    assert (
        "the mapper has another primary key than the table (A); received x; accepted: id" in said(Base)
        and cls
    )


def discriminated(base: Any, kind: Any, identity: Any) -> Any:
    args = {"polymorphic_on": "kind", "polymorphic_identity": identity}
    return type("P", (base,), {"__tablename__": "p", "id": key(), "kind": kind, "__mapper_args__": args})


class Kind(Enum):
    PERSON = "p"
    ROBOT = "r"


def test_discriminator_enumeration_is_stored_by_name() -> None:
    Base = base()
    args = {"polymorphic_on": "kind", "polymorphic_identity": Kind.PERSON}
    parent = type(
        "P",
        (Base,),
        {"__tablename__": "p", "id": key(), "kind": mapped_column(EnumType(Kind)), "__mapper_args__": args},
    )
    child = type("R", (parent,), {"__mapper_args__": {"polymorphic_identity": Kind.ROBOT}})
    tables = read_sqlalchemy(Base).tables
    assert [tables[name].discriminator for name in "PR"] == [
        Discriminator("kind", "PERSON"),
        Discriminator("kind", "ROBOT"),
    ]
    assert child


def test_discriminator_of_other_types_is_rejected() -> None:
    Base = base()
    args = {"polymorphic_on": "kind", "polymorphic_identity": 1.5}
    parent = type(
        "P",
        (Base,),
        {"__tablename__": "p", "id": key(), "kind": mapped_column(Float), "__mapper_args__": args},
    )
    child = type("R", (parent,), {"__mapper_args__": {"polymorphic_identity": 2.5}})
    assert (
        "not a value of a discriminator (P); received 1.5; accepted: a text or an integer" in said(Base)
        and child
    )


def test_classes_of_one_table_without_discriminator_are_rejected() -> None:
    """No row would tell of which class an object is: all of them would be of the child."""
    Base = base()
    parent = mapped(Base, "P")
    child = type("Q", (parent,), {"z": mapped_column(Integer, nullable=True)})
    message = said(Base)
    assert (
        "several classes share the table p without a discriminator (Q); received P and Q" in message and child
    )


def test_unrelated_classes_of_one_table_are_rejected() -> None:
    Base = base()
    first = mapped(Base, "A")
    second = type("A2", (Base,), {"__table__": first.__table__})
    assert (
        "several classes share the table a without a discriminator (A2); received A and A2" in said(Base)
        and second
    )


@pytest.mark.parametrize(
    ("info", "problem"),
    [
        ({(): 1, 5: 6, ("other", "key"): 7}, None),
        ({("__tidings__",): {}}, "not marks (A.b); received ('__tidings__',): {}"),
        ({("__tidings__", "implicit"): None}, "not marks (A.b); received ('__tidings__', 'implicit'): None"),
    ],
)
def test_info_with_foreign_or_malformed_entries(info: dict[Any, Any], problem: str | None) -> None:
    Base = base()
    classes = [
        mapped(Base, "A", b_id=mapped_column(ForeignKey("b.id")), b=relationship("B", info=info)),
        mapped(Base, "B"),
    ]
    if problem is None:
        assert len(read_sqlalchemy(Base).model.associations) == 1
    else:
        assert problem in said(Base) and classes


def test_malformed_marks_of_a_class_are_rejected() -> None:
    Base = base()
    cls = mapped(Base, "A", __tidings__=7)
    assert "not marks (A); received 7; accepted: " in said(Base) and cls


def test_relationship_to_class_of_another_base_is_rejected() -> None:
    Base, Other = base(), base()
    other = mapped(Other, "Z")
    join = lambda: foreign(cls.z_id) == other.id  # noqa: E731
    cls = mapped(Base, "A", z_id=mapped_column(Integer), z=relationship(other, primaryjoin=join))
    assert "no such class (A.z); received Z; accepted: A" in said(Base)


def test_deferred_reflection_before_prepare_is_rejected() -> None:
    class Base(DeferredReflection, DeclarativeBase):
        pass

    cls = type("A", (Base,), {"__tablename__": "a"})
    assert "SQLAlchemy cannot configure it: Class" in said(Base) and cls


def test_marked_relationship_with_further_condition_is_rejected() -> None:
    """Triggers would follow links that the relationship does not have."""
    Base = base()
    target = mapped(Base, "A")
    join = lambda: and_(foreign(cls.owner) == target.id, cls.kind == "a")  # noqa: E731
    cls = mapped(
        Base,
        "C",
        owner=mapped_column(Integer),
        kind=mapped_column(String),
        a=relationship(target, primaryjoin=join, info=propagates()),
    )
    assert "a marked relationship has a further condition (C.a); received " in said(Base)


def test_unmarked_relationship_with_further_condition_is_read() -> None:
    Base = base()
    target = mapped(Base, "A")
    join = lambda: and_(foreign(cls.owner) == target.id, cls.kind == "a")  # noqa: E731
    members = {"owner": mapped_column(Integer), "kind": mapped_column(String)}
    cls = mapped(Base, "C", **members, a=relationship(target, primaryjoin=join))
    assert read_sqlalchemy(Base).links == {("C", "a"): Held("c", "owner", End.SOURCE)}


def test_attribute_with_the_name_of_the_key_column_is_kept() -> None:
    Base = base()
    cls = mapped(
        Base, "A", id=mapped_column("code", String), number=mapped_column("id", Integer, primary_key=True)
    )
    placed = read_sqlalchemy(Base)
    assert placed.model.classes["A"].attributes == (Attribute("id", "string"),) and cls
    assert placed.tables["A"] == ClassTable("a", "id", {"id": "code"})


def test_reference_in_the_key_is_one_to_one() -> None:
    Base = base()
    classes = [
        mapped(Base, "A"),
        mapped(
            Base, "Profile", id=mapped_column(ForeignKey("a.id"), primary_key=True), user=relationship("A")
        ),
    ]
    found, _ = only(read_sqlalchemy(Base))
    assert (found.source_cardinality, found.target_cardinality) == (MAYBE, ONE) and classes


@pytest.mark.parametrize("members", [{"__tablename__": "a.b"}, {"v": mapped_column("v.w", String)}])
def test_names_with_dots_are_rejected(members: dict[str, Any]) -> None:
    """A dot separates a schema from a table in SQL: `a.b` would be the table b of the schema a."""
    Base = base()
    cls = mapped(Base, "A", **members)
    assert "a dot in a name is not supported (A); received " in said(Base) and cls


def test_names_with_quotes_are_quoted_in_triggers() -> None:
    Base = base()
    a = mapped(Base, "A", __tablename__="we\"ird 'tab;le--", v=mapped_column("v\"a'l", String))
    join = lambda: foreign(b.a_id) == a.id  # noqa: E731
    mark = implicit(name='it\'s "odd"; DROP')
    b = subscriber(
        mapped(
            Base, "B", a_id=mapped_column("f\"k'", Integer), a=relationship(a, primaryjoin=join, info=mark)
        )
    )
    engine = create_engine("sqlite://")
    Base.metadata.create_all(engine)
    with engine.begin() as connection:
        for piece in generate_schema(read_sqlalchemy(Base), SqliteDialect()):
            connection.exec_driver_sql(piece.sql)
        connection.exec_driver_sql('INSERT INTO "we""ird \'tab;le--" (id, "v""a\'l") VALUES (1, \'x\')')
        connection.exec_driver_sql('INSERT INTO b (id, "f""k\'") VALUES (2, 1)')
        connection.exec_driver_sql('UPDATE "we""ird \'tab;le--" SET "v""a\'l" = \'y\'')
        hits = connection.exec_driver_sql("SELECT subscriber_key, by FROM tidings_hits").all()
    assert [tuple(row) for row in hits] == [("2", 'it\'s "odd"; DROP')]


def test_computed_attributes_are_not_attributes_of_the_model() -> None:
    Base = base()
    doubled = hybrid_property(lambda self: 2 * self.x)
    cls = mapped(Base, "A", x=mapped_column(Integer), doubled=doubled, alias=synonym("x"))
    cls.squared = column_property(cls.__table__.c.x * cls.__table__.c.x)
    assert read_sqlalchemy(Base).model.classes["A"].attributes == (Attribute("x", "integer"),)


def test_read_twice_as_many_classes_takes_twice_the_work() -> None:
    def declare(count: int) -> Any:
        Base = base()
        parent = discriminated(Base, mapped_column(String), "p")
        Base.all = [
            parent,
            *(
                type(f"S{number}", (parent,), {"__mapper_args__": {"polymorphic_identity": f"s{number}"}})
                for number in range(count)
            ),
        ]
        Base.all += [
            mapped(
                Base,
                f"C{number}",
                p_id=mapped_column(ForeignKey("p.id")),
                p=relationship("P", info=association()),
            )
            for number in range(1, count)
        ]
        Base.registry.configure()
        return Base

    def work(base: Any) -> int:
        read = lambda: generate_schema(read_sqlalchemy(base), SqliteDialect())  # noqa: E731
        return count_executed_lines(read, "tidings.objects")

    assert work(declare(100)) < 2.2 * work(declare(50))
