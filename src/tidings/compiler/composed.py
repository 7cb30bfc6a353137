"""XPaths composed of pieces that were read before: for texts of which hardly two have the same skeleton.

A text is walked as its pieces say. That gives the nodes of its tree, each with its place (the linear path to it) and
its parent, and what is asked of them, all as numbers; `lay_out` writes the twigs of all texts at once. They are what
`compile_xpath` makes of each text, many times faster. A text with a piece that has no moves is left to that.
"""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from tidings.compiler.pieces import CLOSE, NO_LITERAL, OPEN, Pieces
from tidings.compiler.plan import Loose
from tidings.compiler.twig_layout import Places, Walked, lay_out, loose_tests
from tidings.compiler.twig_words import IS_NUMBER, MOST_TESTS, OPERATORS, TwigWriter
from tidings.documents import LinearStep
from tidings.languages.xpath import DEFAULT
from tidings.languages.xpath_tree import ValueOperator
from tidings.xpath_numbers import xpath_number

_SMALL = min(DEFAULT.steps, DEFAULT.predicates, DEFAULT.nesting)
"""A larger text is left to those who say which limit it exceeds."""

_OF_STRINGS = (OPERATORS.index(ValueOperator.EQUAL), OPERATORS.index(ValueOperator.UNEQUAL))
"""What is asked of strings; every other operator takes the number that a string writes."""


class _Place:
    """A linear path by its number, and what leads on from it by the numbers of steps."""

    __slots__ = ("below", "number", "steps")

    def __init__(self, number: int, steps: tuple[LinearStep, ...]) -> None:
        self.number, self.steps = number, steps
        self.below: dict[int, _Place] = {}


class Composer:
    """Composes text after text. Names and strings get the numbers that the twigs have for them."""

    def __init__(self, twigs: TwigWriter) -> None:
        self._twigs, self._strings, self._pieces = twigs, twigs.strings, Pieces()
        self._document, self._places = _Place(-1, ()), list[_Place]()
        self._rows, self._first = array("i"), array("i")
        self._place, self._parent = array("i"), array("i")
        self._node, self._flags, self._operand = array("i"), array("i"), array("d")

    def add(self, row: int, pieces: Sequence[str], literals: Sequence[str]) -> bool:
        """Take the text of a row, given in pieces and literals; whether that was possible."""
        nodes, tests = len(self._place), len(self._node)
        if not self._walk(pieces, literals) or self._is_crowded(tests):
            for column in (self._place, self._parent):
                del column[nodes:]
            for asked in (self._node, self._flags, self._operand):
                del asked[tests:]
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
        """Compare a node with a literal; whether that is possible."""
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
        """Whether more is asked of one node than words can say."""
        asked = self._node[first:]
        return len(asked) > MOST_TESTS and max(Counter(asked).values()) > MOST_TESTS

    def finish(self, strings: pa.Array[Any]) -> Loose:
        """Write the twigs of all texts; gives their clauses. `strings` are all by their numbers."""
        if not self._rows:
            return Loose()
        walked = Walked(
            np.array(self._first),
            np.array(self._place),
            np.array(self._parent),
            np.array(self._node),
            np.array(self._flags),
            np.array(self._operand),
            np.array([len(string) for string in self._strings] or [0]),
        )
        paths = [place.steps for place in self._places]
        laid = lay_out(walked, Places.of(paths, self._twigs.name))
        first = self._twigs.add_part(laid.words, laid.sizes, laid.exact)
        rows = np.array(self._rows)
        twigs = np.arange(first, first + len(rows), dtype=np.int32)
        return Loose(rows, loose_tests(walked, laid, paths, strings), twigs)


def _number(written: str) -> float:
    """The number that a literal is, or that its string writes; NaN if it writes none."""
    number = xpath_number(written[1:-1]) if written[0] in "\"'" else float(written)
    return number + 0.0  # -0.0 becomes 0.0, which it equals
