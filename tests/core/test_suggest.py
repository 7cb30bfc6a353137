"""What somebody may have meant: as difflib finds it, and not without end."""

from __future__ import annotations

from difflib import get_close_matches

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.guesses import Guesses
from tidings.core import suggest
from tidings.core.suggest import bounded_search, closest
from tidings.events import predicates

WORDS = st.text("abcd", max_size=12)


@given(WORDS, st.lists(WORDS, max_size=12), st.sampled_from([0.6, 0.75, 0.8]))
def test_what_is_near_is_what_difflib_finds(word: str, known: list[str], cutoff: float) -> None:
    assert [closest(word, known, cutoff)] == (get_close_matches(word, known, 1, cutoff) or [None])


def test_without_bounds_there_is_always_a_hint(guesses: Guesses) -> None:
    assert {closest("prise", ["price"]) for _ in range(200)} == {"price"}
    assert guesses.compared == 200


def test_within_bounds_the_first_have_a_hint(guesses: Guesses) -> None:
    with bounded_search(10):
        found = [closest("prise", ["price", "prize", "a word that is much longer"]) for _ in range(8)]
        with bounded_search(100):
            assert closest("prise", ["price"]) is None, "whatever is opened inside is no way out"
    assert found == ["prize"] * 5 + [None] * 3
    assert guesses.compared == 10
    with bounded_search(3):
        with bounded_search(0):
            assert closest("prise", ["price"]) is None
        with bounded_search(2):
            assert closest("prise", ["price"]) == "price"
        assert closest("prise", ["price", "prize"]) == "prize"
        assert closest("prise", ["price"]) is None, "what was spent inside is spent"
    assert closest("prise", ["price"]) == "price"


def test_a_long_word_counts_for_more(guesses: Guesses) -> None:
    with bounded_search(20):
        assert closest("x" * 100, ["x" * 99]) is None and guesses.compared == 0
    assert closest("x" * 501, ["x" * 500]) is None


def test_the_first_slips_are_explained_and_of_the_others_there_is_the_place(guesses: Guesses) -> None:
    texts = [f"price < {n} adn quantity = 1" for n in range(10)] + ["price <  ", "price < 5 ?"]
    with bounded_search(100):
        problems = [problem(text) for text in texts]
    assert [each[1] for each in problems[:4]] == ["did you mean 'and'?"] * 4
    assert {each[:2] for each in problems[4:]} == {("unexpected input", None)}
    assert [each[2] for each in problems] == [11] * 10 + [8, 11]
    assert guesses.explained == 4


def problem(text: str) -> tuple[str, str | None, int]:
    with pytest.raises(predicates.SyntaxProblem) as caught:
        predicates.parse(text)
    assert caught.value.place is not None
    assert caught.value.__context__ is None, "of very many refused texts, the parsers would all be kept"
    return caught.value.what, caught.value.hint, caught.value.place.column


def test_so_many_are_compared_by_default(guesses: Guesses) -> None:
    known = [f"attribute_{n}" for n in range(1_000)]
    with bounded_search():
        found = [closest("attribute", known) for _ in range(2 * suggest.MOST // 1_000)]
    assert guesses.compared <= suggest.MOST
    assert found[0] is not None and found[-1] is None
