"""How much is guessed, counted where it is done."""

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
    """Words that were compared, and slips that were explained."""

    compared: int = 0
    explained: int = 0


def counted(monkeypatch: pytest.MonkeyPatch) -> Guesses:
    """The counts from now on; what is counted is done as ever."""
    found, find_stop = Guesses(), ParseRun.find_stop

    def compare(word: str, known: Sequence[str], n: int, cutoff: float) -> list[str]:
        found.compared += len(known)
        return get_close_matches(word, known, n, cutoff)

    def explain(*given: Any) -> Any:
        found.explained += 1
        return find_stop(*given)

    monkeypatch.setattr(suggest, "get_close_matches", compare)
    monkeypatch.setattr(ParseRun, "find_stop", explain)
    return found
