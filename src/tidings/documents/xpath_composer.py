"""XPaths composed of pieces that were read before, for texts that nearly all have different skeletons.

A piece is the text before, between or after literals:

    /paper[author[first = "Dan" and last = "Chai"] and @id > 17]/title != "Preface"

has five: `/paper[author[first = `, ` and last = `, `] and @id > `, `]/title != ` and an empty one. Hardly two random
subscriptions have the same pieces in the same order, but a hundred thousand of them consist of a few thousand pieces.
So a piece is read once, as *moves* in the tree of the subscription.

Walking the moves of a text gives the nodes of its tree, each with its place (the linear path to it) and its parent, and
their tests, all as numbers; `lay_out` writes the twigs of all texts at once. They equal those of `compile_xpath`, many
times faster. Only the most common syntax has moves: paths with predicates, compared with literals, joined by `and`. A
text with anything else (`or`, functions, prefixes, long axes, spaces inside a step) is left to `compile_xpath`.
"""

from __future__ import annotations

import math
import re
from array import array
from collections import Counter
from collections.abc import Sequence
from enum import Enum, auto
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from tidings.documents.model import TEXT, Axis, LinearStep, NodeKind, xpath_number
from tidings.documents.twig_layout import Places, TwigTrees, irregular_tests, lay_out
from tidings.documents.twigs import IS_NUMBER, MOST_TESTS, OPERATORS
from tidings.documents.xpath.xpath_parser import DEFAULT
from tidings.documents.xpath.xpath_tokens import NAME
from tidings.documents.xpath.xpath_tree import ValueOperator
from tidings.matching.compiler.plan import IrregularClauses, TwigWriter

OPEN, CLOSE, NEXT = -1, -2, -3
"""Moves that are not steps: into a predicate, out of it, and back to its beginning (`and`)."""
NO_LITERAL = -1


class Piece(NamedTuple):
    """Moves: a step's number, or one of the above. `asks` is the number of the operator at the end, or NO_LITERAL.

    `size` bounds the number of steps, predicates and brackets.
    """

    moves: tuple[int, ...]
    asks: int
    size: int


class _At(Enum):
    """The last token read, which determines the tokens that may follow."""

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
_AFTER_OPERATOR: dict[str, tuple[int | None, _At]] = dict.fromkeys(_OPERATORS, (None, _At.OPERATOR))
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
    _At.DOT: _AFTER_OPERATOR,
    _At.CHILD: {},
    _At.DESCENDANT: {},
    _At.ELEMENT: {**_SLASHES, **_DONE, **_AFTER_OPERATOR, "[": (OPEN, _At.INSIDE)},
    _At.LEAF: {**_DONE, **_AFTER_OPERATOR},
    _At.OPERATOR: {},
}
"""The grammar: tokens that may follow each state, and their moves. Where a step may follow, any other word is one."""
_BEFORE_STEPS = (_At.BEGIN, _At.INSIDE, _At.CHILD, _At.DESCENDANT)
_ENDS = (_At.LITERAL, _At.ELEMENT, _At.LEAF, _At.OPERATOR)

_BLANK = " \t\r\n"
_WORD = re.compile(rf"[{_BLANK}]*(\.?//?|\.|text\(\)|@?(?:{NAME}|\*)|[\[\]]|[!<>]=|[=<>])[{_BLANK}]*")
_NO_STEP = frozenset("/.[]!<>=")


class Pieces:
    """Reads each piece once, and numbers the steps in them."""

    def __init__(self) -> None:
        self.steps: list[LinearStep] = []
        self._numbers: dict[LinearStep, int] = {}
        self._first: dict[str, Piece | None] = {}
        self._later: dict[str, Piece | None] = {}

    def first(self, text: str) -> Piece | None:
        """Return the piece at the beginning of a text; None if it has no moves."""
        if text not in self._first:
            self._first[text] = self._read(text, _At.BEGIN)
        return self._first[text]

    def later(self, text: str) -> Piece | None:
        """Return a piece after a literal."""
        if text not in self._later:
            self._later[text] = self._read(text, _At.LITERAL)
        return self._later[text]

    def _read(self, text: str, state: _At) -> Piece | None:
        parts = _WORD.split(text)
        between, words = parts[::2], parts[1::2]
        moves, size = list[int](), 0
        for word in words:
            if word not in _FOLLOWS[state] and (state not in _BEFORE_STEPS or word[0] in _NO_STEP):
                return None
            size += state in _BEFORE_STEPS
            move, state = _FOLLOWS[state].get(word) or self._step(state, word)
            if move is not None:
                moves.append(move)
        if state not in _ENDS or "".join(between).strip(_BLANK):
            return None
        return Piece(tuple(moves), _OPERATORS[words[-1]] if state is _At.OPERATOR else NO_LITERAL, size)

    def _step(self, state: _At, word: str) -> tuple[int, _At]:
        axis = Axis.DESCENDANT if state is _At.DESCENDANT else Axis.CHILD
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


