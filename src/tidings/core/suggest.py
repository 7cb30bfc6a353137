"""What somebody may have meant by a word that is none of those that there are.

    near("prise", ["price", "quantity"])     'price'

To whoever mistyped a word, a hint is worth some milliseconds. When very many are refused together, nobody reads so many
hints, and whoever sends them on purpose would have this machine compare words for minutes: inside `bounded()` only so
many are compared, so the first that are refused have their hints, and the others go without.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from difflib import get_close_matches
from itertools import islice

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
def bounded_search(most: int | None = None) -> Iterator[None]:
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


def spend_budget(count: int) -> bool:
    """Whether so much may be compared yet, or what takes as long. Once there was too little left, nothing is."""
    left = _left.get()
    if left is None:
        return True
    enough = left.count >= count
    left.count = left.count - count if enough else 0
    return enough


def closest(word: str, known: Iterable[str], cutoff: float = 0.6) -> str | None:
    """The word that is most like another, if one is.

    What is much longer or shorter cannot be. difflib knows that, too, but asks itself for each in a call of its own.
    """
    size = len(word)
    if size > LONGEST:
        return None
    like = [each for each in known if 2.0 * min(size, len(each)) >= cutoff * (size + len(each))]
    if not like or not spend_budget(len(like) * (1 + size * size // SQUARE)):
        return None
    return next(iter(get_close_matches(word, like, 1, cutoff)), None)


# Names in a schema, and the words with which errors help somebody who mistyped one.


EVENT_TYPE = "event_type"
"""The distinguished attribute: which event types an event has (paper 004, section 2.1)."""

# A database text column cannot hold NUL, a terminal should not be sent the others, and no event carries half
# a surrogate pair.
_UNWRITABLE = re.compile("[\x00-\x1f\x7f\x85\u2028\u2029\ud800-\udfff]")


def is_name(text: object) -> bool:
    """Whether the text can name something: not empty, no control characters."""
    return isinstance(text, str) and text != "" and _UNWRITABLE.search(text) is None


MOST_COMPARED = 1000
"""Among more names than this nothing near is looked for: a stream of wrong events must not cost a second each."""


def did_you_mean(word: str, known: Collection[str]) -> str | None:
    """A hint with the known name nearest to a mistyped one, if one is near."""
    if len(known) > MOST_COMPARED:
        return None
    meant = closest(word, known)
    return f"did you mean '{meant}'?" if meant else None


def join_words(words: Iterable[str], last: str = "and") -> str:
    """Words as a sentence has them: `a`, `a and b`, `a, b and c`."""
    *before, end = list(words)
    return f"{', '.join(before)} {last} {end}" if before else end


def printable(text: str, limit: int = 80) -> str:
    """What a publisher wrote, fit for a message: control characters escaped, a long text cut off."""
    short = text if len(text) <= limit else text[: limit - 1] + "…"
    return short if short.isprintable() else short.encode("unicode_escape").decode()


def shorten_list(words: Collection[str], limit: int = 12, shown: Callable[[str], str] = str) -> str:
    """The first words of a long list and how many more there are."""
    more = len(words) - limit
    return ", ".join(map(shown, islice(words, limit))) + (f" and {more:,} more" if more > 0 else "")
