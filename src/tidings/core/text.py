r"""Text for pages and terminals: bidirectional controls, plurals, escapes for HTML and XML.

Bidirectional controls (Unicode UAX 9) reorder the text around them: "price \u202e081" is displayed as "price 180", and
reverses what follows, too. A publisher must not decide how a page looks to others.
"""

from __future__ import annotations

import html
import re

_BIDI = re.compile("[\u202a-\u202e\u2066-\u2069]")
"""Embeddings, overrides, isolates and their ends. Marks (U+200E, U+200F, U+061C) are ordinary in Hebrew and Arabic."""
_ENDS = {"\u202c": "\u202a\u202b\u202d\u202e", "\u2069": "\u2066\u2067\u2068"}
_END_OF = {opening: end for end, openings in _ENDS.items() for opening in openings}


def escape_bidi(text: str) -> str:
    r"""Escape bidirectional controls as JSON does: `\u202e`."""
    return _BIDI.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def close_bidi(text: str) -> str:
    """Close all bidirectional controls that a text opens, so that it affects nothing after it."""
    pending: list[str] = []
    for control in _BIDI.findall(text):
        if control in _END_OF:
            pending.append(_END_OF[control])
        elif control in pending:  # the end of an isolate also closes controls opened inside it
            del pending[len(pending) - 1 - pending[::-1].index(control) :]
    return text + "".join(reversed(pending))


def plural(count: int, word: str) -> str:
    """Format a count with its noun: 1 event, 2 events, 3 matches, 0 properties, 1,000,000 notifications."""
    return f"{count:,} {word if count == 1 else _pluralize(word)}"


def _pluralize(word: str) -> str:
    if re.search(r"[^aeiou]y$", word):
        return f"{word[:-1]}ies"
    return word + ("es" if word.endswith(("ch", "s", "x")) else "s")


_NOT_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def replace_invalid_characters(text: str) -> str:
    """Replace characters that XML cannot hold, however they are escaped, by U+FFFD."""
    return _NOT_IN_XML.sub("\ufffd", text)


def shorten(text: str, most: int) -> str:
    """Truncate a text to a number of characters, with an ellipsis."""
    return text if len(text) <= most else text[: most - 1].rstrip() + "…"


def escape_html(text: str) -> str:
    """Escape a text for HTML."""
    return html.escape(replace_invalid_characters(text), quote=False)
