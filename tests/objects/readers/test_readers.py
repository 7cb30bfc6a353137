"""Three notations of one model: the university in each, and random models in two of them."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.support.paths import ROOT
from tests.support.strategies.models import as_plantuml, as_xmi, models
from tidings.cli.objects.model import read_model
from tidings.errors import TidingsError
from tidings.objects.model.class_model import (
    Association,
    Attribute,
    Cardinality,
    End,
    ImplicitMark,
    Model,
    ModelClass,
    PropagatesMark,
)
from tidings.objects.model.table_mapping import MappedModel
from tidings.objects.readers.plantuml_reader import read_plantuml
from tidings.objects.readers.xmi_reader import read_xmi

UNIVERSITY = ROOT / "examples/university"
MANY, ONE = Cardinality(), Cardinality(1, 1)
NAME, TITLE = Attribute("name", "string"), Attribute("title", "string")

EXPECTED = Model(
    {
        "Student": ModelClass("Student", (NAME,), subscriber=True),
        "Lecturer": ModelClass("Lecturer", (NAME, Attribute("phone", "string"))),
        "Course": ModelClass("Course", (TITLE, Attribute("room", "string"))),
        "LearningMaterial": ModelClass("LearningMaterial", (TITLE,)),
    },
    (
        Association("attends", "Student", "Course", implicit=ImplicitMark(End.SOURCE)),
        Association("gives", "Lecturer", "Course", ONE, MANY),
        Association("usedIn", "LearningMaterial", "Course", propagates=PropagatesMark(End.TARGET)),
    ),
)
"""Figures 1 and 5 of the paper."""


@pytest.mark.parametrize("file", ["university.puml", "university.xmi", "university.py:Base"])
def test_read_model_university_is_equal_in_all_notations(file: str) -> None:
    assert read_model(f"{UNIVERSITY}/{file}").model == EXPECTED


def test_read_model_tables_by_convention_equal_those_of_program() -> None:
    diagram, program = (
        read_model(f"{UNIVERSITY}/university.puml"),
        read_model(f"{UNIVERSITY}/university.py:Base"),
    )
    assert (diagram.tables, diagram.links) == (program.tables, program.links)
    assert diagram.tables == read_model(f"{UNIVERSITY}/university.xmi").tables


@given(models())
def test_read_plantuml_round_trip_restores_model(model: Model) -> None:
    assert read_plantuml(as_plantuml(model)).model == model


@given(models())
def test_read_xmi_round_trip_restores_model(model: Model) -> None:
    assert read_xmi(as_xmi(model)).model == model


@given(models())
def test_read_plantuml_and_xmi_give_equal_tables(model: Model) -> None:
    diagram, document = read_plantuml(as_plantuml(model)), read_xmi(as_xmi(model))
    assert (diagram.tables, diagram.links) == (document.tables, document.links)


def damage(text: str, cut: int, length: int, inserted: str) -> str:
    cut %= len(text)
    return text[:cut] + inserted + text[cut + length :]


PIECES = st.sampled_from(
    ["", " ", "\n", '"', "{", "}", "<<", ">>", "--", "<|--", ":", "=", ",", "class ", "x", "/'", "'", "\0"]
)


@given(models(), st.integers(0), st.integers(0, 8), PIECES | st.text(max_size=4))
def test_read_plantuml_damaged_text_is_read_or_rejected(
    model: Model, cut: int, length: int, inserted: str
) -> None:
    """The reader raises only its own errors, and each can be shown."""
    check_read_or_rejected(read_plantuml, damage(as_plantuml(model), cut, length, inserted))


@given(st.text(st.sampled_from("AB \"*-.<>|o{}[]:=,#+\n'/()classnote"), max_size=60))
@example("class A {\n")
@example("class A\nA -- A : < <<implicit>> >")
@example('class A\nA "" -- "" A')
@example("class A\nA --[ A")
@example("}")
def test_read_plantuml_any_text_is_read_or_rejected(text: str) -> None:
    check_read_or_rejected(read_plantuml, text)


@given(models(), st.integers(0), st.integers(0, 8), PIECES | st.text(max_size=4))
def test_read_xmi_damaged_text_is_read_or_rejected(
    model: Model, cut: int, length: int, inserted: str
) -> None:
    check_read_or_rejected(
        read_xmi, damage(as_xmi(model).decode(), cut, length, inserted).encode(errors="replace")
    )


@given(models(), st.randoms(use_true_random=False))
def test_read_xmi_missing_attributes_is_read_or_rejected(model: Model, random) -> None:  # type: ignore[no-untyped-def]
    """The document is well-formed, but ids, types and names are missing."""
    text = as_xmi(model).decode()
    check_read_or_rejected(
        read_xmi,
        re.sub(r' [\w:]+="[^"]*"', lambda match: match[0] if random.random() < 0.8 else "", text).encode(),
    )


def check_read_or_rejected(read: Callable[[Any], MappedModel], text: str | bytes) -> None:
    with suppress(TidingsError):
        try:
            read(text)
        except TidingsError as problem:
            assert problem.message() and problem.facts()["what"]
            raise
