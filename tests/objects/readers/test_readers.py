"""Three ways to write a model, one model: the university in each, and random models in the two that are texts."""

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


@pytest.mark.parametrize("way", ["university.puml", "university.xmi", "university.py:Base"])
def test_the_paper_s_university_is_the_same_in_all_three_ways(way: str) -> None:
    assert read_model(f"{UNIVERSITY}/{way}").model == EXPECTED


def test_by_convention_it_lies_where_the_program_put_it() -> None:
    diagram, program = (
        read_model(f"{UNIVERSITY}/university.puml"),
        read_model(f"{UNIVERSITY}/university.py:Base"),
    )
    assert (diagram.tables, diagram.links) == (program.tables, program.links)
    assert diagram.tables == read_model(f"{UNIVERSITY}/university.xmi").tables


@given(models())
def test_what_is_written_as_plantuml_is_read_back(model: Model) -> None:
    assert read_plantuml(as_plantuml(model)).model == model


@given(models())
def test_what_is_written_as_xmi_is_read_back(model: Model) -> None:
    assert read_xmi(as_xmi(model)).model == model


@given(models())
def test_both_lie_in_the_same_tables(model: Model) -> None:
    diagram, document = read_plantuml(as_plantuml(model)), read_xmi(as_xmi(model))
    assert (diagram.tables, diagram.links) == (document.tables, document.links)


def broken(text: str, cut: int, length: int, put: str) -> str:
    cut %= len(text)
    return text[:cut] + put + text[cut + length :]


PIECES = st.sampled_from(
    ["", " ", "\n", '"', "{", "}", "<<", ">>", "--", "<|--", ":", "=", ",", "class ", "x", "/'", "'", "\0"]
)


@given(models(), st.integers(0), st.integers(0, 8), PIECES | st.text(max_size=4))
def test_broken_plantuml_is_refused_or_read(model: Model, cut: int, length: int, put: str) -> None:
    """Whatever it is: nothing but an error of ours leaves the reader, and one that can be shown."""
    said_well(read_plantuml, broken(as_plantuml(model), cut, length, put))


@given(st.text(st.sampled_from("AB \"*-.<>|o{}[]:=,#+\n'/()classnote"), max_size=60))
@example("class A {\n")
@example("class A\nA -- A : < <<implicit>> >")
@example('class A\nA "" -- "" A')
@example("class A\nA --[ A")
@example("}")
def test_no_text_breaks_the_reader_of_plantuml(text: str) -> None:
    said_well(read_plantuml, text)


@given(models(), st.integers(0), st.integers(0, 8), PIECES | st.text(max_size=4))
def test_broken_xmi_is_refused_or_read(model: Model, cut: int, length: int, put: str) -> None:
    said_well(read_xmi, broken(as_xmi(model).decode(), cut, length, put).encode(errors="replace"))


@given(models(), st.randoms(use_true_random=False))
def test_xmi_without_some_attributes_is_refused_or_read(model: Model, random) -> None:  # type: ignore[no-untyped-def]
    """Well-formed, but ids, types and names are missing."""
    text = as_xmi(model).decode()
    said_well(
        read_xmi,
        re.sub(r' [\w:]+="[^"]*"', lambda found: found[0] if random.random() < 0.8 else "", text).encode(),
    )


def said_well(read: Callable[[Any], MappedModel], given: str | bytes) -> None:
    with suppress(TidingsError):
        try:
            read(given)
        except TidingsError as problem:
            assert problem.message() and problem.facts()["what"]
            raise
