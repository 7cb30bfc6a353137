"""Bidirectional controls are escaped or closed; counts agree with their nouns."""

from __future__ import annotations

import pytest

from tidings.core.text import close_bidi, escape_bidi, plural


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
def test_plural_agrees_with_count(one: str, several: str) -> None:
    phrases = [plural(count, one) for count in (0, 1, 2, 1_000_000)]
    assert phrases == [f"0 {several}", f"1 {one}", f"2 {several}", f"1,000,000 {several}"]


LRE, RLO, PDF, RLI, PDI, RLM = "\u202a", "\u202e", "\u202c", "\u2067", "\u2069", "\u200f"


def test_escape_bidi_escapes_controls_only() -> None:
    assert escape_bidi(f"a{RLO}b{PDF}") == r"a\u202eb\u202c"
    assert escape_bidi(f"שלום{RLM}!") == f"שלום{RLM}!", "ordinary text stays"
    every = "".join(map(chr, range(0x2000, 0x2100)))
    assert [f"{ord(one):04x}" for one in every if escape_bidi(one) != one] == (
        ["202a", "202b", "202c", "202d", "202e", "2066", "2067", "2068", "2069"]
    )


@pytest.mark.parametrize(
    ("text", "ends"),
    [
        ("a", ""),
        (f"a{RLO}b", PDF),
        (f"a{RLO}b{PDF}", ""),
        (f"{RLI}a{RLO}b", PDF + PDI),
        (f"{RLI}a{RLO}b{PDI}", ""),
        (f"{PDF}{PDI}a", ""),
        (f"{LRE}{RLO}a{PDF}", PDF),
    ],
)
def test_close_bidi_terminates_open_controls(text: str, ends: str) -> None:
    assert close_bidi(text) == text + ends