_SMALL = min(DEFAULT.steps, DEFAULT.predicates, DEFAULT.nesting)
"""A larger text is left to the parser, which reports the limit it exceeds."""

_OF_STRINGS = (OPERATORS.index(ValueOperator.EQUAL), OPERATORS.index(ValueOperator.UNEQUAL))
"""Operators that compare strings; every other operator converts a string to a number."""


class _Place:
    """A linear path with its number, and the places below it by step number."""

    __slots__ = ("below", "number", "steps")

    def __init__(self, number: int, steps: tuple[LinearStep, ...]) -> None:
        self.number, self.steps = number, steps
        self.below: dict[int, _Place] = {}


class Composer:
    """Composes texts. Names and strings are numbered by the twig writer."""

    def __init__(self, twigs: TwigWriter) -> None:
        self._twigs, self._strings, self._pieces = twigs, twigs.strings, Pieces()
        self._document, self._places = _Place(-1, ()), list[_Place]()
        self._rows, self._first = array("i"), array("i")
        self._place, self._parent = array("i"), array("i")
        self._node, self._flags, self._operand = array("i"), array("i"), array("d")

    def add(self, row: int, pieces: Sequence[str], literals: Sequence[str]) -> bool:
        """Add the text of a row, given in pieces and literals; return whether that was possible."""
        nodes, tests = len(self._place), len(self._node)
        if not self._walk(pieces, literals) or self._is_crowded(tests):
            for column in (self._place, self._parent):
                del column[nodes:]
            for values in (self._node, self._flags, self._operand):
                del values[tests:]
            return False
        self._rows.append(row)
        self._first.append(nodes)
        return True

    def _walk(self, pieces: Sequence[str], literals: Sequence[str]) -> bool:
        place, node, opened = self._document, -1, list[tuple[_Place, int]]()
        put_place, put_parent, following = self._place.append, self._parent.append, len(self._place)
        size, read = 0, self._pieces.first
        for text, literal in zip(pieces, (*literals, ""), strict=True):
            piece = read(text)
            if piece is None or (piece.asks == NO_LITERAL) != (not literal):
                return False
            for move in piece.moves:
                if move >= 0:
                    place = place.below.get(move) or self._new_place(place, move)
                    put_place(place.number)
                    put_parent(node)
                    node, following = following, following + 1
                elif move == OPEN:
                    opened.append((place, node))
                elif not opened:
                    return False
                else:
                    place, node = opened.pop() if move == CLOSE else opened[-1]
            if literal and not self._ask(node, piece.asks, literal):
                return False
            size, read = size + piece.size, self._pieces.later
        return not opened and size <= _SMALL

    def _new_place(self, above: _Place, step: int) -> _Place:
        place = above.below[step] = _Place(len(self._places), (*above.steps, self._pieces.steps[step]))
        self._places.append(place)
        return place

    def _ask(self, node: int, operator: int, written: str) -> bool:
        """Add a comparison of a node with a literal; return whether that is possible."""
        if written[0] in "\"'" and operator in _OF_STRINGS:
            operand: float = self._strings.setdefault(written[1:-1], len(self._strings))
        else:
            operand = _number(written)
            operator |= IS_NUMBER
        self._node.append(node)
        self._flags.append(operator)
        self._operand.append(operand)
        return math.isfinite(operand)

    def _is_crowded(self, first: int) -> bool:
        """Return whether a node has more tests than its words can encode."""
        nodes = self._node[first:]
        return len(nodes) > MOST_TESTS and max(Counter(nodes).values()) > MOST_TESTS

    def finish(self, strings: pa.Array[Any]) -> IrregularClauses:
        """Write the twigs of all texts and return their clauses; `strings` are in the order of their numbers."""
        if not self._rows:
            return IrregularClauses()
        trees = TwigTrees(
            np.array(self._first),
            np.array(self._place),
            np.array(self._parent),
            np.array(self._node),
            np.array(self._flags),
            np.array(self._operand),
            np.array([len(string) for string in self._strings] or [0]),
        )
        paths = [place.steps for place in self._places]
        layout = lay_out(trees, Places.of(paths, self._twigs.name))
        first = self._twigs.add_part(layout.words, layout.sizes, layout.exact)
        rows = np.array(self._rows)
        twigs = np.arange(first, first + len(rows), dtype=np.int32)
        return IrregularClauses(rows, irregular_tests(trees, layout, paths, strings), twigs)


def _number(written: str) -> float:
    """Return the number of a literal, converting a string; NaN if it is not a number."""
    number = xpath_number(written[1:-1]) if written[0] in "\"'" else float(written)
    return number + 0.0  # -0.0 becomes 0.0, which it equals
