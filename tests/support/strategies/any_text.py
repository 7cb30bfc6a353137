"""Properties of all parsers for arbitrary text."""

from __future__ import annotations

from collections.abc import Callable

from tidings.errors import SubscriptionError


def check_words(parse: Callable[[str], object], text: str) -> None:
    """Check that parsing gives a tree, or a problem with a place inside the text."""
    try:
        parse(text)
    except SubscriptionError as problem:
        assert problem.place is not None
        lines = text.split("\n")
        assert problem.place.column <= len(lines[problem.place.line - 1]) + 1


def check_text(parse: Callable[[str], object], text: str) -> None:
    """Check that parsing gives a tree, or a problem with a message."""
    try:
        parse(text)
    except SubscriptionError as problem:
        assert problem.what
