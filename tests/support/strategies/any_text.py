"""What every language promises of any text at all."""

from __future__ import annotations

from collections.abc import Callable

from tidings.errors import SubscriptionError


def check_words(parse: Callable[[str], object], text: str) -> None:
    """There is a tree, or a problem with a place inside the text, and nothing else."""
    try:
        parse(text)
    except SubscriptionError as problem:
        assert problem.place is not None
        lines = text.split("\n")
        assert problem.place.column <= len(lines[problem.place.line - 1]) + 1


def check_text(parse: Callable[[str], object], text: str) -> None:
    """There is a tree, or a problem that says what is wrong."""
    try:
        parse(text)
    except SubscriptionError as problem:
        assert problem.what
