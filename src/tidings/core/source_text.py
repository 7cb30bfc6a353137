"""Positions and tokens in subscription texts, and the characters that names consist of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from tidings.errors import Place, SyntaxProblem

SPACE = " \t\r\n"

NAME_START = (
    "A-Z_a-z\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u02ff\u0370-\u037d\u037f-\u1fff\u200c-\u200d\u2070-\u218f"
    "\u2c00-\u2fef\u3001-\ud7ff\uf900-\ufdcf\ufdf0-\ufffd\U00010000-\U000effff"
)
"""First characters of names in XML 1.0 (fifth edition) and, except the underscore, in SPARQL (PN_CHARS_BASE)."""

NAME_REST = "0-9\u00b7\u0300-\u036f\u203f-\u2040"
"""Further characters of names, in addition to NAME_START, in both languages."""


@dataclass(frozen=True, slots=True)
class Span:
    """Characters `start` to `end` of a text, counted from zero."""

    start: int
    end: int


NOWHERE = Span(0, 0)
"""The span of trees that were not parsed from a text."""


class Tokens(NamedTuple):
    """The tokens of a text, followed by empty ones so that lookahead needs no bounds check.

    `edges` alternates between the start and the end of each token.
    """

    text: str
    words: list[str]
    edges: list[int]

    def start(self, token: int) -> int:
        return self.edges[2 * token]

    def end(self, token: int) -> int:
        return self.edges[2 * token + 1]

    def place(self, first: int, last: int | None = None) -> Place:
        """Locate the tokens `first` to `last`; past the last token, locate the end of the text."""
        if not self.words[first]:
            return Place.at(self.text, len(self.text.rstrip(SPACE)))
        return Place.at(self.text, self.start(first), self.end(first if last is None else last))

    def touch(self, token: int) -> bool:
        """Return whether a token follows the one before it without a space."""
        return token > 0 and self.start(token) == self.end(token - 1)


def refuse_unreadable(text: str, longest: int) -> None:
    """Refuse a text that is too long, or that has half a character in it, which cannot be stored."""
    if len(text) > longest:
        received, accepted = f"{len(text):,} characters", f"at most {longest:,}"
        raise SyntaxProblem("the text is too long", received=received, accepted=accepted)
    if text.isascii():
        return
    try:
        text.encode()
    except UnicodeEncodeError as problem:
        raise _half_character(text, problem.start) from None


def _half_character(text: str, start: int) -> SyntaxProblem:
    shown = text.encode(errors="replace").decode()
    place, received = Place.at(shown, start), f"U+{ord(text[start]):04X}"
    return SyntaxProblem("half a character", place=place, received=received, accepted="Unicode text")
