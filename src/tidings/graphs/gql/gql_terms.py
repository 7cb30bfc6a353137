"""Parser of terms in GQL and SPARQL: variables, IRIs, prefixed names, blank nodes, literals."""

from __future__ import annotations

import re
from collections.abc import Mapping

from tidings.core.iris import is_absolute, resolve_iri
from tidings.core.source_text import Span
from tidings.errors import NotSupported, Place
from tidings.graphs.gql import gql_errors as refusals
from tidings.graphs.gql.gql_tokens import body, tokens_of, unescaped
from tidings.graphs.gql.gql_tree import BLANK, Variable
from tidings.graphs.model import XSD, Term, iri, literal
from tidings.values import parse_instant

Operand = Term | Variable

_BAD_HOST = re.compile(r"[^:/?#]+://(?![^/?#]*\[[0-9A-Fa-fv:.]+\])[^/?#]*[\[\]]")
"""A bracket that is not around an IP address: such a base is no IRI, and nothing can be relative to it."""

_LOCAL_ESCAPE = re.compile(r"\\(.)")


class TermReader:
    """Recursive-descent parser of one text. `at` is the next token; each method reads on from there."""

    def __init__(self, text: str, prefixes: Mapping[str, str]) -> None:
        self.tokens = tokens_of(text)
        self.words, self._ends = self.tokens.words, self.tokens.edges
        self.table = prefixes
        self.declared: dict[str, str] = {}
        self.base = ""
        self.at = self.made = 0
        self.sparql = False

    def operand(self, wanted: str = "a variable or a value") -> Operand:
        """Parse a variable, an IRI, a blank node or a literal."""
        word = self.words[self.at]
        if word[:1] in ("?", "$") and len(word) > 1:
            return self.variable()
        if word.startswith(BLANK):
            self.at += 1
            return Variable(word, self.span(self.at - 1))
        if self.is_name(self.at):
            return self.iri()
        if word[:1] in ("'", '"'):
            return self.string()
        return self.plain(word, wanted)

    def variable(self) -> Variable:
        self.at += 1
        return Variable(self.words[self.at - 1][1:], self.span(self.at - 1))

    def new_variable(self, at: int) -> Variable:
        """Make a variable for a blank node without a label, with a name that the text does not use."""
        self.made += 1
        while f"{BLANK}{self.made}" in self.words:
            self.made += 1
        return Variable(f"{BLANK}{self.made}", self.span(at))

    def is_iri(self, at: int) -> bool:
        return self.words[at][:1] == "<" and self.words[at][-1] == ">"

    def is_name(self, at: int) -> bool:
        """Return whether a token is an IRI, in full or with a prefix."""
        word = self.words[at]
        return self.is_iri(at) or (
            ":" in word and word[0] not in "\"'0123456789" and not word.startswith(BLANK)
        )

    def iri(self) -> Term:
        self.at += 1
        word = self.words[self.at - 1]
        if word[0] == "<":
            return iri(self.resolved(self.at - 1))
        prefix, _, local = word.partition(":")
        meant = self.declared.get(prefix, self.table.get(prefix))
        if meant is None:
            known = {**self.table, **self.declared}
            raise refusals.unknown_prefix(prefix, known, self.tokens.place(self.at - 1))
        return iri(meant + (_LOCAL_ESCAPE.sub(r"\1", local) if "\\" in local else local))

    def resolved(self, at: int) -> str:
        written = self.unescaped(self.words[at][1:-1], at)
        if is_absolute(written):
            return written
        if not self.base or _BAD_HOST.match(self.base):
            raise refusals.relative(self.tokens.place(at))
        return resolve_iri(self.base, written)

    def unescaped(self, written: str, at: int) -> str:
        """Where a token stands is worked out only if it may be told: it takes longer than reading it."""
        return unescaped(written, self.tokens.place(at)) if "\\" in written else written

    def string(self) -> Term:
        text = self.unescaped(body(self.words[self.at]), self.at)
        self.at += 1
        word = self.words[self.at]
        if word[:1] == "@":
            self.at += 1
            return literal(text, language=word[1:])
        if word != "^^":
            return literal(text)
        self.at += 1
        if not self.is_name(self.at):
            raise refusals.expected("a datatype such as xsd:date", self.tokens, self.at)
        return literal(text, self.iri().text)

    def plain(self, word: str, wanted: str) -> Term:
        """Parse a number, a date, `true` or `false`."""
        self.at += 1
        if word.lower() in ("true", "false"):
            return literal(word.lower(), XSD + "boolean")
        if word[:1].isdecimal() or (word[:1] in (".", "+", "-") and len(word) > 1):
            return self.date(word) if word[4:5] == "-" and word[:4].isdecimal() else number(word)
        self.at -= 1
        if word in ("+", "-"):
            raise refusals.arithmetic(self.tokens.place(self.at))
        hint = f"a string stands in quotes: '{word}'" if word.isalpha() and "value" in wanted else None
        raise refusals.expected(wanted, self.tokens, self.at, hint)

    def date(self, word: str) -> Term:
        place = self.tokens.place(self.at - 1)
        if self.sparql:
            raise refusals.bare_date(word, place)
        if parse_instant(word) is None:
            raise refusals.bad_date(place)
        return literal(word, XSD + ("dateTime" if "T" in word.upper() else "date"))

    def whole_iri(self) -> str:
        if not self.is_iri(self.at):
            raise refusals.expected("an IRI in <...>", self.tokens, self.at)
        self.at += 1
        return self.resolved(self.at - 1)

    def keyword(self, wanted: str) -> None:
        word = self.words[self.at].upper()
        if word != wanted:
            if word in refusals.OUTSIDE:
                raise refusals.outside(word, self.tokens.place(self.at))
            raise refusals.expected(wanted, self.tokens, self.at)
        self.at += 1

    def symbol(self, wanted: str, opened: int | None = None) -> None:
        if self.words[self.at] != wanted:
            if opened is not None:
                raise refusals.not_closed(self.tokens, opened, self.at, wanted)
            raise refusals.expected(f"'{wanted}'", self.tokens, self.at)
        self.at += 1

    def outside(self) -> NotSupported:
        """Make the error for a part of SPARQL that is not supported."""
        two = " ".join(self.words[self.at : self.at + 2]).upper()
        if two in refusals.OUTSIDE:
            return refusals.outside(two, self.tokens.place(self.at, self.at + 1), sparql=self.sparql)
        return refusals.outside(self.words[self.at], self.tokens.place(self.at), sparql=self.sparql)

    def read(self, start: int) -> Place:
        """Locate the tokens that were read from `start` on."""
        return self.tokens.place(start, self.at - 1)

    def place(self, span: Span) -> Place:
        return Place.at(self.tokens.text, span.start, span.end)

    def span(self, start: int) -> Span:
        """Return the span from a token to the last one that was read."""
        last = self.at - 1 if self.at > start else start
        return Span(self._ends[2 * start], self._ends[2 * last + 1])


def number(word: str) -> Term:
    """Make a number; its spelling decides the datatype as in SPARQL: 5 integer, 5.0 decimal, 5e0 double."""
    if "e" in word or "E" in word:
        return literal(word, XSD + "double")
    return literal(word, XSD + ("decimal" if "." in word else "integer"))
