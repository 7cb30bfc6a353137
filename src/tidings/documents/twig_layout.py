"""Twigs of many texts as words, with the tests they imply: the array form of `xpath_compiler`,
`linear_paths` and `twig_words`.

The nodes of all texts stand one text after the other, parents before children, in the order in which they were written.
In a twig the most telling branches come last: level by level, the children of each node are sorted, and the sizes of
what stands before a child say where it begins.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidings.documents.linear_paths import Steps, exists_shape, value_shape
from tidings.documents.model import Axis, show_steps
from tidings.documents.twig_words import (
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
from tidings.matching.compiler.plan import IrregularTest, Numbers, Operands, TestShape
from tidings.matching.compiler.twig_writer import Flags, Sizes, Words
from tidings.values import Kind

Integers = npt.NDArray[Any]

_SAID = STRING_SHIFT
"""Bits for what is asked at a place: the flags of a test, or _EXISTS, which are the flags of none."""
_EXISTS = (1 << _SAID) - 1
_EQUAL = OPERATORS.index(ValueOperator.EQUAL)
_UNSAYABLE = OPERATORS.index(ValueOperator.UNEQUAL) | IS_NUMBER
"""Unequal to a number is also what is no number: the test is only that there is something."""


class TwigTrees(NamedTuple):
    """The trees of many texts: where each begins; by node its place and its parent, -1 for the first of a text; by
    comparison its node, its flags and its operand, a string's number or a number. `lengths` are those of all strings.
    """

    first: Integers
    place: Integers
    parent: Integers
    node: Integers
    flags: Integers
    operand: npt.NDArray[np.float64]
    lengths: Integers


class Places(NamedTuple):
    """Linear paths: of each the first word of a node there, the number of its last name, and its depth.

    `single` are those with one node at most.
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
    """Twigs in words; by node its text, its place among all nodes of all twigs, and whether nothing is asked of it."""

    words: Words
    sizes: Sizes
    exact: Flags
    text: Integers
    position: Integers
    bare: Flags


def lay_out(walked: TwigTrees, places: Places) -> TwigLayout:
    """The twigs of all texts."""
    count, texts = len(walked.place), len(walked.first)
    text = np.repeat(np.arange(texts), np.diff(walked.first, append=count))
    children = np.bincount(walked.parent[walked.parent >= 0], minlength=count)
    tests = np.bincount(walked.node, minlength=count)
    position = _positions(walked, places.depth[walked.place])
    number = position - walked.first[text] + 1
    above = np.where(walked.parent >= 0, number[walked.parent], 0)
    flags = places.flags[walked.place] | INNER * (children > 0) | tests << TESTS_SHIFT | above << PARENT_SHIFT
    words, widths = _words(walked, position, flags, places.name[walked.place])
    exact = np.ones(texts, np.bool_)
    exact[text[~places.single[walked.place] & (children + tests > 1)]] = False
    exact[text[walked.node[walked.flags == _UNSAYABLE]]] = False
    sizes = np.add.reduceat(widths, walked.first)
    return TwigLayout(words, sizes, exact, text, position, (children == 0) & (tests == 0))


def _positions(walked: TwigTrees, depth: Integers) -> Integers:
    """Where each node stands among all nodes of all twigs. The first of a text stays where it is."""
    parent, by_depth = walked.parent, np.argsort(depth, kind="stable")
    levels = np.split(by_depth, np.flatnonzero(np.diff(depth[by_depth])) + 1)
    telling, size = np.zeros(len(depth), np.int32), np.ones(len(depth), np.int64)
    equal = walked.flags == _EQUAL
    np.maximum.at(telling, walked.node[equal], walked.lengths[walked.operand[equal].astype(np.int64)])
    for level in reversed(levels[1:]):
        np.maximum.at(telling, parent[level], telling[level])
        np.add.at(size, parent[level], size[level])
    position = np.arange(len(depth))
    for level in levels[1:]:
        ordered = level[np.lexsort((telling[level], parent[level]))]
        position[ordered] = position[parent[ordered]] + 1 + _before(parent[ordered], size[ordered])
    return position


