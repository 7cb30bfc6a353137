"""What turns text round is seen, or turns nothing but itself."""

from __future__ import annotations

import pytest

from tidings.core.text import close_bidi, escape_bidi

LRE, RLO, PDF, RLI, PDI, RLM = "\u202a", "\u202e", "\u202c", "\u2067", "\u2069", "\u200f"


def test_what_turns_is_shown_as_an_escape() -> None:
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
def test_what_is_opened_is_ended(text: str, ends: str) -> None:
    assert close_bidi(text) == text + ends
