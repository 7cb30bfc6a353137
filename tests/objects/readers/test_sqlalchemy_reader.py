"""Declarative classes of SQLAlchemy as models: inheritance, relationships, rejected mappings."""

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


def read_error(base: Any) -> str:
    with pytest.raises(ModelError) as caught:
        read_sqlalchemy(base)
    return caught.value.message()


def only_association(mapped: MappedModel) -> tuple[Association, Any]:
    [association_found] = mapped.model.associations
    return association_found, mapped.link(association_found)


def test_read_sqlalchemy_joined_tables() -> None:
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

    mapped = read_sqlalchemy(Base)
    assert mapped.model.classes == {
        "Person": ModelClass("Person", (Attribute("name", "string"),), subscriber=True),
        "Student": ModelClass("Student", (Attribute("since", "integer"),), ("Person",)),
    }
    assert mapped.model.is_subscriber("Student") and mapped.model.associations == ()
    assert mapped.tables == {
        "Person": ClassTable("person", "id", {"name": "name"}),
        "Student": ClassTable("student", "student_id", {"since": "since_year"}, parent_key="id"),
    }
    assert mapped.column("Student", "name") == ("person", "name")


def test_read_sqlalchemy_single_table() -> None:
    Base = base()

    class Material(Base):
        __tablename__ = "material"
        id, title, kind = key(), mapped_column(String), mapped_column(String)
        __mapper_args__ = {"polymorphic_on": "kind", "polymorphic_identity": "material"}  # noqa: RUF012

    class Script(Material):
        pages = mapped_column(Integer)
        __mapper_args__ = {"polymorphic_identity": "script"}  # noqa: RUF012

    mapped = read_sqlalchemy(Base)
    assert [each.name for each in mapped.model.attributes_of("Script")] == ["title", "pages"]
    assert mapped.tables == {
        "Material": ClassTable(
            "material", "id", {"title": "title"}, discriminator=Discriminator("kind", "material")
        ),
        "Script": ClassTable(
            "material", "id", {"pages": "pages"}, discriminator=Discriminator("kind", "script")
        ),
    }


def test_read_sqlalchemy_columns_of_sibling_class_are_excluded() -> None:
    """SQLAlchemy maps it there, too: Tutor.pages, because the table of Person has it by then."""
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

    mapped = read_sqlalchemy(Base)
    assert "pages" in Tutor.__mapper__.column_attrs
    assert {name: dict(table.columns) for name, table in mapped.tables.items()} == {
        "Person": {},
        "Student": {},
        "Author": {"pages": "pages"},
        "Tutor": {"subject": "subject"},
    }


def test_read_sqlalchemy_inherited_relationship_is_read_once() -> None:
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

    expected = Association("b", "A", "B", MANY, ONE, propagates=PropagatesMark(End.TARGET))
    assert only_association(read_sqlalchemy(Base)) == (expected, Held("a", "b_id", End.SOURCE))


@pytest.mark.parametrize("nullable", [True, False])
def test_read_sqlalchemy_unmarked_association_is_read_from_foreign_key(nullable: bool) -> None:
    Base = base()

    class A(Base):
        __tablename__ = "a"
        id, b_id = key(), mapped_column(ForeignKey("b.id"), nullable=nullable)

    class B(Base):
        __tablename__ = "b"
        id = key()
        all_a = relationship(A, backref=backref("b"))

    expected = Association("b", "A", "B", MANY, MAYBE if nullable else ONE)
    assert only_association(read_sqlalchemy(Base)) == (expected, Held("a", "b_id", End.SOURCE))
    assert read_sqlalchemy(Base).model.classes["A"].attributes == ()


