"""Patterns of many texts as words, with the tests they imply: the array form of `gql_compiler` and
`pattern_words`.

The edges of all patterns stand one pattern after the other, as they were written. In what order they are joined is
found out in rounds: each takes from every pattern the best edges that are left, up to the first that binds a variable,
because from there on more is known of the others.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tidings.graphs.pattern_words import (
    BEGINS,
    EDGE,
    GRAPH,
    HEAD,
    VARIABLES_SHIFT,
    WORTH_OF_ENDS,
    WORTH_OF_PROPERTY,
)
from tidings.matching.array_functions import sum_before
from tidings.matching.compiler.plan import Flags, IrregularTest, Operands, Sizes, Words

Integers = npt.NDArray[Any]

MOST_VARIABLES = 64
"""Which variables are bound is a number of so many bits."""

SUBJECT_IS, OBJECT_IS, EXISTS = range(3)
"""What an edge itself says, among what may be said of one; constraints say the others."""
SAID_BITS = 10
NO_OPERAND = 0

_PLACES = 3
_WORTH = np.array([WORTH_OF_ENDS, WORTH_OF_PROPERTY, WORTH_OF_ENDS])
_JOINED, _RANK_BITS, _AT_BITS = 8, 4, 12
"""An edge's rank: whether it shares a variable with those before, and how much is known of it, 7 at the most."""
_BEST, _AT_MASK = (1 << _RANK_BITS) - 1, (1 << _AT_BITS) - 1


class PatternTable(NamedTuple):
    """Patterns as numbers: where the edges of each begin; by edge its subject, property and object, each the number of
    a string or -1 minus that of a variable's name, of which there are `names`.

    What constraints say of edges, by test: the edge, which test it is, its operand. `unsaid` are patterns of which they
    say less than is asked. The words of constraints, one pattern after the other, how many words and how many
    constraints each pattern has, and where the variables belong in: place, pattern, variable.
    """

    first: Integers
    codes: Integers
    names: int
    edge: Integers
    said: Integers
    operand: Integers
    unsaid: Integers
    words: Integers
    sizes: Integers
    constraints: Integers
    asked_at: Integers
    asked_of: Integers
    asked: Integers

    @property
    def pattern(self) -> Integers:
        """By edge, its pattern."""
        return np.repeat(np.arange(len(self.first)), self.edges)

    @property
    def edges(self) -> Integers:
        return np.diff(self.first, append=len(self.codes))


class Tests(NamedTuple):
    """Tests by what they ask, of edges with which property (0 for all, else its number plus one), their operands, and
    the pattern that each belongs to."""

    shape: Integers
    operand: Integers
    pattern: Integers


class PatternLayout(NamedTuple):
    """Patterns in words, and the tests they imply."""

    words: Words
    sizes: Sizes
    exact: Flags
    tests: Tests


def lay_out(given: PatternTable) -> PatternLayout:
    """The words and tests of all patterns."""
    pattern = given.pattern
    variables = _Variables.of(given, pattern)
    tests, exact = _tests(given, pattern)
    exact &= variables.occurrences == variables.counts
    words, sizes = _words(given, pattern, variables)
    return PatternLayout(words, sizes, exact, tests)


