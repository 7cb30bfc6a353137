"""What somebody may have meant by a word that is none of those that there are.

    near("prise", ["price", "quantity"])     'price'

To whoever mistyped a word, a hint is worth some milliseconds. When very many are refused together, nobody reads so many
hints, and whoever sends them on purpose would have this machine compare words for minutes: inside `bounded()` only so
many are compared, so the first that are refused have their hints, and the others go without.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from difflib import get_close_matches

MOST = 50_000
"""How many words are compared for all that comes together: in about a second, if they are much alike."""
LONGEST = 500
"""Nobody mistypes a word that is longer."""
SQUARE = 400
"""The square of so many characters counts as another word: long words take longer to compare, as their squares do."""


class _Left:
    """How many may be compared yet."""

    def __init__(self, count: int) -> None:
        self.count = count


_left: ContextVar[_Left | None] = ContextVar("left", default=None)


@contextmanager
def bounded(most: int | None = None) -> Iterator[None]:
    """Guess within bounds while this is open, `MOST` if none are given; with 0, nothing. Inside another one, what is
    left there holds, too, and what is spent is spent there.
    """
    outer, allowed = _left.get(), MOST if most is None else most
    inner = _Left(allowed if outer is None else min(allowed, outer.count))
    before, token = inner.count, _left.set(inner)
    try:
        yield
    finally:
        _left.reset(token)
        if outer is not None:
            outer.count -= before - inner.count


def spend(count: int) -> bool:
    """Whether so much may be compared yet, or what takes as long. Once there was too little left, nothing is."""
    left = _left.get()
    if left is None:
        return True
    enough = left.count >= count
    left.count = left.count - count if enough else 0
    return enough


def near(word: str, known: Iterable[str], cutoff: float = 0.6) -> str | None:
    """The word that is most like another, if one is.

    What is much longer or shorter cannot be. difflib knows that, too, but asks itself for each in a call of its own.
    """
    size = len(word)
    if size > LONGEST:
        return None
    like = [each for each in known if 2.0 * min(size, len(each)) >= cutoff * (size + len(each))]
    if not like or not spend(len(like) * (1 + size * size // SQUARE)):
        return None
    return next(iter(get_close_matches(word, like, 1, cutoff)), None)
