"""Names in a schema, and the words with which errors help somebody who mistyped one."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable
from itertools import islice

from tidings.guessing import near

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
    meant = near(word, known)
    return f"did you mean '{meant}'?" if meant else None


def listed(words: Iterable[str], last: str = "and") -> str:
    """Words as a sentence has them: `a`, `a and b`, `a, b and c`."""
    *before, end = list(words)
    return f"{', '.join(before)} {last} {end}" if before else end


def safe(text: str, limit: int = 80) -> str:
    """What a publisher wrote, fit for a message: control characters escaped, a long text cut off."""
    short = text if len(text) <= limit else text[: limit - 1] + "…"
    return short if short.isprintable() else short.encode("unicode_escape").decode()


def some(words: Collection[str], limit: int = 12, shown: Callable[[str], str] = str) -> str:
    """The first words of a long list and how many more there are."""
    more = len(words) - limit
    return ", ".join(map(shown, islice(words, limit))) + (f" and {more:,} more" if more > 0 else "")