def test_read_sqlalchemy_one_to_many_without_reverse() -> None:
    Base = base()

    class A(Base):
        __tablename__ = "a"
        id, b_id, other_id = key(), mapped_column(ForeignKey("b.id")), mapped_column(ForeignKey("b.id"))

    class B(Base):
        __tablename__ = "b"
        id = key()
        all_a = relationship(A, foreign_keys=A.b_id)

    mapped = read_sqlalchemy(Base)
    assert only_association(mapped) == (
        Association("all_a", "B", "A", MAYBE, MANY),
        Held("a", "b_id", End.TARGET),
    )
    assert mapped.model.classes["A"].attributes == (Attribute("other_id", "integer"),)


def test_read_sqlalchemy_one_to_one() -> None:
    Base = base()

    class A(Base):
        __tablename__ = "a"
        id, b_id = key(), mapped_column(ForeignKey("b.id"), unique=True, nullable=False)
        b = relationship("B")

    class B(Base):
        __tablename__ = "b"
        id = key()

    assert only_association(read_sqlalchemy(Base))[0] == Association("b", "A", "B", MAYBE, ONE)


def test_read_sqlalchemy_owner_of_column_comes_from_mapping() -> None:
    """One to one, marked on the side without the key: the other side has the attribute."""
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

    mapped = read_sqlalchemy(Base)
    limits = MarkLimits(frozenset("b"))
    expected = Association("b", "A", "B", ONE, MAYBE, ImplicitMark(End.SOURCE, limits))
    assert only_association(mapped) == (expected, Held("b", "a_id", End.TARGET))
    assert mapped.references_of("B") == (expected,) and mapped.references_of("A") == ()


def test_read_sqlalchemy_many_to_many_with_two_marks_and_limits() -> None:
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
    expected = Association(
        "a to b", "A", "B", implicit=ImplicitMark(End.SOURCE, limits), propagates=PropagatesMark(End.SOURCE)
    )
    mapped = read_sqlalchemy(Base)
    assert only_association(mapped) == (expected, LinkTable("ab", "a_id", "b_id"))
    assert (mapped.model.classes["A"].subscriber, mapped.model.label_of("A")) == (True, "nick")


def test_read_sqlalchemy_self_reference() -> None:
    Base = base()

    class A(Base):
        __tablename__ = "a"
        id, boss_id = key(), mapped_column(ForeignKey("a.id"))
        boss = relationship("A", remote_side="A.id", back_populates="team")
        team = relationship("A", back_populates="boss", info=association())

    expected = Association("team", "A", "A", MAYBE, MANY)
    assert only_association(read_sqlalchemy(Base)) == (expected, Held("a", "boss_id", End.TARGET))


def test_read_sqlalchemy_key_is_no_attribute_but_other_id_is() -> None:
    mapper_registry = registry()

    @mapper_registry.mapped
    class A:
        __table__ = Table(
            "a", mapper_registry.metadata, Column("code", String, primary_key=True), Column("id", Integer)
        )
        twice = column_property(__table__.c.id * 2)

    mapped = read_sqlalchemy(mapper_registry)
    assert mapped.model.classes["A"].attributes == (Attribute("id", "integer"),)
    assert mapped.tables["A"] == ClassTable("a", "code", {"id": "id"})


def test_read_sqlalchemy_composite_key_is_rejected() -> None:
    Base = base()

    class A(Base):
        __tablename__ = "a"
        one, two = key(), key()

    assert read_error(Base) == (
        "the model: composite primary keys are not supported (A); received one, two; accepted: one column; "
        "an association with attributes is a class with a key of its own and two associations"
    )


def test_read_sqlalchemy_discriminator_expression_is_rejected() -> None:
    """A trigger needs the discriminator in a column."""
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

    assert "the discriminator is an expression (A); accepted: a column" in read_error(Base)


def test_read_sqlalchemy_invalid_marks_are_rejected_at_relationship() -> None:
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

    assert read_error(Base).split("\n") == [
        "the model: 3 problems",
        "  bs is implicit, and neither A nor B is a subscriber (A.bs); "
        "accepted: an end whose class or ancestor class is a subscriber; mark A or B as subscriber",
        "  A has no such attribute (A.more); received y",
        "  not a kind of change (A.more); received changed; accepted: insert, update, delete, link or unlink",
    ]


