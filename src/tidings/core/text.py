"""Characters that turn the direction of the text around them (Unicode's UAX 9): whoever publishes one must not decide
how a page looks to others.

    "price \u202e081"     shows as "price 180", and turns what stands behind it, too
"""

from __future__ import annotations

import html
import re

_TURNING = re.compile("[\u202a-\u202e\u2066-\u2069]")
"""Embeddings, overrides and isolates, and what ends them. The marks (U+200E, U+200F, U+061C) are not among them: they
open nothing, and stand in ordinary Hebrew and Arabic.
"""
_ENDS = {"\u202c": "\u202a\u202b\u202d\u202e", "\u2069": "\u2066\u2067\u2068"}
_END_OF = {opening: end for end, openings in _ENDS.items() for opening in openings}


def escape_bidi(text: str) -> str:
    r"""The text with an escape for each of them, as JSON has it: `\u202e`."""
    return _TURNING.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def close_bidi(text: str) -> str:
    """The text with all ended that it opens, so that it turns nothing but itself."""
    opened: list[str] = []
    for one in _TURNING.findall(text):
        if one in _END_OF:
            opened.append(_END_OF[one])
        elif one in opened:  # an isolate that ends takes with it what was opened inside
            del opened[len(opened) - 1 - opened[::-1].index(one) :]
    return text + "".join(reversed(opened))


# Counts as people read them.


def plural(count: int, word: str) -> str:
    """1 event, 2 events, 3 matches, 4 classes, 0 properties, 1,000,000 notifications."""
    return f"{count:,} {word if count == 1 else _several(word)}"


def _several(word: str) -> str:
    if re.search(r"[^aeiou]y$", word):
        return f"{word[:-1]}ies"
    return word + ("es" if word.endswith(("ch", "s", "x")) else "s")


# Text for HTML and XML.

_NOT_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def replace_invalid_characters(text: str) -> str:
    """Replace characters that XML cannot hold, however they are escaped, by U+FFFD."""
    return _NOT_IN_XML.sub("\ufffd", text)


def shorten(text: str, most: int) -> str:
    """Cut a text to at most so many characters, with an ellipsis."""
    return text if len(text) <= most else text[: most - 1].rstrip() + "…"


def escape_html(text: str) -> str:
    """Escape a text for HTML."""
    return html.escape(replace_invalid_characters(text), quote=False)
