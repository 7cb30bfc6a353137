"""Class diagrams of PlantUML: what real ones have in them, and what is refused with its place."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.pairs import Pair, outcome, read_pairs
from tidings.errors import SyntaxProblem, TidingsError
from tidings.objects.model.class_model import Model
from tidings.objects.model.draft import ModelError
from tidings.objects.model.summary import list_association_rows, list_class_rows
from tidings.objects.readers.plantuml_parser import MAX_LENGTH
from tidings.objects.readers.plantuml_reader import read_plantuml

PAIRS = read_pairs(Path(__file__).with_name("plantuml.txt"))


def read(text: str) -> str:
    """The classes and associations of a diagram with where they lie, or what is said about it."""
    try:
        placed = read_plantuml(text)
    except TidingsError as problem:
        return outcome(problem)
    rows = [*list_class_rows(placed), *list_association_rows(placed)]
    return "\n".join(" | ".join(row) for row in rows)


@pytest.mark.parametrize("pair", PAIRS, ids=str)
def test_pairs(pair: Pair) -> None:
    assert read(pair.given) == pair.expected


def model(text: str) -> Model:
    return read_plantuml(text).model


def test_the_order_of_lines_makes_no_difference() -> None:
    rows = ["class A {\n  x\n  y\n}", "class B <<subscriber>>", "A -- B : ab <<implicit>>", "A -- A : aa"]
    assert model("\n".join(rows)) == model("\n".join(reversed(rows)))
    assert model("\n".join(rows)) == model("\n".join(rows).replace("x\n  y", "y\n  x"))
    assert model("\n".join(rows)) != model("\n".join(rows).replace(" <<implicit>>", ""))


def test_windows_line_ends_and_no_frame() -> None:
    assert model("class A {\r\n  x : Int\r\n}\r\n") == model("@startuml\nclass A {\n  x : Int\n}\n@enduml")


def test_too_long_texts_and_lines() -> None:
    with pytest.raises(SyntaxProblem, match="too long"):
        read_plantuml(" " * (MAX_LENGTH + 1))
    with pytest.raises(TidingsError, match="a line of more than 2,000 characters"):
        read_plantuml("class A\n" + "A -- A : " + "x" * 2_000)


def test_of_a_text_that_is_no_diagram_some_lines_are_told() -> None:
    with pytest.raises(ModelError, match="100 problems") as caught:
        read_plantuml("lorem ipsum\n" * 10_000)
    assert "and 80 more" in caught.value.message()


def test_arrows_of_any_length_take_no_time() -> None:
    """No pattern goes back and forth over a long line."""
    for head in ("-", "-.", "-[#red]", "-left", "<|", "o", "<<"):
        with pytest.raises(TidingsError):
            read_plantuml(f"class A\nA {head * (1_900 // len(head))} ! A")
