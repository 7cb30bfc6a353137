"""Errors: underlined places, messages and facts, pickling."""

from __future__ import annotations

import pickle

import pytest

from tidings.errors import CheckProblem, ConsistencyProblem, InputError, Place, SetupError, TidingsError


def draw_lines(text: str, start: int, end: int, note: str = "") -> list[str]:
    return Place.at(text, start, end).draw(note).split("\n")


def test_place_draw_underlines_with_note() -> None:
    assert draw_lines("prise < 200", 0, 5, "did you mean 'price'?") == [
        "  prise < 200",
        "  ^^^^^   did you mean 'price'?",
    ]


def test_place_in_later_line_has_line_and_column() -> None:
    text = "price < 200 and\n  prise > 5"
    place = Place.at(text, 18, 23)
    assert (place.line, place.column, place.describe()) == (2, 3, "line 2, column 3")
    assert place.draw() == "    prise > 5\n    ^^^^^"


def test_place_draw_at_end_of_text_is_shown() -> None:
    assert draw_lines("price < ", 8, 9) == ["  price < ", "          ^"]


def test_place_draw_long_line_is_shortened_around_place() -> None:
    line, under = draw_lines("x" * 5000 + "HERE" + "y" * 5000, 5000, 5004)
    assert len(line) < 130
    assert line.startswith("  …x") and line.endswith("y…")
    assert line[under.index("^") :][:4] == "HERE"
    assert under.count("^") == 4


def test_place_draw_wide_characters_take_two_columns_and_tabs_stay() -> None:
    assert draw_lines("日本 = 5", 0, 2) == ["  日本 = 5", "  ^^^^"]
    assert draw_lines("\t日 < x", 5, 6) == ["  \t日 < x", "  \t     ^"]


@pytest.mark.parametrize(
    "error",
    [
        ConsistencyProblem("R2", "price is mandatory for furniture", hint="give it"),
        CheckProblem("no such attribute", place=Place.at("prise < 5", 0, 5), hint="did you mean 'price'?"),
        SetupError("no Java", accepted="Java 17 or newer", received="Java 8", where="PATH"),
    ],
)
def test_errors_pickled_keep_message_and_facts(error: TidingsError) -> None:
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is type(error)
    assert (str(copy), copy.facts()) == (str(error), error.facts())


def test_error_message_and_facts_contain_all_parts() -> None:
    error = InputError(
        "not a number", where="line 3", received="'x'", accepted="digits", hint="remove the quotes"
    )
    assert str(error) == "not a number (line 3); received 'x'; accepted: digits; remove the quotes"
    assert error.facts() == {
        "error": "InputError",
        "what": "not a number",
        "where": "line 3",
        "received": "'x'",
        "accepted": "digits",
        "hint": "remove the quotes",
    }
