"""Counts as people read them."""

from __future__ import annotations

import re


def plural(count: int, word: str) -> str:
    """1 event, 2 events, 3 matches, 4 classes, 0 properties, 1,000,000 notifications."""
    return f"{count:,} {word if count == 1 else _several(word)}"


def _several(word: str) -> str:
    if re.search(r"[^aeiou]y$", word):
        return f"{word[:-1]}ies"
    return word + ("es" if word.endswith(("ch", "s", "x")) else "s")