def _words(walked: TwigTrees, position: Integers, flags: Integers, name: Integers) -> tuple[Words, Sizes]:
    """All words, and how many each node has."""
    is_number = walked.flags & IS_NUMBER > 0
    widths = np.where(is_number, 3, 1)
    width = 2 + np.bincount(walked.node, widths, len(flags)).astype(np.int64)
    order = np.empty_like(position)
    order[position] = np.arange(len(position))
    start = np.empty_like(position)
    start[order] = np.cumsum(width[order]) - width[order]
    words = np.empty(int(width.sum()), np.uint32)
    words[start], words[start + 1] = flags, name
    by_node = np.argsort(walked.node, kind="stable")
    at = np.empty(len(by_node), np.int64)
    at[by_node] = start[walked.node[by_node]] + 2 + _before(walked.node[by_node], widths[by_node])
    strings = np.where(is_number, 0, walked.operand).astype(np.int64)
    words[at] = walked.flags | strings << STRING_SHIFT
    bits, at = walked.operand[is_number].view(np.uint64), at[is_number]
    words[at + 1], words[at + 2] = bits & np.uint64(0xFFFFFFFF), bits >> np.uint64(32)
    return words, width


def _before(groups: Integers, sizes: Integers) -> Integers:
    """The sizes before each one in its group; groups stand one after the other."""
    before: Integers = np.cumsum(sizes) - sizes
    first = np.flatnonzero(np.diff(groups, prepend=-1))
    before -= np.repeat(before[first], np.diff(first, append=len(groups)))
    return before


def irregular_tests(
    walked: TwigTrees, laid: TwigLayout, paths: Sequence[Steps], strings: pa.Array[Any]
) -> tuple[IrregularTest, ...]:
    """The tests that the twigs imply, each with the texts it stands in."""
    bare = np.flatnonzero(laid.bare)
    node = np.concatenate((walked.node, bare))
    said = np.where(walked.flags == _UNSAYABLE, _EXISTS, walked.flags)
    said = np.concatenate((said, np.full(len(bare), _EXISTS)))
    operand = np.concatenate((walked.operand, np.zeros(len(bare))))
    operand[said == _EXISTS] = 0
    test = walked.place[node].astype(np.int64) << _SAID | said
    order = np.lexsort((laid.position[node], test))
    test, text, operand = test[order], laid.text[node[order]], operand[order]
    again, kept = _repeated(test * len(walked.first) + text, operand)
    test, text, operand = test[kept], text[kept], operand[kept]
    order = np.lexsort((again, test))
    starts = np.flatnonzero(np.diff(test[order], prepend=-1) | np.diff(again[order], prepend=-1))
    return tuple(
        _loose_test(_shape(paths, int(test[held[0]])), operand[held], text[held], strings)
        for held in np.split(order, starts[1:])
    )


def _repeated(groups: Integers, operand: npt.NDArray[np.float64]) -> tuple[Integers, Integers]:
    """What is kept of tests that stand group by group if each operand counts once, and the how-manieth each is then."""
    same = np.diff(groups) == 0
    several = np.flatnonzero(np.append(same, False) | np.append(False, same))
    by_operand = several[np.lexsort((operand[several], groups[several]))]
    again = (np.diff(groups[by_operand]) == 0) & (np.diff(operand[by_operand]) == 0)
    kept = np.ones(len(groups), np.bool_)
    kept[by_operand[1:][again]] = False
    places = np.flatnonzero(kept)
    return _before(groups[places], np.ones(len(places), np.int64)), places


def _shape(paths: Sequence[Steps], test: int) -> TestShape:
    path, said = show_steps(paths[test >> _SAID]), test & _EXISTS
    shape = (
        None if said == _EXISTS else value_shape(path, OPERATORS[said & OPERATOR_MASK], not said & IS_NUMBER)
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
