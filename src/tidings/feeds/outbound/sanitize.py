"""Sanitizing of feed content: valid XML characters, titles without markup, HTML without scripts, web links only.

A publication may contain anything: NUL, a lone surrogate, a script in a title, megabytes of text.
"""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from tidings.core.text import close_bidi, replace_invalid_characters, shorten
from tidings.graphs.syndication.item_graph import iri_of
from tidings.graphs.syndication.markup import plain_text, sanitised

TITLE, SUMMARY, CONTENT, NAME = 200, 1_000, 100_000, 200
"""Maximum lengths in characters; readers cut titles anyway, and a feed has up to a hundred contents."""

LONGEST_LINK = 2_000

_LIKE_A_TAG = re.compile(r"<([A-Za-z/!?][^<>]*)>")
_BEGINS_TAG = re.compile(r"<(?=[A-Za-z/!?])")


def to_line(text: str, most: int = TITLE) -> str:
    """Make one line without markup, for titles, summaries and names.

    Text that still looks like a tag, because it was escaped twice, gets other brackets: some readers parse RSS titles
    as HTML, others as text, and neither may see a tag. Bidirectional controls are
    closed, so that they do not change the direction of text beside the line.
    """
    without = replace_invalid_characters(plain_text(sanitize_html(text, 20 * most)))
    return close_bidi(shorten(_BEGINS_TAG.sub("‹", _LIKE_A_TAG.sub(r"‹\1›", without)), most))


def sanitize_html(text: str, most: int = CONTENT) -> str:
    """Sanitize HTML. It is cut first; the sanitizer then closes open elements and drops half ones.

    Characters are checked again at the end, because `&#1;` becomes an invalid one only by parsing.
    """
    return replace_invalid_characters(sanitised(shorten(replace_invalid_characters(text), most)))


def safe_link(text: str | None) -> str | None:
    """Return an HTTP URL, or None."""
    node = iri_of(replace_invalid_characters(text).strip()) if text and len(text) <= LONGEST_LINK else None
    try:
        parts = urlsplit(node.text) if node else None
    except ValueError:  # such as http://[
        return None
    return node.text if node and parts and parts.scheme in ("http", "https") and parts.netloc else None
