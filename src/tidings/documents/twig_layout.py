"""Layout of the twigs of many texts as words, with the tests they imply: the array form of `xpath_compiler`,
`linear_paths` and `twigs`.

The nodes of all texts are stored text by text, parents before children, in the order in which they were written. In a
twig the most selective branches come last: level by level, the children of each node are sorted, and the total size of
a child's predecessors gives its position.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidings.documents.linear_paths import Steps, exists_shape, value_shape
from tidings.documents.model import Axis, show_steps
from tidings.documents.twigs import (
    DESCENDANT,
    INNER,
    IS_NUMBER,
    KIND_SHIFT,
    OPERATOR_MASK,
    OPERATORS,
    PARENT_SHIFT,
    REQUIRED,
    STRING_SHIFT,
    TESTS_SHIFT,
)
from tidings.documents.xpath.xpath_tree import ValueOperator
from tidings.matching.array_functions import sum_before
from tidings.matching.compiler.plan import Flags, IrregularTest, Numbers, Operands, Sizes, TestShape, Words
from tidings.values import Kind

Integers = npt.NDArray[Any]

_TEST_BITS = STRING_SHIFT
"""Bits for the test at a place: the flags of a test, or _EXISTS, which no test has as flags."""
_EXISTS = (1 << _TEST_BITS) - 1
_EQUAL = OPERATORS.index(ValueOperator.EQUAL)
_INEXACT = OPERATORS.index(ValueOperator.UNEQUAL) | IS_NUMBER
"""A comparison without an exact test: values that are not numbers also differ from a number, so test existence."""


class TwigTrees(NamedTuple):
    """The trees of many texts.

    `first` is where each text begins; `place` and `parent` are per node, with parent -1 for the first node of a text;
    `node`, `flags` and `operand` are per comparison, the operand being a string's number or a number. `lengths` are
    those of all strings.
    """

    first: Integers
    place: Integers
    parent: Integers
    node: Integers
    flags: Integers
    operand: npt.NDArray[np.float64]
    lengths: Integers


class Places(NamedTuple):
    """Linear paths: the first word of a node there, the number of its last name, and its depth.

    `single` marks those with at most one node.
    """

    flags: Integers
    name: Integers
    depth: Integers
    single: Flags

    @classmethod
    def of(cls, paths: Sequence[Steps], name: Callable[[str], int]) -> Places:
        flags = [
            REQUIRED | DESCENDANT * (steps[-1].axis is Axis.DESCENDANT) | steps[-1].kind << KIND_SHIFT
            for steps in paths
        ]
        single = [len(steps) == 1 and steps[0].axis is Axis.CHILD for steps in paths]
        names = [name(steps[-1].name) for steps in paths]
        return cls(np.array(flags), np.array(names), np.array([*map(len, paths)]), np.array(single))


class TwigLayout(NamedTuple):
    """Twigs in words; per node its text, its position among all nodes of all twigs, and whether it has no tests."""

    words: Words
    sizes: Sizes
    exact: Flags
    text: Integers
    position: Integers
    bare: Flags


def lay_out(trees: TwigTrees, places: Places) -> TwigLayout:
    """Lay out the twigs of all texts."""
    count, texts = len(trees.place), len(trees.first)
    text = np.repeat(np.arange(texts), np.diff(trees.first, append=count))
    children = np.bincount(trees.parent[trees.parent >= 0], minlength=count)
    tests = np.bincount(trees.node, minlength=count)
    position = _positions(trees, places.depth[trees.place])
    number = position - trees.first[text] + 1
    above = np.where(trees.parent >= 0, number[trees.parent], 0)
    flags = places.flags[trees.place] | INNER * (children > 0) | tests << TESTS_SHIFT | above << PARENT_SHIFT
    words, widths = _words(trees, position, flags, places.name[trees.place])
    exact = np.ones(texts, np.bool_)
    exact[text[~places.single[trees.place] & (children + tests > 1)]] = False
    exact[text[trees.node[trees.flags == _INEXACT]]] = False
    sizes = np.add.reduceat(widths, trees.first)
    return TwigLayout(words, sizes, exact, text, position, (children == 0) & (tests == 0))


def _positions(trees: TwigTrees, depth: Integers) -> Integers:
    """Return the position of each node among all nodes of all twigs. The first of a text stays where it is."""
    parent, by_depth = trees.parent, np.argsort(depth, kind="stable")
    levels = np.split(by_depth, np.flatnonzero(np.diff(depth[by_depth])) + 1)
    selectivity, size = np.zeros(len(depth), np.int32), np.ones(len(depth), np.int64)
    equal = trees.flags == _EQUAL
    np.maximum.at(selectivity, trees.node[equal], trees.lengths[trees.operand[equal].astype(np.int64)])
    for level in reversed(levels[1:]):
        np.maximum.at(selectivity, parent[level], selectivity[level])
        np.add.at(size, parent[level], size[level])
    position = np.arange(len(depth))
    for level in levels[1:]:
        ordered = level[np.lexsort((selectivity[level], parent[level]))]
        position[ordered] = position[parent[ordered]] + 1 + sum_before(parent[ordered], size[ordered])
    return position


def _words(trees: TwigTrees, position: Integers, flags: Integers, name: Integers) -> tuple[Words, Sizes]:
    """Return all words, and how many each node has."""
    is_number = trees.flags & IS_NUMBER > 0
    widths = np.where(is_number, 3, 1)
    width = 2 + np.bincount(trees.node, widths, len(flags)).astype(np.int64)
    order = np.empty_like(position)
    order[position] = np.arange(len(position))
    start = np.empty_like(position)
    start[order] = np.cumsum(width[order]) - width[order]
    words = np.empty(int(width.sum()), np.uint32)
    words[start], words[start + 1] = flags, name
    by_node = np.argsort(trees.node, kind="stable")
    offset = np.empty(len(by_node), np.int64)
    offset[by_node] = start[trees.node[by_node]] + 2 + sum_before(trees.node[by_node], widths[by_node])
    strings = np.where(is_number, 0, trees.operand).astype(np.int64)
    words[offset] = trees.flags | strings << STRING_SHIFT
    bits, offset = trees.operand[is_number].view(np.uint64), offset[is_number]
    words[offset + 1], words[offset + 2] = bits & np.uint64(0xFFFFFFFF), bits >> np.uint64(32)
    return words, width


def irregular_tests(
    trees: TwigTrees, layout: TwigLayout, paths: Sequence[Steps], strings: pa.Array[Any]
) -> tuple[IrregularTest, ...]:
    """Return the tests that the twigs imply, each with its texts."""
    bare = np.flatnonzero(layout.bare)
    node = np.concatenate((trees.node, bare))
    operators = np.where(trees.flags == _INEXACT, _EXISTS, trees.flags)
    operators = np.concatenate((operators, np.full(len(bare), _EXISTS)))
    operand = np.concatenate((trees.operand, np.zeros(len(bare))))
    operand[operators == _EXISTS] = 0
    test = trees.place[node].astype(np.int64) << _TEST_BITS | operators
    order = np.lexsort((layout.position[node], test))
    test, text, operand = test[order], layout.text[node[order]], operand[order]
    again, distinct = _drop_repeated(test * len(trees.first) + text, operand)
    test, text, operand = test[distinct], text[distinct], operand[distinct]
    order = np.lexsort((again, test))
    starts = np.flatnonzero(np.diff(test[order], prepend=-1) | np.diff(again[order], prepend=-1))
    return tuple(
        _loose_test(_shape(paths, int(test[held[0]])), operand[held], text[held], strings)
        for held in np.split(order, starts[1:])
    )


def _drop_repeated(groups: Integers, operand: npt.NDArray[np.float64]) -> tuple[Integers, Integers]:
    """Drop repeated operands within each group; return each remaining test's ordinal in its group, and its place."""
    same = np.diff(groups) == 0
    several = np.flatnonzero(np.append(same, False) | np.append(False, same))
    by_operand = several[np.lexsort((operand[several], groups[several]))]
    again = (np.diff(groups[by_operand]) == 0) & (np.diff(operand[by_operand]) == 0)
    distinct = np.ones(len(groups), np.bool_)
    distinct[by_operand[1:][again]] = False
    places = np.flatnonzero(distinct)
    return sum_before(groups[places], np.ones(len(places), np.int64)), places


def _shape(paths: Sequence[Steps], test: int) -> TestShape:
    path, flags = show_steps(paths[test >> _TEST_BITS]), test & _EXISTS
    shape = (
        None
        if flags == _EXISTS
        else value_shape(path, OPERATORS[flags & OPERATOR_MASK], not flags & IS_NUMBER)
    )
    return shape or exists_shape(path)


def _loose_test(
    shape: TestShape, operand: npt.NDArray[np.float64], text: Integers, strings: pa.Array[Any]
) -> IrregularTest:
    if shape.kind is None:
        operands = Operands()
    elif shape.kind is Kind.STRING:
        operands = Operands(strings.take(pa.array(operand.astype(np.int64))))
    else:
        operands = Operands(Numbers(operand, np.zeros(len(operand), np.int64)))
    return IrregularTest(shape, operands, text.astype(np.int32))