def test_read_sqlalchemy_marks_on_both_directions_or_views_are_rejected() -> None:
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

    assert read_error(Base).split("\n") == [
        "the model: 2 problems",
        "  both directions of an association are marked (A.bs); received B.all_a; accepted: marks on one of them",
        "  a mark on a viewonly relationship (A.seen)",
    ]


def test_read_sqlalchemy_relationship_without_foreign_key_is_rejected() -> None:
    Base = base()

    class A(Base):
        __tablename__ = "a"
        id, b_code = key(), mapped_column(String)
        b = relationship("B", primaryjoin="foreign(A.b_code) == B.code")

    class B(Base):
        __tablename__ = "b"
        id, code = key(), mapped_column(String, unique=True)

    assert read_error(Base) == (
        "the model: not stored as one foreign key (A.b); received b.code = a.b_code; "
        "accepted: one column with the key of the other object"
    )


def test_read_sqlalchemy_concrete_inheritance_is_rejected() -> None:
    Base = base()

    class A(Base):
        __tablename__ = "a"
        id, code = key(), mapped_column(String)

    class Below(A):
        __tablename__ = "below"
        id, code = key(), mapped_column(String)
        __mapper_args__ = {"concrete": True}  # noqa: RUF012

    assert read_error(Base) == (
        "the model: concrete table inheritance is not supported (Below); "
        "accepted: joined tables, or a single table with a discriminator"
    )


def test_read_sqlalchemy_invalid_base_is_rejected() -> None:
    assert "not a declarative base" in read_error(object())
    assert "the model has no classes" in read_error(base())
    Base = base()

    class A(Base):
        __tablename__ = "a"
        id = key()
        b = relationship("Nowhere")

    assert "SQLAlchemy cannot configure it" in read_error(Base)


def declare_class(base: Any, name: str, /, *bases: type, **members: Any) -> Any:
    """Declare a class with a table of its name, and a key `id` unless the members have a primary key."""
    if "__table__" not in members and "__mapper_args__" not in members:
        members = {"__tablename__": name.lower(), "id": key()} | members
    return type(name, (*bases, base) if not bases or base not in bases[-1].__mro__ else bases, members)


@pytest.mark.parametrize("is_abstract", [True, False])
def test_read_sqlalchemy_marks_on_mixins_and_abstract_bases_are_inherited(is_abstract: bool) -> None:
    Base = base()
    bases = (Base,) if is_abstract else ()
    notified = subscriber(label="nick")(type("Notified", bases, {"__abstract__": True}))
    person = declare_class(Base, "Person", notified, nick=mapped_column(String))
    robot = stored(label="nick")(declare_class(Base, "Robot", notified, nick=mapped_column(String)))
    model = read_sqlalchemy(Base).model
    assert model.classes["Person"].subscriber and model.label_of("Person") == "nick"
    assert model.classes["Robot"].subscriber and model.label_of("Robot") == "nick"
    assert person and robot, "SQLAlchemy only refers to them weakly"


def test_read_sqlalchemy_mark_of_mapped_parent_is_not_repeated_in_child() -> None:
    Base = base()
    parent = subscriber(declare_class(Base, "Person"))
    child = type(
        "Student",
        (parent,),
        {"__tablename__": "student", "sid": mapped_column(ForeignKey("person.id"), primary_key=True)},
    )
    assert [each.subscriber for each in read_sqlalchemy(Base).model.classes.values()] == [
        True,
        False,
    ] and child


def test_read_sqlalchemy_link_table_without_reference_to_key_is_rejected() -> None:
    Base = base()
    table = Table("ab", Base.metadata, Column("a", ForeignKey("a.code")), Column("b", ForeignKey("b.id")))
    classes = [
        declare_class(
            Base, "A", code=mapped_column(String, unique=True), bs=relationship("B", secondary=table)
        ),
        declare_class(Base, "B"),
    ]
    assert (
        "not stored in a link table (A.bs); received a.code = ab.a; accepted: " in read_error(Base)
        and classes
    )


