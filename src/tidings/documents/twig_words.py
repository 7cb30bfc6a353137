"""Twigs as words: the form in which millions of them are kept, and which the kernel reads.

A node is two words and its tests. The first has its flags and the place of its parent plus one (0 is the document), the
second the number of its name. A test on a string is one word, its flags and the string's number; one on a number is
followed by the two halves of a double. Numbers of names and strings are those of the `Twigs` they stand in.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidings.documents.model import Axis, NodeKind
from tidings.documents.twigs import DOCUMENT, Twig, TwigNode, ValueTest
from tidings.documents.xpath.xpath_tree import ValueOperator
from tidings.graphs import pattern_words
from tidings.graphs.gql.gql_tree import Pattern
from tidings.matching.compiler.plan import Twigs

# The first word of a node.
DESCENDANT = 1 << 0
KIND_SHIFT, KIND_MASK = 1, 3
NEGATED = 1 << 3
LEADS_ON = 1 << 4
REQUIRED = 1 << 5
"""It must be found, and so must all above it: if there is none, the twig does not hold."""
INNER = 1 << 6
"""It has nodes below it."""
TESTS_SHIFT, FIRSTS_SHIFT, COUNT_MASK = 7, 11, 15
PARENT_SHIFT = 16

# The first word of a test.
OPERATOR_MASK = 7
TEST_NEGATED = 1 << 3
IS_NUMBER = 1 << 4
STRING_SHIFT = 5

OPERATORS = tuple(ValueOperator)
MOST_TESTS = COUNT_MASK

Words = npt.NDArray[np.uint32]
Sizes = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


_FLUSH = 1 << 20


@dataclass(slots=True)
class TwigWriter:
    """Takes twig after twig, and gives them numbers."""

    names: dict[str, int] = field(default_factory=dict)
    strings: dict[str, int] = field(default_factory=dict)
    _count: int = 0
    _words: list[int] = field(default_factory=list)
    _sizes: list[int] = field(default_factory=list)
    _exact: list[bool] = field(default_factory=list)
    _parts: list[tuple[Words, Sizes, Flags]] = field(default_factory=list)

    def add(self, twig: Twig | Pattern, exact: bool) -> int:
        """The number of a twig, or of a pattern of graphs."""
        before = len(self._words)
        self._words += self.words_of(twig)
        self._sizes.append(len(self._words) - before)
        self._exact.append(exact)
        self._count += 1
        if len(self._words) > _FLUSH:
            self._flush()
        return self._count - 1

    def add_many(self, words: npt.NDArray[np.uint32], exact: bool) -> int:
        """Twigs of equally many words, a row each; the number of the first."""
        count, width = (int(size) for size in words.shape)
        return self.add_part(words.reshape(-1), np.full(count, width), np.full(count, exact))

    def add_part(self, words: Words, sizes: Sizes, exact: Flags) -> int:
        """Twigs of so many words each, one after the other; the number of the first."""
        self._flush()
        self._parts.append((words, sizes, exact))
        self._count += len(sizes)
        return self._count - len(sizes)

    def words_of(self, twig: Twig | Pattern) -> list[int]:
        """A twig, or a pattern, in words."""
        if isinstance(twig, Pattern):
            return pattern_words.words_of(twig, self.string)
        words: list[int] = []
        required: list[bool] = []
        inner = {node.parent for node in twig}
        for place, node in enumerate(twig):
            above = node.parent == DOCUMENT or required[node.parent]
            required.append(above and not node.negated)
            self._node(node, REQUIRED * required[-1] | INNER * (place in inner), words)
        return words

    def name(self, name: str) -> int:
        """The number of a name."""
        return self.names.setdefault(name, len(self.names))

    def string(self, text: str) -> int:
        """The number of a string."""
        return self.strings.setdefault(text, len(self.strings))

    def _node(self, node: TwigNode, flags: int, words: list[int]) -> None:
        flags |= (
            DESCENDANT * (node.axis is Axis.DESCENDANT) | NEGATED * node.negated | LEADS_ON * node.leads_on
        )
        flags |= node.kind << KIND_SHIFT | len(node.tests) << TESTS_SHIFT | len(node.firsts) << FIRSTS_SHIFT
        words.append(flags | (node.parent + 1) << PARENT_SHIFT)
        words.append(self.name(node.name))
        for test in (*node.tests, *node.firsts):
            self._test(test, words)

    def _test(self, test: ValueTest, words: list[int]) -> None:
        flags = OPERATORS.index(test.operator) | TEST_NEGATED * test.negated
        if isinstance(test.literal, str):
            words.append(flags | self.string(test.literal) << STRING_SHIFT)
        else:
            words += (flags | IS_NUMBER, *halves(test.literal))

    def _flush(self) -> None:
        if self._sizes:
            words = np.array(self._words, np.uint32)
            self._parts.append((words, np.array(self._sizes), np.array(self._exact, np.bool_)))
            self._words, self._sizes, self._exact = [], [], []

    def all_strings(self) -> pa.Array[Any]:
        """The strings by their numbers."""
        return pa.array(list(self.strings), pa.string()).cast(pa.binary())

    def finish(self) -> Twigs:
        self._flush()
        if not self._parts:
            return Twigs()
        words, sizes, exact = (np.concatenate(each) for each in zip(*self._parts, strict=True))
        starts = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
        return Twigs(starts, words, exact, tuple(self.names), self.all_strings())


def halves(number: float) -> tuple[int, int]:
    """A double in two words, the lower first."""
    bits = struct.unpack("<Q", struct.pack("<d", number))[0]
    return bits & 0xFFFFFFFF, bits >> 32


def read_twig(twigs: Twigs, number: int) -> Twig:
    """A twig, in its readable form."""
    words = iter(twigs.words[twigs.starts[number] : twigs.starts[number + 1]].tolist())
    nodes = []
    for first in words:
        name = twigs.names[next(words)]
        tests = [_read_test(next(words), words, twigs) for _ in range(first >> TESTS_SHIFT & COUNT_MASK)]
        firsts = [_read_test(next(words), words, twigs) for _ in range(first >> FIRSTS_SHIFT & COUNT_MASK)]
        nodes.append(
            TwigNode(
                (first >> PARENT_SHIFT) - 1,
                Axis.DESCENDANT if first & DESCENDANT else Axis.CHILD,
                NodeKind(first >> KIND_SHIFT & KIND_MASK),
                name,
                bool(first & NEGATED),
                tuple(tests),
                tuple(firsts),
                bool(first & LEADS_ON),
            )
        )
    return tuple(nodes)


def _read_test(first: int, words: Iterator[int], twigs: Twigs) -> ValueTest:
    operator, negated = OPERATORS[first & OPERATOR_MASK], bool(first & TEST_NEGATED)
    if not first & IS_NUMBER:
        return ValueTest(operator, twigs.strings[first >> STRING_SHIFT].as_py().decode(), negated)
    low, high = next(words), next(words)
    return ValueTest(operator, struct.unpack("<d", struct.pack("<II", low, high))[0], negated)
