"""Class diagrams of PlantUML: accepted constructs, and errors with their position."""

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
    """Return the classes and associations of a diagram with their tables, or the error."""
    try:
        mapped = read_plantuml(text)
    except TidingsError as problem:
        return outcome(problem)
    rows = [*list_class_rows(mapped), *list_association_rows(mapped)]
    return "\n".join(" | ".join(row) for row in rows)


@pytest.mark.parametrize("pair", PAIRS, ids=str)
def test_read_plantuml_gives_tables_or_error(pair: Pair) -> None:
    assert read(pair.given) == pair.expected


def model(text: str) -> Model:
    return read_plantuml(text).model


def test_read_plantuml_ignores_order_of_lines() -> None:
    rows = ["class A {\n  x\n  y\n}", "class B <<subscriber>>", "A -- B : ab <<implicit>>", "A -- A : aa"]
    assert model("\n".join(rows)) == model("\n".join(reversed(rows)))
    assert model("\n".join(rows)) == model("\n".join(rows).replace("x\n  y", "y\n  x"))
    assert model("\n".join(rows)) != model("\n".join(rows).replace(" <<implicit>>", ""))


def test_read_plantuml_accepts_windows_line_ends_and_missing_frame() -> None:
    assert model("class A {\r\n  x : Int\r\n}\r\n") == model("@startuml\nclass A {\n  x : Int\n}\n@enduml")


def test_read_plantuml_too_long_text_or_line_is_rejected() -> None:
    with pytest.raises(SyntaxProblem, match="too long"):
        read_plantuml(" " * (MAX_LENGTH + 1))
    with pytest.raises(TidingsError, match="a line of more than 2,000 characters"):
        read_plantuml("class A\n" + "A -- A : " + "x" * 2_000)


def test_read_plantuml_error_limits_listed_lines() -> None:
    with pytest.raises(ModelError, match="100 problems") as caught:
        read_plantuml("lorem ipsum\n" * 10_000)
    assert "and 80 more" in caught.value.message()


def test_read_plantuml_long_arrows_take_linear_time() -> None:
    """No regular expression backtracks over a long line."""
    for head in ("-", "-.", "-[#red]", "-left", "<|", "o", "<<"):
        with pytest.raises(TidingsError):
            read_plantuml(f"class A\nA {head * (1_900 // len(head))} ! A")
