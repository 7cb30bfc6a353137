"""Layout of many patterns as words and tests: the array form of `pattern_compiler` and `pattern_words`.

The edges of all patterns are one array, in the order of the texts. The join order is computed in rounds: each takes
from every pattern the best remaining edges, up to the first that binds a variable, because that changes the ranks of
the others.
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
"""The bound variables of a pattern are the bits of one 64-bit number."""

SUBJECT_IS, OBJECT_IS, EXISTS = range(3)
"""Numbers of the tests that an edge itself implies; those of constraints follow."""
FORM_BITS = 10
NO_OPERAND = 0

_PLACES = 3
_WORTH = np.array([WORTH_OF_ENDS, WORTH_OF_PROPERTY, WORTH_OF_ENDS])
_JOINED, _RANK_BITS, _AT_BITS = 8, 4, 12
"""An edge's rank: whether it shares a variable with earlier edges, and the weight of its bound ends, at most 7."""
_BEST, _AT_MASK = (1 << _RANK_BITS) - 1, (1 << _AT_BITS) - 1


class PatternTable(NamedTuple):
    """Patterns as numbers.

    `first` is the first edge of each pattern. `codes` are subject, property and object of each edge: the number of a
    string, or -1 minus the number of a variable's name; `names` is the number of names.

    `edge`, `form` and `operand` are the tests of constraints; `inexact` are the patterns with constraints that tests do
    not express completely. `words` encodes the constraints of all patterns; `sizes` and `constraints` count the words
    and constraints of each pattern. `variable_word`, `variable_pattern` and `variable` are the places of a variable's
    number: word, pattern, variable.
    """

    first: Integers
    codes: Integers
    names: int
    edge: Integers
    form: Integers
    operand: Integers
    inexact: Integers
    words: Integers
    sizes: Integers
    constraints: Integers
    variable_word: Integers
    variable_pattern: Integers
    variable: Integers

    @property
    def pattern(self) -> Integers:
        """The pattern of each edge."""
        return np.repeat(np.arange(len(self.first)), self.edges)

    @property
    def edges(self) -> Integers:
        return np.diff(self.first, append=len(self.codes))


class Tests(NamedTuple):
    """Tests: their shape, which includes the property (0 for any, else its number plus one), operand and pattern."""

    shape: Integers
    operand: Integers
    pattern: Integers


class PatternLayout(NamedTuple):
    """Patterns in words, and the tests they imply."""

    words: Words
    sizes: Sizes
    exact: Flags
    tests: Tests


def lay_out(table: PatternTable) -> PatternLayout:
    """Compute the words and tests of all patterns."""
    pattern = table.pattern
    variables = _Variables.of(table, pattern)
    tests, exact = _tests(table, pattern)
    exact &= variables.occurrences == variables.counts
    words, sizes = _words(table, pattern, variables)
    return PatternLayout(words, sizes, exact, tests)