def test_read_sqlalchemy_table_without_primary_key_is_rejected() -> None:
    Base = base()
    table = Table("a", Base.metadata, Column("id", Integer))
    cls = declare_class(Base, "A", __table__=table, __mapper_args__={"primary_key": [table.c.id]})
    assert "the table has no primary key (A); accepted: one column" in read_error(Base) and cls


def test_read_sqlalchemy_mapper_with_other_key_than_table_is_rejected() -> None:
    Base = base()
    table = Table("a", Base.metadata, Column("id", Integer, primary_key=True), Column("x", Integer))
    cls = declare_class(Base, "A", __table__=table, __mapper_args__={"primary_key": [table.c.x]})
    assert (
        "the mapper has another primary key than the table (A); received x; accepted: id" in read_error(Base)
        and cls
    )


def discriminated(base: Any, kind: Any, identity: Any) -> Any:
    args = {"polymorphic_on": "kind", "polymorphic_identity": identity}
    return type("P", (base,), {"__tablename__": "p", "id": key(), "kind": kind, "__mapper_args__": args})


class Kind(Enum):
    PERSON = "p"
    ROBOT = "r"


def test_read_sqlalchemy_discriminator_enumeration_is_stored_by_name() -> None:
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


def test_read_sqlalchemy_discriminator_of_other_types_is_rejected() -> None:
    Base = base()
    args = {"polymorphic_on": "kind", "polymorphic_identity": 1.5}
    parent = type(
        "P",
        (Base,),
        {"__tablename__": "p", "id": key(), "kind": mapped_column(Float), "__mapper_args__": args},
    )
    child = type("R", (parent,), {"__mapper_args__": {"polymorphic_identity": 2.5}})
    assert (
        "not a value of a discriminator (P); received 1.5; accepted: a text or an integer" in read_error(Base)
        and child
    )


def test_read_sqlalchemy_shared_table_without_discriminator_is_rejected() -> None:
    """No row would show the class of an object: all of them would be of the child."""
    Base = base()
    parent = declare_class(Base, "P")
    child = type("Q", (parent,), {"z": mapped_column(Integer, nullable=True)})
    message = read_error(Base)
    assert (
        "several classes share the table p without a discriminator (Q); received P and Q" in message and child
    )


