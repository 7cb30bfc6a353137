"""Counts as people read them."""

from __future__ import annotations

import pytest

from tidings.core.text import plural


@pytest.mark.parametrize(
    ("one", "several"),
    [
        ("event", "events"),
        ("match", "matches"),
        ("class", "classes"),
        ("property", "properties"),
        ("day", "days"),
    ],
)
def test_a_count_has_the_word_that_goes_with_it(one: str, several: str) -> None:
    counted = [plural(count, one) for count in (0, 1, 2, 1_000_000)]
    assert counted == [f"0 {several}", f"1 {one}", f"2 {several}", f"1,000,000 {several}"]
