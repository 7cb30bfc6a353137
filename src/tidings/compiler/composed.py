"""XPaths composed of pieces that were read before: for texts of which hardly two have the same skeleton.

The tree of a text is walked as its pieces say, and written in the same go: its twig as words, the tests that it implies
as loose ones. It is what `compile_xpath` makes of the text, several times faster. A text with a piece that has no moves
is left to that.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from tidings.compiler.linear import exists_shape, value_shape
from tidings.compiler.loose import LooseWriter, TestColumns
from tidings.compiler.pieces import CLOSE, OPEN, Pieces
from tidings.compiler.twig_words import (
    DESCENDANT,
    INNER,
    IS_NUMBER,
    KIND_SHIFT,
    MOST_TESTS,
    OPERATOR_MASK,
    OPERATORS,
    PARENT_SHIFT,
    REQUIRED,
    STRING_SHIFT,
    TESTS_SHIFT,
    TwigWriter,
    halves,
)
from tidings.documents import Axis, LinearStep, show_steps
from tidings.languages.xpath import DEFAULT
from tidings.languages.xpath_tree import ValueOperator
from tidings.xpath_numbers import xpath_number

_SMALL = min(DEFAULT.steps, DEFAULT.predicates, DEFAULT.nesting)
"""A larger text is left to those who say which limit it exceeds."""

_FLAGS = {operator: number for number, operator in enumerate(OPERATORS)}
_EQUAL = _FLAGS[ValueOperator.EQUAL]
_OF_STRINGS = (ValueOperator.EQUAL, ValueOperator.UNEQUAL)
"""What is asked of strings; every other operator takes the number that a string writes."""


class _Place:
    """A linear path: the words of a node at its end, what leads on from it, and what subscriptions ask there."""

    __slots__ = ("asked", "below", "exists", "flags", "name", "single", "steps")

    def __init__(self, steps: tuple[LinearStep, ...], name: int, exists: TestColumns) -> None:
        self.steps, self.name, self.exists = steps, name, exists
        self.flags = (
            REQUIRED | DESCENDANT * (steps[-1].axis is Axis.DESCENDANT) | steps[-1].kind << KIND_SHIFT
        )
        self.single = len(steps) == 1 and steps[0].axis is Axis.CHILD
        self.below: dict[int, _Place] = {}
        self.asked: dict[int, TestColumns | None] = {}


class _Node:
    """A twig node. Its tests are their flags and literals; `telling` as in `compiler.xpath.Branch`."""

    __slots__ = ("above", "children", "place", "telling", "tests")

    def __init__(self, place: _Place | None, above: _Node | None) -> None:
        self.place, self.above = place, above
        self.children: list[_Node] = []
        self.tests: list[tuple[int, str | float]] = []
        self.telling = 0


def _telling(node: _Node) -> int:
    return node.telling


class Composer:
    """Composes text after text."""

    def __init__(self, twigs: TwigWriter, loose: LooseWriter) -> None:
        self._twigs, self._loose, self._pieces = twigs, loose, Pieces()
        self._roots: dict[int, _Place] = {}
        self._words: list[int] = []
        self._nodes, self._exact = 0, True

    def add(self, row: int, pieces: Sequence[str], literals: Sequence[str]) -> bool:
        """Compile the text of a row, given in pieces and literals; whether that was possible."""
        root = self._tree(pieces, literals)
        if root is None:
            return False
        self._words, self._nodes, self._exact = [], 0, True
        self._write(root, 0)
        self._loose.end_clause(row, self._twigs.add_words(self._words, self._exact))
        return True

    def _tree(self, pieces: Sequence[str], literals: Sequence[str]) -> _Node | None:
        """The tree of a text; its root is the document element, or what stands for it."""
        document = node = _Node(None, None)
        opened: list[_Node] = []
        size, read = 0, self._pieces.first
        for text, literal in zip(pieces, (*literals, None), strict=True):
            piece = read(text)
            if piece is None or (piece.asks is None) != (literal is None):
                return None
            for move in piece.moves:
                if move >= 0:
                    node = self._below(node, move)
                elif move == OPEN:
                    opened.append(node)
                elif not opened:
                    return None
                else:
                    node = opened.pop() if move == CLOSE else opened[-1]
            if piece.asks is not None and literal is not None and not _ask(node, piece.asks, literal):
                return None
            size, read = size + piece.size, self._pieces.later
        return document.children[0] if not opened and size <= _SMALL else None

    def _below(self, node: _Node, step: int) -> _Node:
        places = node.place.below if node.place else self._roots
        place = places.get(step) or self._new_place(node.place, step)
        found = _Node(place, node)
        node.children.append(found)
        return found

    def _new_place(self, above: _Place | None, number: int) -> _Place:
        step = self._pieces.steps[number]
        steps = (*(above.steps if above else ()), step)
        exists = self._loose.columns(exists_shape(show_steps(steps)))
        place = _Place(steps, self._twigs.name(step.name), exists)
        (above.below if above else self._roots)[number] = place
        return place

    def _write(self, node: _Node, parent: int) -> None:
        """A node and all below it. `parent` is as in words: 0 is the document, 1 the first node."""
        place, tests, children = node.place, node.tests, node.children
        assert place is not None
        self._nodes += 1
        number = self._nodes
        flags = place.flags | INNER * bool(children) | len(tests) << TESTS_SHIFT | parent << PARENT_SHIFT
        self._words += (flags, place.name)
        for flags, literal in tests:
            self._write_test(place, flags, literal)
        if not tests and not children:
            place.exists.put(len(self._loose), 0)
        if not place.single and len(tests) + len(children) > 1:
            self._exact = False
        if len(children) > 1:
            children.sort(key=_telling)
        for child in children:
            self._write(child, number)

    def _write_test(self, place: _Place, flags: int, literal: str | float) -> None:
        if isinstance(literal, str):
            operand: float = self._twigs.string(literal)
            self._words.append(flags | self._twigs.string(literal) << STRING_SHIFT)
        else:
            operand = literal
            self._words += (flags, *halves(literal))
        if flags not in place.asked:
            place.asked[flags] = self._columns(place, flags)
        columns = place.asked[flags]
        if columns is None:
            self._exact = False
            place.exists.put(len(self._loose), 0)
        else:
            columns.put(len(self._loose), operand)

    def _columns(self, place: _Place, flags: int) -> TestColumns | None:
        operator, is_string = OPERATORS[flags & OPERATOR_MASK], not flags & IS_NUMBER
        shape = value_shape(show_steps(place.steps), operator, is_string)
        return None if shape is None else self._loose.columns(shape)


def _ask(node: _Node, operator: ValueOperator, written: str) -> bool:
    """Compare a node with a literal; whether that is possible."""
    flags, literal = _FLAGS[operator], _literal(operator, written)
    if isinstance(literal, str):
        if flags == _EQUAL:
            _tell(node, len(literal))
    elif not math.isfinite(literal):
        return False
    else:
        flags |= IS_NUMBER
    node.tests.append((flags, literal))
    return len(node.tests) <= MOST_TESTS


def _literal(operator: ValueOperator, written: str) -> str | float:
    if written[0] not in "\"'":
        return float(written) + 0.0  # -0.0 becomes 0.0, which it equals
    return written[1:-1] if operator in _OF_STRINGS else xpath_number(written[1:-1]) + 0.0


def _tell(node: _Node | None, length: int) -> None:
    """A string that a node must equal says how telling it and all above it are."""
    while node is not None and node.telling < length:
        node.telling, node = length, node.above
