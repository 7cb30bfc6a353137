"""Counts of the comparisons and explanations that suggestions in errors need."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

import pytest

from tidings.core import suggest
from tidings.events.parse_failure import ParseRun


@dataclass
class Guesses:
    """Numbers of compared words and of explained syntax errors."""

    compared: int = 0
    explained: int = 0


def count_guesses(monkeypatch: pytest.MonkeyPatch) -> Guesses:
    """Count comparisons and explanations from now on, without changing them."""
    counts, find_stop = Guesses(), ParseRun.find_stop

    def compare(word: str, known: Sequence[str], n: int, cutoff: float) -> list[str]:
        counts.compared += len(known)
        return get_close_matches(word, known, n, cutoff)

    def explain(*given: Any) -> Any:
        counts.explained += 1
        return find_stop(*given)

    monkeypatch.setattr(suggest, "get_close_matches", compare)
    monkeypatch.setattr(ParseRun, "find_stop", explain)
    return counts