class _Variables(NamedTuple):
    """The variables of each pattern, numbered in the order of the text.

    `number` is by end of an edge, -1 for a constant; `constrained` is by constraint; `counts` and `occurrences` are by
    pattern.
    """

    number: Integers
    constrained: Integers
    counts: Integers
    occurrences: Integers

    @classmethod
    def of(cls, table: PatternTable, pattern: Integers) -> _Variables:
        codes, patterns = table.codes.reshape(-1), len(table.first)
        positions = np.flatnonzero(codes < 0)
        owner = pattern[positions // _PLACES]
        keys, first, key_numbers = np.unique(
            owner * table.names - 1 - codes[positions], return_index=True, return_inverse=True
        )
        as_written = np.argsort(first)
        counts = np.bincount(owner[first], minlength=patterns)
        numbers = np.empty(len(keys), np.int64)
        numbers[as_written] = sum_before(owner[first[as_written]], np.ones(len(keys), np.int64))
        number = np.full(len(codes), -1)
        number[positions] = numbers[key_numbers]
        constrained = numbers[
            np.searchsorted(keys, table.variable_pattern * table.names - 1 - table.variable)
        ]
        occurrences = np.bincount(owner, minlength=patterns)
        return cls(number.reshape(-1, _PLACES), constrained, counts, occurrences)


def _words(table: PatternTable, pattern: Integers, variables: _Variables) -> tuple[Words, Sizes]:
    sizes = HEAD + EDGE * table.edges + table.sizes
    start = np.cumsum(sizes) - sizes
    words = np.empty(int(sizes.sum()), np.uint32)
    words[start] = GRAPH | sizes
    words[start + 1] = table.edges | variables.counts << VARIABLES_SHIFT
    words[start + 2] = table.constraints
    rank, begins = _joined_in_order(table, pattern, variables.number)
    offset = start[pattern] + HEAD + EDGE * rank
    ends = np.where(table.codes < 0, variables.number << 1, table.codes << 1 | 1)
    for place in range(_PLACES):
        words[offset + place] = ends[:, place]
    words[offset + _PLACES] = BEGINS * begins
    last = np.repeat(start + sizes - table.sizes, table.sizes) + sum_before(
        np.repeat(np.arange(len(sizes)), table.sizes), np.ones(len(table.words), np.int64)
    )
    words[last] = table.words
    words[last[table.variable_word]] |= variables.constrained.astype(np.uint32)
    return words, sizes


def _joined_in_order(table: PatternTable, pattern: Integers, number: Integers) -> tuple[Integers, Flags]:
    """Return the join position of each edge in its pattern, and whether it begins a new part.

    As in `pattern_words`: the next edge is the one with the most constants and bound variables.
    """
    bits = np.where(number < 0, 0, 1 << number.astype(np.uint64)).astype(np.uint64)
    binds, constants = np.bitwise_or.reduce(bits, axis=1), (number < 0) @ _WORTH
    bound = np.zeros(len(table.first), np.uint64)
    rank, begins = np.zeros(len(pattern), np.int64), np.zeros(len(pattern), np.bool_)
    left, placed = np.arange(len(pattern)), np.zeros(len(table.first), np.int64)
    while len(left):
        seen = bound[pattern[left]]
        bound_ends = constants[left] + ((bits[left] & seen[:, None]) != 0) @ _WORTH
        worth = _JOINED * ((binds[left] & seen) != 0) + bound_ends
        owner, left, worth = _best_first(pattern[left], worth, left, table.first)
        binding = (binds[left] & ~bound[owner]) != 0
        earlier = sum_before(owner, binding.astype(np.int64))
        place = sum_before(owner, np.ones(len(owner), np.int64))
        chosen = earlier == 0
        rank[left[chosen]] = (placed[owner] + place)[chosen]
        begins[left[chosen]] = worth[chosen] < _JOINED
        placed += np.bincount(owner[chosen], minlength=len(placed))
        last = chosen & binding
        bound[owner[last]] |= binds[left[last]]
        left = left[~chosen]
    return rank, begins


def _best_first(
    owner: Integers, worth: Integers, edge: Integers, first: Integers
) -> tuple[Integers, Integers, Integers]:
    """Sort edges by pattern, then by weight, then by their order in the text.

    Sorting one combined number takes a third of the time of sorting several columns.
    """
    key = (owner << _RANK_BITS | _BEST - worth) << _AT_BITS | (edge - first[owner])
    key.sort()
    owner = key >> _RANK_BITS + _AT_BITS
    return owner, first[owner] + (key & _AT_MASK), _BEST - (key >> _AT_BITS & _BEST)


def _tests(table: PatternTable, pattern: Integers) -> tuple[Tests, Flags]:
    """Return the tests of all patterns, and for each pattern whether one test per edge expresses it completely."""
    subject, property, object = table.codes.T
    of_subject, of_object = np.flatnonzero(subject >= 0), np.flatnonzero(object >= 0)
    edge = np.concatenate((of_subject, of_object, table.edge))
    count = np.bincount(edge, minlength=len(pattern))
    silent = np.flatnonzero(count == 0)
    descriptions = np.concatenate(
        (
            np.full(len(of_subject), SUBJECT_IS),
            np.full(len(of_object), OBJECT_IS),
            table.form,
            np.full(len(silent), EXISTS),
        )
    )
    nothing = np.full(len(silent), NO_OPERAND)
    operand = np.concatenate((subject[of_subject], object[of_object], table.operand, nothing))
    edge = np.concatenate((edge, silent))
    exact = np.ones(len(table.first), np.bool_)
    exact[pattern[count > 1]] = False
    exact[table.inexact] = False
    among = np.maximum(property[edge] + 1, 0)
    return Tests(among << FORM_BITS | descriptions, operand, pattern[edge]), exact


def irregular_tests(
    tests: Tests, read: Callable[[int, Integers], tuple[Any, Operands]]
) -> tuple[IrregularTest, ...]:
    """Group tests by shape, each pattern once per group; `read` returns the shape and operands of numbers."""
    order = np.lexsort((tests.operand, tests.pattern, tests.shape))
    shape, operand, pattern = (column[order] for column in tests)
    begins = np.ones(len(order), np.bool_)
    begins[1:] = (np.diff(shape) != 0) | (np.diff(pattern) != 0)
    distinct = begins.copy()
    distinct[1:] |= np.diff(operand) != 0
    group = np.cumsum(begins)[distinct]
    shape, operand, pattern = shape[distinct], operand[distinct], pattern[distinct]
    again = sum_before(group, np.ones(len(group), np.int64))
    order = np.lexsort((again, shape))
    starts = np.flatnonzero(np.diff(shape[order], prepend=-1) | np.diff(again[order], prepend=-1))
    return tuple(
        IrregularTest(*read(int(shape[rows[0]]), operand[rows]), pattern[rows].astype(np.int32))
        for rows in np.split(order, starts[1:])
    )
