"""Words for errors: suggestions for mistyped names, lists and excerpts for messages.

    closest("prise", ["price", "quantity"])     'price'

One hint is worth some milliseconds. If thousands of inputs are rejected together, users do not read all hints, and
an attacker could keep the machine busy for minutes: `bounded_search` limits the comparisons to the first errors.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from difflib import get_close_matches
from itertools import islice
from typing import Any

from tidings.errors import InputError

MOST = 50_000
"""Comparisons of words in one request: about a second if the words are similar."""
LONGEST = 500
"""Length above which a word is not compared."""
SQUARE = 400
"""Comparing takes quadratic time: each `SQUARE` of the squared length counts as one more comparison."""


class _Budget:
    """Number of comparisons left."""

    def __init__(self, count: int) -> None:
        self.count = count


_budget: ContextVar[_Budget | None] = ContextVar("budget", default=None)


@contextmanager
def bounded_search(most: int | None = None) -> Iterator[None]:
    """Limit comparisons to `most` (default `MOST`, 0 for none); a nested limit draws on the outer one, too."""
    outer, allowed = _budget.get(), MOST if most is None else most
    inner = _Budget(allowed if outer is None else min(allowed, outer.count))
    count_before, token = inner.count, _budget.set(inner)
    try:
        yield
    finally:
        _budget.reset(token)
        if outer is not None:
            outer.count -= count_before - inner.count


def spend_budget(count: int) -> bool:
    """Take comparisons, or work that takes as long, from the budget; False if exhausted, and from then on."""
    budget = _budget.get()
    if budget is None:
        return True
    is_enough = budget.count >= count
    budget.count = budget.count - count if is_enough else 0
    return is_enough


def closest(word: str, names: Iterable[str], cutoff: float = 0.6) -> str | None:
    """Return the most similar word, if one is similar enough.

    Words of very different length are skipped first: difflib does that, too, but with a call for each word.
    """
    size = len(word)
    if size > LONGEST:
        return None
    candidates = [each for each in names if 2.0 * min(size, len(each)) >= cutoff * (size + len(each))]
    if not candidates or not spend_budget(len(candidates) * (1 + size * size // SQUARE)):
        return None
    return next(iter(get_close_matches(word, candidates, 1, cutoff)), None)


EVENT_TYPE = "event_type"
"""The distinguished attribute with the types of an event (paper 004, section 2.1)."""

# Text columns cannot hold NUL, terminals should not receive the others, and no event has a lone surrogate.
_UNWRITABLE = re.compile("[\x00-\x1f\x7f\x85\u2028\u2029\ud800-\udfff]")


def is_name(text: object) -> bool:
    """Return whether a text can be a name: not empty, no control characters."""
    return isinstance(text, str) and text != "" and _UNWRITABLE.search(text) is None


MOST_COMPARED = 1000
"""Number of names above which there are no hints: a stream of invalid events must not cost a second each."""


def did_you_mean(word: str, names: Collection[str]) -> str | None:
    """Return a hint with the known name most similar to a mistyped one, if there is one."""
    if len(names) > MOST_COMPARED:
        return None
    suggestion = closest(word, names)
    return f"did you mean '{suggestion}'?" if suggestion else None


def join_words(words: Iterable[str], last: str = "and") -> str:
    """Join words for a sentence: `a`, `a and b`, `a, b and c`."""
    *leading, end = list(words)
    return f"{', '.join(leading)} {last} {end}" if leading else end


def printable(text: str, limit: int = 80) -> str:
    """Make untrusted text fit for a message: escape control characters, truncate long text."""
    short = text if len(text) <= limit else text[: limit - 1] + "…"
    return short if short.isprintable() else short.encode("unicode_escape").decode()


def shorten_list(words: Collection[str], limit: int = 12, shown: Callable[[str], str] = str) -> str:
    """Join the first words of a list, with the number of the others."""
    omitted = len(words) - limit
    return ", ".join(map(shown, islice(words, limit))) + (f" and {omitted:,} more" if omitted > 0 else "")


PYDANTIC_WORDS = {
    "bool_parsing": "true or false",
    "bool_type": "true or false",
    "dict_type": "a table of names and values",
    "enum": "{expected}",
    "float_parsing": "a number",
    "float_type": "a number",
    "greater_than": "more than {gt}",
    "greater_than_equal": "{ge} or more",
    "int_from_float": "a whole number",
    "int_parsing": "a whole number",
    "int_parsing_size": "a whole number that is shorter",
    "int_type": "a whole number",
    "less_than": "less than {lt}",
    "less_than_equal": "{le} or less",
    "list_type": "a list",
    "literal_error": "{expected}",
    "model_attributes_type": "a JSON object",
    "model_type": "a table of names and values",
    "string_too_long": "at most {max_length} characters",
    "string_too_short": "at least {min_length} characters",
    "string_type": "a text",
    "tuple_type": "a list",
}
"""Accepted values by pydantic's type of error: its messages often do not name them."""


def expected(error: Mapping[str, Any]) -> str:
    """Describe the input that would avoid one of pydantic's `errors()`; by default in pydantic's words."""
    words = PYDANTIC_WORDS.get(error["type"])
    if words is None:
        message: str = error["msg"]
        return message.removeprefix("Value error, ")
    return words.format(**error.get("ctx", {}))


def no_such(title: str, name: str, names: Sequence[str]) -> InputError:
    """Build the error for an unknown parameter or member."""
    accepted, hint = ", ".join(names) or None, did_you_mean(name, names)
    return InputError(f"there is no {title} '{name[:200]}'", accepted=accepted, hint=hint)
