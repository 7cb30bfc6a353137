"""GQL texts split without parsing each one, for subscriptions that are nearly all different.

    PREFIX e: <http://example.org/> SELECT ?x WHERE   (?x, e:knows, e:ann) (?x, e:age, ?a)   AND ?a > 40
    the head, which many texts share                  edges, of words that many texts share  conditions

One pattern cuts the edges into words, and a word that was read before already has a number. The result is that of the
parser; a text with anything else (comments, escapes, SPARQL, errors) is left to the parser.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from tidings.graphs.keys import term_text
from tidings.graphs.pattern_layout import MOST_VARIABLES
from tidings.graphs.pattern_numbers import PatternNumbers
from tidings.graphs.patterns.pattern_parser import DEFAULT, Head, Names, read_conditions, read_head, read_word
from tidings.graphs.patterns.pattern_tree import Constraint, Variable

_GAP = r"[ \t\r\n]*+"
_IRI = r"""<[^<>"{}|^`\\\x00-\x20]*+>"""
_NAME = r"""[^ \t\r\n,()"'#\\<>]++"""
_WORD = rf"""({_NAME}|{_IRI}|"[^"\\\r\n]*+"(?:@{_NAME}|\^\^(?:{_NAME}|{_IRI}))?)"""
_EDGE = re.compile(
    rf"{_GAP}(?:,{_GAP}|[Aa][Nn][Dd]{_GAP})?+\({_GAP}{_WORD}{_GAP},{_GAP}{_WORD}{_GAP},{_GAP}{_WORD}{_GAP}\)"
)
"""An edge with its separator from the previous one. A word is any run of characters that can only be part of a name;
the parser classifies each word on first use."""

_CONDITIONS = re.compile(rf"\){_GAP}(?=[Aa][Nn][Dd](?!{_GAP}\())")
"""The end of the edges and the beginning of conditions. If it is inside a string, the remaining edges are invalid."""

_PREFIXED = re.compile(r"([A-Za-z][A-Za-z0-9]{0,30}):([A-Za-z0-9_]++)")
_VARIABLE = re.compile(r"[?$]\w++")

_MOST_HEADS = 1 << 12
"""Maximum number of cached heads: a text may have a prefix of its own."""


class UnreadableWord(Exception):
    """A word that is not valid in its place, or not by itself."""


class _Words(dict[str, int]):
    """The numbers of words in one place of an edge; a new word is read on first use."""

    def __init__(self, place: str, names: Names, numbers: PatternNumbers) -> None:
        super().__init__()
        self._place, self._names, self._numbers = place, names, numbers

    def __missing__(self, word: str) -> int:
        number = self[word] = self._read(word)
        return number

    def _read(self, word: str) -> int:
        """Read a word. Variables and prefixed names are handled here, because most words are one of them."""
        if _VARIABLE.fullmatch(word):
            return self._numbers.variable(word[1:])
        prefixed = _PREFIXED.fullmatch(word)
        if prefixed and prefixed[1] in self._names.prefixes:
            return self._numbers.string(f"<{self._names.prefixes[prefixed[1]]}{prefixed[2]}>")
        operand = read_word(word, self._place, self._names)
        if operand is None:
            raise UnreadableWord
        if isinstance(operand, Variable):
            return self._numbers.variable(operand.name)
        return self._numbers.string(term_text(operand))


class _HeadWords:
    """A head, with the words that were read under it."""

    __slots__ = ("names", "objects", "properties", "select", "subjects")

    def __init__(self, head: Head, numbers: PatternNumbers) -> None:
        self.names, self.select = head.names, [numbers.variable(name) for name in head.select]
        self.subjects, self.properties, self.objects = (
            _Words(place, head.names, numbers) for place in ("subject", "property", "object")
        )


class Composer:
    """Composes texts into numbered patterns."""

    def __init__(self, numbers: PatternNumbers) -> None:
        self._numbers = numbers
        self._heads: dict[str, _HeadWords | None] = {}

    def add(self, row: int, text: str) -> bool:
        """Add the text of a row; return whether that was possible."""
        opened = text.find("(")
        head = self._head(text[: max(0, opened)])
        if head is None or len(text) > DEFAULT.length or _is_broken(text):
            return False
        cut = _CONDITIONS.search(text, opened)
        parts = _EDGE.split(text[opened : cut.start() + 1 if cut else None])
        constraints = read_conditions(text[cut.end() :], head.names) if cut else ()
        if constraints is None or "".join(parts[::4]).strip(" \t\r\n") or len(parts) // 4 > DEFAULT.edges:
            return False
        return self._edges(row, head, parts, constraints)

    def _head(self, text: str) -> _HeadWords | None:
        if text not in self._heads:
            if len(self._heads) >= _MOST_HEADS:
                self._heads.clear()
            head = None if "{" in text else read_head(text)
            self._heads[text] = None if head is None else _HeadWords(head, self._numbers)
        return self._heads[text]

    def _edges(
        self, row: int, head: _HeadWords, parts: Sequence[str], constraints: Sequence[Constraint]
    ) -> bool:
        subjects, properties, objects = head.subjects, head.properties, head.objects
        try:
            ends = (
                [subjects[word] for word in parts[1::4]],
                [properties[word] for word in parts[2::4]],
                [objects[word] for word in parts[3::4]],
            )
        except UnreadableWord:
            return False
        if not self._are_bound(ends, head.select, constraints):
            return False
        self._numbers.put(row, *ends, constraints)
        return True

    def _are_bound(
        self, ends: Sequence[Sequence[int]], select: Sequence[int], constraints: Sequence[Constraint]
    ) -> bool:
        """Return whether all selected and constrained variables are in an edge, and there are not too many."""
        if not select and not constraints and len(ends[0]) * len(ends) <= _FEW_VARIABLES:
            return True
        variables = {code for codes in ends for code in codes if code < 0}
        referenced = (*select, *(self._numbers.variable(constraint.variable) for constraint in constraints))
        return len(variables) <= _FEW_VARIABLES and variables.issuperset(referenced)


_FEW_VARIABLES = min(DEFAULT.variables, MOST_VARIABLES)


def _is_broken(text: str) -> bool:
    """Return whether a text contains half of a surrogate pair."""
    if text.isascii():
        return False
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False
