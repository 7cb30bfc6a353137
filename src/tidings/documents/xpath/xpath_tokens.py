"""Tokenizer of XPath: names, literals, slashes, brackets and operators, with their positions.

One pattern splits the whole text; positions are sums of lengths. That is several times faster than a match object per
token, which matters for millions of texts.
"""

from __future__ import annotations

import re
from itertools import accumulate

from tidings.core.source_text import NAME_REST, NAME_START, SPACE, Tokens
from tidings.errors import Place, SyntaxProblem

NAME = rf"[{NAME_START}][{NAME_START}\-.{NAME_REST}]*"
"""A name without a colon, as in XML namespaces."""

_ASCII_NAME = r"[A-Za-z_][A-Za-z_0-9.\-]*"
"""The same for ASCII texts, which most are: large character sets are slow."""


def _pattern(name: str) -> re.Pattern[str]:
    return re.compile(
        rf"({name}(?::(?:{name}|\*))?"
        r"|[0-9]+(?:\.[0-9]*)?|\.[0-9]+"
        r"""|"[^"]*"|'[^']*'"""
        r"|//|::|\.\.|[!<>]=|[/@.\[\]()=<>,*|+$;:-])"
    )


_TOKEN, _ASCII_TOKEN = _pattern(NAME), _pattern(_ASCII_NAME)
NO_NAME = frozenset(("", *"/.@[](),!=<>|+-$;:\"'0123456789*"))
"""First characters of tokens that are not names."""


def tokens_of(text: str) -> Tokens:
    """Tokenize a text; raise a problem at the first character that is not part of a token."""
    parts = (_ASCII_TOKEN if text.isascii() else _TOKEN).split(text)
    if "".join(parts[::2]).strip(SPACE):
        raise _unexpected_character(text, parts)
    words = parts[1::2]
    words += ("", "")
    return Tokens(text, words, list(accumulate(map(len, parts))))


def is_name(token: str) -> bool:
    """Return whether a token is a name (`price`, `p:price`, `p:*`), and not `*` or anything else."""
    return token[:1] not in NO_NAME


_WRITTEN = {"&&": "and", "&": "and", "!": "not(...)", "~": "contains(...)", "^": "starts-with(...)"}
_ESCAPED = {"&lt;": "<", "&gt;": ">", "&quot;": '"', "&apos;": "'", "&amp;": "&"}
_CURLY = "“”„‘’‚«»"


def _unexpected_character(text: str, parts: list[str]) -> SyntaxProblem:
    edges = [0, *accumulate(map(len, parts))]
    part = next(i for i in range(0, len(parts), 2) if parts[i].strip(SPACE))
    start = edges[part] + len(parts[part]) - len(parts[part].lstrip(SPACE))
    remaining = text[start:]
    if remaining[0] in "\"'":
        message, end = "this string is not closed", len(text.rstrip())
        return SyntaxProblem(message, place=Place.at(text, start, end), accepted=f"a closing {remaining[0]}")
    for written, replacement in (_ESCAPED | _WRITTEN).items():
        if remaining.startswith(written):
            place = Place.at(text, start, start + len(written))
            return SyntaxProblem(f"write '{replacement}' instead of '{written}'", place=place)
    hint = "write strings in straight quotes: \"...\" or '...'" if remaining[0] in _CURLY else None
    shown = f"'{remaining[0]}'" if remaining[0].isprintable() else f"U+{ord(remaining[0]):04X}"
    return SyntaxProblem(f"unexpected character {shown}", place=Place.at(text, start), hint=hint)
