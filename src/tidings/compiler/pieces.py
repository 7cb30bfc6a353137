"""Pieces: what stands in an XPath before, between and behind its literals.

    /paper[author[first = "Dan" and last = "Chai"] and @id > 17]/title != "Preface"

has five: `/paper[author[first = `, ` and last = `, `] and @id > `, `]/title != ` and one that is empty. Of random
subscriptions hardly two have the same pieces in the same order, but a hundred thousand of them are made of a few
thousand pieces. So a piece is read once, as *moves* in the tree of the subscription.

Only what most subscriptions are made of is read here: paths with predicates, compared with literals, joined by `and`.
Everything else (`or`, functions, prefixes, long axes, blanks inside a step) has no moves: the parser is asked.
"""

from __future__ import annotations

import re
from enum import Enum, auto
from typing import NamedTuple

from tidings.compiler.twig_words import OPERATORS
from tidings.documents import TEXT, Axis, LinearStep, NodeKind
from tidings.languages.xpath_tokens import NAME

OPEN, CLOSE, NEXT = -1, -2, -3
"""Moves that are no step: into a predicate, out of it, and back to where it began (`and`)."""
NO_LITERAL = -1


class Piece(NamedTuple):
    """Moves: a step's number, or one of the above. `asks` is the operator at the end by its number among OPERATORS,
    NO_LITERAL if none follows.

    `size` bounds how many steps, predicates and brackets there are.
    """

    moves: tuple[int, ...]
    asks: int
    size: int


class _At(Enum):
    """What was read last, which says what may follow."""

    BEGIN = auto()
    LITERAL = auto()
    INSIDE = auto()
    DOT = auto()
    CHILD = auto()
    DESCENDANT = auto()
    ELEMENT = auto()
    LEAF = auto()
    OPERATOR = auto()


_OPERATORS = {each.value: number for number, each in enumerate(OPERATORS) if not each.value[0].isalpha()}
_ASKED: dict[str, tuple[int | None, _At]] = dict.fromkeys(_OPERATORS, (None, _At.OPERATOR))
_SLASHES: dict[str, tuple[int | None, _At]] = {"/": (None, _At.CHILD), "//": (None, _At.DESCENDANT)}
_DONE: dict[str, tuple[int | None, _At]] = {
    "]": (CLOSE, _At.ELEMENT),
    "and": (NEXT, _At.INSIDE),
    "AND": (NEXT, _At.INSIDE),
}
_FOLLOWS: dict[_At, dict[str, tuple[int | None, _At]]] = {
    _At.BEGIN: _SLASHES,
    _At.LITERAL: _DONE,
    _At.INSIDE: {".": (None, _At.DOT), "./": (None, _At.CHILD), ".//": (None, _At.DESCENDANT)},
    _At.DOT: _ASKED,
    _At.CHILD: {},
    _At.DESCENDANT: {},
    _At.ELEMENT: {**_SLASHES, **_DONE, **_ASKED, "[": (OPEN, _At.INSIDE)},
    _At.LEAF: {**_DONE, **_ASKED},
    _At.OPERATOR: {},
}
"""The grammar: what may follow what, and which move it is. Where a step may follow, any other word is one."""
_BEFORE_STEPS = (_At.BEGIN, _At.INSIDE, _At.CHILD, _At.DESCENDANT)
_ENDS = (_At.LITERAL, _At.ELEMENT, _At.LEAF, _At.OPERATOR)

_BLANK = " \t\r\n"
_WORD = re.compile(rf"[{_BLANK}]*(\.?//?|\.|text\(\)|@?(?:{NAME}|\*)|[\[\]]|[!<>]=|[=<>])[{_BLANK}]*")
_NO_STEP = frozenset("/.[]!<>=")


class Pieces:
    """Reads pieces, each once, and numbers the steps in them."""

    def __init__(self) -> None:
        self.steps: list[LinearStep] = []
        self._numbers: dict[LinearStep, int] = {}
        self._first: dict[str, Piece | None] = {}
        self._later: dict[str, Piece | None] = {}

    def first(self, text: str) -> Piece | None:
        """A piece that begins a text; None if it has no moves."""
        if text not in self._first:
            self._first[text] = self._read(text, _At.BEGIN)
        return self._first[text]

    def later(self, text: str) -> Piece | None:
        """A piece behind a literal."""
        if text not in self._later:
            self._later[text] = self._read(text, _At.LITERAL)
        return self._later[text]

    def _read(self, text: str, at: _At) -> Piece | None:
        parts = _WORD.split(text)
        between, words = parts[::2], parts[1::2]
        moves, size = list[int](), 0
        for word in words:
            if word not in _FOLLOWS[at] and (at not in _BEFORE_STEPS or word[0] in _NO_STEP):
                return None
            size += at in _BEFORE_STEPS
            move, at = _FOLLOWS[at].get(word) or self._step(at, word)
            if move is not None:
                moves.append(move)
        if at not in _ENDS or "".join(between).strip(_BLANK):
            return None
        return Piece(tuple(moves), _OPERATORS[words[-1]] if at is _At.OPERATOR else NO_LITERAL, size)

    def _step(self, at: _At, word: str) -> tuple[int, _At]:
        axis = Axis.DESCENDANT if at is _At.DESCENDANT else Axis.CHILD
        if word == TEXT:
            step = LinearStep(axis, NodeKind.TEXT, "")
        elif word[0] == "@":
            step = LinearStep(axis, NodeKind.ATTRIBUTE, word[1:])
        else:
            step = LinearStep(axis, NodeKind.ELEMENT, word)
        if step not in self._numbers:
            self._numbers[step] = len(self.steps)
            self.steps.append(step)
        return self._numbers[step], _At.ELEMENT if step.kind is NodeKind.ELEMENT else _At.LEAF
