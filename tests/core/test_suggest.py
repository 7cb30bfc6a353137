"""Suggestions in errors agree with difflib and stay within bounds; names, lists and excerpts."""

from __future__ import annotations

from difflib import get_close_matches

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.guesses import Guesses
from tidings.core import suggest
from tidings.core.suggest import (
    MOST_COMPARED,
    bounded_search,
    closest,
    did_you_mean,
    is_name,
    join_words,
    printable,
    shorten_list,
)
from tidings.events import predicate_parser as predicates
from tidings.events.schema.event_schema import MOST_VIEWS, EventSchema, EventType


@pytest.mark.parametrize("name", ["a", "seller.city", "dining room", "é", "日本", "'", "😀", "no"])
def test_is_name_accepts_visible_text(name: str) -> None:
    assert is_name(name)


@pytest.mark.parametrize("name", ["", "a\nb", "\0", "\x1b[31m", "\ud800", "\u2028", None, 7])
def test_is_name_rejects_empty_and_control_characters(name: object) -> None:
    assert not is_name(name)


def test_join_words_and_shorten_list_for_messages() -> None:
    assert (
        join_words(["a"]) == "a"
        and join_words(["a", "b"]) == "a and b"
        and join_words(["a", "b", "c"], "or") == "a, b or c"
    )
    assert shorten_list(["a", "b"], 2) == "a, b" and shorten_list([*"abcd"], 2) == "a, b and 2 more"
    assert (
        printable("plain é") == "plain é"
        and printable("\x1b[31m") == "\\x1b[31m"
        and len(printable("x" * 1000)) == 80
    )


def test_did_you_mean_similar_name_gives_hint() -> None:
    assert did_you_mean("prise", ["price", "period"]) == "did you mean 'price'?"
    assert did_you_mean("colour", ["price", "period"]) is None
    assert did_you_mean("prise", ["price"] * (MOST_COMPARED + 1)) is None


def test_schema_cached_views_are_bounded() -> None:
    names = [f"t{number}" for number in range(MOST_VIEWS)]
    schema = EventSchema.of(event_types=[EventType(name) for name in names])
    for number in range(2 * MOST_VIEWS):
        types = (names[number % MOST_VIEWS], names[0], names[number // 2])
        assert schema.view(types).types == tuple(dict.fromkeys(types))
    assert len(schema._views) <= MOST_VIEWS


WORDS = st.text("abcd", max_size=12)


@given(WORDS, st.lists(WORDS, max_size=12), st.sampled_from([0.6, 0.75, 0.8]))
def test_closest_agrees_with_difflib(word: str, known: list[str], cutoff: float) -> None:
    assert [closest(word, known, cutoff)] == (get_close_matches(word, known, 1, cutoff) or [None])


def test_closest_without_bounds_always_searches(guesses: Guesses) -> None:
    assert {closest("prise", ["price"]) for _ in range(200)} == {"price"}
    assert guesses.compared == 200


def test_bounded_search_limits_comparisons(guesses: Guesses) -> None:
    with bounded_search(10):
        suggestions = [closest("prise", ["price", "prize", "a word that is much longer"]) for _ in range(8)]
        with bounded_search(100):
            assert closest("prise", ["price"]) is None, "an inner bound does not lift the outer one"
    assert suggestions == ["prize"] * 5 + [None] * 3
    assert guesses.compared == 10
    with bounded_search(3):
        with bounded_search(0):
            assert closest("prise", ["price"]) is None
        with bounded_search(2):
            assert closest("prise", ["price"]) == "price"
        assert closest("prise", ["price", "prize"]) == "prize"
        assert closest("prise", ["price"]) is None, "comparisons of inner blocks count"
    assert closest("prise", ["price"]) == "price"


def test_spend_budget_long_word_costs_more(guesses: Guesses) -> None:
    with bounded_search(20):
        assert closest("x" * 100, ["x" * 99]) is None and guesses.compared == 0
    assert closest("x" * 501, ["x" * 500]) is None


def test_bounded_search_later_errors_have_position_only(guesses: Guesses) -> None:
    texts = [f"price < {n} adn quantity = 1" for n in range(10)] + ["price <  ", "price < 5 ?"]
    with bounded_search(100):
        problems = [parse_problem(text) for text in texts]
    assert [each[1] for each in problems[:4]] == ["did you mean 'and'?"] * 4
    assert {each[:2] for each in problems[4:]} == {("unexpected input", None)}
    assert [each[2] for each in problems] == [11] * 10 + [8, 11]
    assert guesses.explained == 4


def parse_problem(text: str) -> tuple[str, str | None, int]:
    with pytest.raises(predicates.SyntaxProblem) as caught:
        predicates.parse(text)
    assert caught.value.place is not None
    assert caught.value.__context__ is None, "errors of many texts would keep all their parsers in memory"
    return caught.value.what, caught.value.hint, caught.value.place.column


def test_bounded_search_default_limit_stops_searching(guesses: Guesses) -> None:
    known = [f"attribute_{n}" for n in range(1_000)]
    with bounded_search():
        suggestions = [closest("attribute", known) for _ in range(2 * suggest.MOST // 1_000)]
    assert guesses.compared <= suggest.MOST
    assert suggestions[0] is not None and suggestions[-1] is None