def test_read_sqlalchemy_unrelated_classes_of_one_table_are_rejected() -> None:
    Base = base()
    first = declare_class(Base, "A")
    second = type("A2", (Base,), {"__table__": first.__table__})
    assert (
        "several classes share the table a without a discriminator (A2); received A and A2"
        in read_error(Base)
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
def test_read_sqlalchemy_info_ignores_foreign_and_rejects_malformed_entries(
    info: dict[Any, Any], problem: str | None
) -> None:
    Base = base()
    classes = [
        declare_class(Base, "A", b_id=mapped_column(ForeignKey("b.id")), b=relationship("B", info=info)),
        declare_class(Base, "B"),
    ]
    if problem is None:
        assert len(read_sqlalchemy(Base).model.associations) == 1
    else:
        assert problem in read_error(Base) and classes


def test_read_sqlalchemy_malformed_marks_of_class_are_rejected() -> None:
    Base = base()
    cls = declare_class(Base, "A", __tidings__=7)
    assert "not marks (A); received 7; accepted: " in read_error(Base) and cls


def test_read_sqlalchemy_relationship_to_other_base_is_rejected() -> None:
    Base, Other = base(), base()
    other = declare_class(Other, "Z")
    join = lambda: foreign(cls.z_id) == other.id  # noqa: E731
    cls = declare_class(Base, "A", z_id=mapped_column(Integer), z=relationship(other, primaryjoin=join))
    assert "no such class (A.z); received Z; accepted: A" in read_error(Base)


def test_read_sqlalchemy_deferred_reflection_before_prepare_is_rejected() -> None:
    class Base(DeferredReflection, DeclarativeBase):
        pass

    cls = type("A", (Base,), {"__tablename__": "a"})
    assert "SQLAlchemy cannot configure it: Class" in read_error(Base) and cls


def test_read_sqlalchemy_marked_relationship_with_condition_is_rejected() -> None:
    """Triggers would follow links that the relationship does not have."""
    Base = base()
    target = declare_class(Base, "A")
    join = lambda: and_(foreign(cls.owner) == target.id, cls.kind == "a")  # noqa: E731
    cls = declare_class(
        Base,
        "C",
        owner=mapped_column(Integer),
        kind=mapped_column(String),
        a=relationship(target, primaryjoin=join, info=propagates()),
    )
    assert "a marked relationship has a further condition (C.a); received " in read_error(Base)


def test_read_sqlalchemy_unmarked_relationship_with_condition_is_read() -> None:
    Base = base()
    target = declare_class(Base, "A")
    join = lambda: and_(foreign(cls.owner) == target.id, cls.kind == "a")  # noqa: E731
    members = {"owner": mapped_column(Integer), "kind": mapped_column(String)}
    cls = declare_class(Base, "C", **members, a=relationship(target, primaryjoin=join))
    assert read_sqlalchemy(Base).links == {("C", "a"): Held("c", "owner", End.SOURCE)}


def test_read_sqlalchemy_attribute_named_like_key_column_is_kept() -> None:
    Base = base()
    cls = declare_class(
        Base, "A", id=mapped_column("code", String), number=mapped_column("id", Integer, primary_key=True)
    )
    mapped = read_sqlalchemy(Base)
    assert mapped.model.classes["A"].attributes == (Attribute("id", "string"),) and cls
    assert mapped.tables["A"] == ClassTable("a", "id", {"id": "code"})


def test_read_sqlalchemy_reference_in_key_is_one_to_one() -> None:
    Base = base()
    classes = [
        declare_class(Base, "A"),
        declare_class(
            Base, "Profile", id=mapped_column(ForeignKey("a.id"), primary_key=True), user=relationship("A")
        ),
    ]
    association_found, _ = only_association(read_sqlalchemy(Base))
    assert (association_found.source_cardinality, association_found.target_cardinality) == (
        MAYBE,
        ONE,
    ) and classes


@pytest.mark.parametrize("members", [{"__tablename__": "a.b"}, {"v": mapped_column("v.w", String)}])
def test_read_sqlalchemy_names_with_dots_are_rejected(members: dict[str, Any]) -> None:
    """A dot separates a schema from a table in SQL: `a.b` would be the table b of the schema a."""
    Base = base()
    cls = declare_class(Base, "A", **members)
    assert "a dot in a name is not supported (A); received " in read_error(Base) and cls


def test_generate_schema_quotes_names_with_quotes() -> None:
    Base = base()
    a = declare_class(Base, "A", __tablename__="we\"ird 'tab;le--", v=mapped_column("v\"a'l", String))
    join = lambda: foreign(b.a_id) == a.id  # noqa: E731
    mark = implicit(name='it\'s "odd"; DROP')
    b = subscriber(
        declare_class(
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


def test_read_sqlalchemy_computed_attributes_are_excluded() -> None:
    Base = base()
    doubled = hybrid_property(lambda self: 2 * self.x)
    cls = declare_class(Base, "A", x=mapped_column(Integer), doubled=doubled, alias=synonym("x"))
    cls.squared = column_property(cls.__table__.c.x * cls.__table__.c.x)
    assert read_sqlalchemy(Base).model.classes["A"].attributes == (Attribute("x", "integer"),)


def test_read_sqlalchemy_double_number_of_classes_takes_double_work() -> None:
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
            declare_class(
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
