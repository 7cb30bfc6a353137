"""The class model as a value: inheritance, limits of marks, cardinalities and names."""

from __future__ import annotations

import pytest

from tidings.objects.model.class_model import (
    Association,
    Attribute,
    Cardinality,
    ChangeKind,
    End,
    MarkLimits,
    Model,
    ModelClass,
)
from tidings.objects.model.notation import find_owning_end, normalize_type, parse_cardinality
from tidings.objects.model.table_mapping import to_snake_case

A = ModelClass("A", (Attribute("name"), Attribute("x")), subscriber=True)
B = ModelClass("B", (Attribute("y"),), ("A",))
C = ModelClass("C", (Attribute("title"),), ("B",), label="y")
AB = Association("ab", "A", "B")
BC = Association("bc", "B", "C")
MODEL = Model({"A": A, "B": B, "C": C, "D": ModelClass("D")}, (AB, BC))


def test_model_inherits_attributes_associations_and_marks() -> None:
    assert MODEL.subclasses_of("A") == ("B", "C") and MODEL.subclasses_of("C") == ()
    assert [each.name for each in MODEL.attributes_of("C")] == ["name", "x", "y", "title"]
    assert MODEL.associations_of("A") == (AB,) and MODEL.associations_of("C") == (AB, BC)
    assert [MODEL.is_subscriber(name) for name in "ABCD"] == [True, True, True, False]
    assert MODEL.is_a("C", "A") and not MODEL.is_a("A", "C")


def test_label_of_uses_declared_label_then_name_then_title() -> None:
    """Without any of them it is the key; a declared label is inherited."""
    assert [MODEL.label_of(name) for name in "ABCD"] == ["name", "name", "y", None]
    titled = Model({"C": ModelClass("C", (Attribute("title"),))})
    assert titled.label_of("C") == "title"


def test_model_equality_ignores_order() -> None:
    reordered = ModelClass("A", A.attributes[::-1], subscriber=True)
    other = Model({"D": ModelClass("D"), "C": C, "B": B, "A": reordered}, (BC, AB))
    assert other == MODEL and hash(MODEL) == hash(other)
    assert Model(MODEL.classes, (AB,)) != MODEL and Model({"A": A}) != MODEL


def test_mark_limits_admit_kinds_and_attributes() -> None:
    unlimited, attributes_of_limit = MarkLimits(), frozenset(("x",))
    assert all(unlimited.admits(kind) for kind in ChangeKind)
    attributes = MarkLimits(attributes=attributes_of_limit)
    assert attributes.admits(ChangeKind.UPDATE, frozenset(("x", "y"))) and attributes.admits(
        ChangeKind.DELETE
    )
    assert not attributes.admits(ChangeKind.UPDATE, frozenset(("y",))) and not attributes.admits(
        ChangeKind.UPDATE
    )
    kinds = MarkLimits(kinds=frozenset((ChangeKind.LINK,)))
    assert kinds.admits(ChangeKind.LINK) and not kinds.admits(ChangeKind.UPDATE, attributes_of_limit)


@pytest.mark.parametrize(
    ("text", "least", "most"),
    [
        ("1", 1, 1),
        ("*", 0, None),
        ("n", 0, None),
        ("many", 0, None),
        ("0..1", 0, 1),
        ("0 .. *", 0, None),
        ("1..*", 1, None),
        ("1..n", 1, None),
        ("2..5", 2, 5),
        ("0..-1", 0, None),
    ],
)
def test_parse_cardinality_accepts_common_notations(text: str, least: int, most: int | None) -> None:
    assert parse_cardinality(text) == Cardinality(least, most)
    assert parse_cardinality(str(Cardinality(least, most))) == Cardinality(least, most)


@pytest.mark.parametrize("text", ["", "x", "5..2", "0", "0..0", "-2", "1.5", "1..", "9" * 20])
def test_parse_cardinality_invalid_text_is_none(text: str) -> None:
    assert parse_cardinality(text) is None


def test_find_owning_end_is_many_side() -> None:
    one, many = Cardinality(1, 1), Cardinality()
    ends = [find_owning_end(*each) for each in ((one, one), (one, many), (many, one))]
    assert ends == [End.SOURCE, End.TARGET, End.SOURCE]
    assert find_owning_end(many, Cardinality(2, 5)) is None


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("LearningMaterial", "learning_material"),
        ("used in", "used_in"),
        ("usedIn", "used_in"),
        ("HTTPServer", "http_server"),
        ("a-b", "a_b"),
        ("Größe2Maß", "größe2_maß"),
        ("?", "_"),
    ],
)
def test_to_snake_case_gives_table_names(name: str, expected: str) -> None:
    assert to_snake_case(name) == expected


LONG = "x" + " " * 100_000 + "y"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("String", "string"),
        ("varchar(40)", "string"),
        (" numeric ( 10, 2 ) ", "real"),
        pytest.param(LONG, LONG, id="many blanks"),
        ("EAJava_int", "integer"),
        ("java.util.Date", "date"),
        ("Colour", "Colour"),
        ("", None),
        (None, None),
    ],
)
def test_normalize_type_maps_common_names(text: str | None, expected: str | None) -> None:
    assert normalize_type(text) == expected
