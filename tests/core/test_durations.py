"""Durations: accepted notations, rejected texts, formatting."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidings.core import durations
from tidings.errors import InputError


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90 s", 90),
        ("90s", 90),
        ("1 second", 1),
        ("10 minutes", 600),
        ("10 min", 600),
        (" 1 Hour ", 3_600),
        ("2 h", 7_200),
        ("2 days", 172_800),
        ("365 d", 31_536_000),
    ],
)
def test_parse_accepted_notations_gives_seconds(text: str, seconds: int) -> None:
    assert durations.parse(text) == seconds


@pytest.mark.parametrize(
    "text",
    [
        "",
        "10",
        "minutes",
        "ten minutes",
        "1.5 hours",
        "-1 s",
        "10 m",
        "1 month",
        "1 h 30 min",
        "PT10M",
        "١ s",
        "1 hourss",
    ],
)
def test_parse_other_text_is_rejected_with_accepted_forms(text: str) -> None:
    with pytest.raises(InputError, match=r"not a duration; received .*accepted: .*90 seconds, 10 minutes"):
        durations.parse(text)


def test_check_out_of_range_is_rejected() -> None:
    with pytest.raises(InputError, match=r"received 0 s; .*; to be notified at once, leave it out"):
        durations.parse("0 minutes")
    with pytest.raises(InputError, match="from 1 second to 365 days"):
        durations.parse("366 days")
    with pytest.raises(InputError):
        durations.check(-1)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(1, "1 second"), (90, "90 seconds"), (600, "10 minutes"), (3_600, "1 hour"), (604_800, "7 days")],
)
def test_show_uses_largest_dividing_unit(seconds: int, text: str) -> None:
    assert durations.show(seconds) == text


@given(st.integers(1, durations.LONGEST))
def test_parse_of_show_is_same_duration(seconds: int) -> None:
    assert durations.parse(durations.show(seconds)) == seconds


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.2, "less than a second"),
        (1, "1 second"),
        (59.9, "59 seconds"),
        (307, "5 minutes"),
        (100_000, "1 day"),
    ],
)
def test_about_rounds_down_to_largest_unit(seconds: float, words: str) -> None:
    assert durations.about(seconds) == words