class _Variables(NamedTuple):
    """The variables of each pattern numbered in the order in which they are written: by place of an edge, -1 for what
    is none; of those that are asked about. How many there are, and in how many places.
    """

    number: Integers
    asked: Integers
    counts: Integers
    occurrences: Integers

    @classmethod
    def of(cls, given: PatternTable, pattern: Integers) -> _Variables:
        codes, patterns = given.codes.reshape(-1), len(given.first)
        at = np.flatnonzero(codes < 0)
        owner = pattern[at // _PLACES]
        found, first, which = np.unique(
            owner * given.names - 1 - codes[at], return_index=True, return_inverse=True
        )
        as_written = np.argsort(first)
        counts = np.bincount(owner[first], minlength=patterns)
        numbers = np.empty(len(found), np.int64)
        numbers[as_written] = sum_before(owner[first[as_written]], np.ones(len(found), np.int64))
        number = np.full(len(codes), -1)
        number[at] = numbers[which]
        asked = numbers[np.searchsorted(found, given.asked_of * given.names - 1 - given.asked)]
        occurrences = np.bincount(owner, minlength=patterns)
        return cls(number.reshape(-1, _PLACES), asked, counts, occurrences)


def _words(given: PatternTable, pattern: Integers, variables: _Variables) -> tuple[Words, Sizes]:
    sizes = HEAD + EDGE * given.edges + given.sizes
    start = np.cumsum(sizes) - sizes
    words = np.empty(int(sizes.sum()), np.uint32)
    words[start] = GRAPH | sizes
    words[start + 1] = given.edges | variables.counts << VARIABLES_SHIFT
    words[start + 2] = given.constraints
    rank, begins = _joined_in_order(given, pattern, variables.number)
    at = start[pattern] + HEAD + EDGE * rank
    ends = np.where(given.codes < 0, variables.number << 1, given.codes << 1 | 1)
    for place in range(_PLACES):
        words[at + place] = ends[:, place]
    words[at + _PLACES] = BEGINS * begins
    last = np.repeat(start + sizes - given.sizes, given.sizes) + sum_before(
        np.repeat(np.arange(len(sizes)), given.sizes), np.ones(len(given.words), np.int64)
    )
    words[last] = given.words
    words[last[given.asked_at]] |= variables.asked.astype(np.uint32)
    return words, sizes


def _joined_in_order(given: PatternTable, pattern: Integers, number: Integers) -> tuple[Integers, Flags]:
    """By edge, the how-manieth of its pattern it is, and whether it begins a part of its own.

    As `graph_words` says: next comes the one of which most is known, constants and variables that are bound by then.
    """
    bits = np.where(number < 0, 0, 1 << number.astype(np.uint64)).astype(np.uint64)
    binds, constants = np.bitwise_or.reduce(bits, axis=1), (number < 0) @ _WORTH
    bound = np.zeros(len(given.first), np.uint64)
    rank, begins = np.zeros(len(pattern), np.int64), np.zeros(len(pattern), np.bool_)
    left, placed = np.arange(len(pattern)), np.zeros(len(given.first), np.int64)
    while len(left):
        seen = bound[pattern[left]]
        known = constants[left] + ((bits[left] & seen[:, None]) != 0) @ _WORTH
        worth = _JOINED * ((binds[left] & seen) != 0) + known
        owner, left, worth = _best_first(pattern[left], worth, left, given.first)
        news = (binds[left] & ~bound[owner]) != 0
        earlier = sum_before(owner, news.astype(np.int64))
        place = sum_before(owner, np.ones(len(owner), np.int64))
        taken = earlier == 0
        rank[left[taken]] = (placed[owner] + place)[taken]
        begins[left[taken]] = worth[taken] < _JOINED
        placed += np.bincount(owner[taken], minlength=len(placed))
        last = taken & news
        bound[owner[last]] |= binds[left[last]]
        left = left[~taken]
    return rank, begins


def _best_first(
    owner: Integers, worth: Integers, edge: Integers, first: Integers
) -> tuple[Integers, Integers, Integers]:
    """Edges by pattern, those that are worth most first, of equal ones the one that was written first.

    One number has all of it: to sort numbers takes a third of the time of sorting by several columns.
    """
    key = (owner << _RANK_BITS | _BEST - worth) << _AT_BITS | (edge - first[owner])
    key.sort()
    owner = key >> _RANK_BITS + _AT_BITS
    return owner, first[owner] + (key & _AT_MASK), _BEST - (key >> _AT_BITS & _BEST)


def _tests(given: PatternTable, pattern: Integers) -> tuple[Tests, Flags]:
    """The tests of all patterns, and of each pattern whether its edges and constraints are said by one test each."""
    subject, property, object = given.codes.T
    of_subject, of_object = np.flatnonzero(subject >= 0), np.flatnonzero(object >= 0)
    edge = np.concatenate((of_subject, of_object, given.edge))
    count = np.bincount(edge, minlength=len(pattern))
    silent = np.flatnonzero(count == 0)
    said = np.concatenate(
        (
            np.full(len(of_subject), SUBJECT_IS),
            np.full(len(of_object), OBJECT_IS),
            given.said,
            np.full(len(silent), EXISTS),
        )
    )
    nothing = np.full(len(silent), NO_OPERAND)
    operand = np.concatenate((subject[of_subject], object[of_object], given.operand, nothing))
    edge = np.concatenate((edge, silent))
    exact = np.ones(len(given.first), np.bool_)
    exact[pattern[count > 1]] = False
    exact[given.unsaid] = False
    among = np.maximum(property[edge] + 1, 0)
    return Tests(among << SAID_BITS | said, operand, pattern[edge]), exact


def irregular_tests(
    tests: Tests, read: Callable[[int, Integers], tuple[Any, Operands]]
) -> tuple[IrregularTest, ...]:
    """Each test with the patterns it stands in, once for each operand; `read` gives its shape and its operands."""
    order = np.lexsort((tests.operand, tests.pattern, tests.shape))
    shape, operand, pattern = (column[order] for column in tests)
    news = np.ones(len(order), np.bool_)
    news[1:] = (np.diff(shape) != 0) | (np.diff(pattern) != 0)
    kept = news.copy()
    kept[1:] |= np.diff(operand) != 0
    group = np.cumsum(news)[kept]
    shape, operand, pattern = shape[kept], operand[kept], pattern[kept]
    again = sum_before(group, np.ones(len(group), np.int64))
    order = np.lexsort((again, shape))
    starts = np.flatnonzero(np.diff(shape[order], prepend=-1) | np.diff(again[order], prepend=-1))
    return tuple(
        IrregularTest(*read(int(shape[held[0]]), operand[held]), pattern[held].astype(np.int32))
        for held in np.split(order, starts[1:])
    )
