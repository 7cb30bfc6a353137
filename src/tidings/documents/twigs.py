"""Twigs: an XPath subscription as a list of alternatives without `or`, and their encoding as words.

`//stock[symbol = "YHOO" and not(closed)]/price > 50` is one twig of four nodes: a stock anywhere; in it a symbol with
the value YHOO; no closed; a price above 50.

Millions of twigs are stored as words, which the kernel reads. A node is two words, followed by its tests. The first
word has its flags and the place of its parent plus one (0 is the document), the second the number of its name. A test
on a string is one word, its flags and the string's number; a test on a number is followed by the two halves of a
double. Names and strings are numbered by the `TwigWriter`.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

from tidings.documents.model import Axis, NodeKind
from tidings.documents.xpath.xpath_tree import ValueOperator
from tidings.matching.compiler.plan import Twigs, TwigWriter, split_double

DOCUMENT = -1
"""Parent number of the topmost nodes: the document itself."""


class ValueTest(NamedTuple):
    """A test of a node's own value, possibly negated."""

    operator: ValueOperator
    literal: str | float
    negated: bool = False


class TwigNode(NamedTuple):
    """A node that must exist, or must not (`negated`): below its parent, with its tests and its twig children.

    Parents come before their children. `contains(a/b, "x")` tests only the first b. Its twig nodes are a, with
    `firsts`, and b, which `leads_on`: of all nodes that a and the nodes leading on from it reach together, the first in
    document order must pass the tests in `firsts`.
    """

    parent: int
    axis: Axis
    kind: NodeKind
    name: str
    negated: bool = False
    tests: tuple[ValueTest, ...] = ()
    firsts: tuple[ValueTest, ...] = ()
    leads_on: bool = False


Twig = tuple[TwigNode, ...]
"""All nodes with the parent DOCUMENT must be found in a document (negated ones must not)."""


# The first word of a node.
DESCENDANT = 1 << 0
KIND_SHIFT, KIND_MASK = 1, 3
NEGATED = 1 << 3
LEADS_ON = 1 << 4
REQUIRED = 1 << 5
"""The node and all its ancestors must be found: otherwise the twig does not match."""
INNER = 1 << 6
"""The node has nodes below it."""
TESTS_SHIFT, FIRSTS_SHIFT, COUNT_MASK = 7, 11, 15
PARENT_SHIFT = 16

# The first word of a test.
OPERATOR_MASK = 7
TEST_NEGATED = 1 << 3
IS_NUMBER = 1 << 4
STRING_SHIFT = 5

OPERATORS = tuple(ValueOperator)
MOST_TESTS = COUNT_MASK


def encode_twig(twig: Twig, writer: TwigWriter) -> list[int]:
    """Encode a twig; the writer numbers its names and strings."""
    words: list[int] = []
    required: list[bool] = []
    inner = {node.parent for node in twig}
    for place, node in enumerate(twig):
        above = node.parent == DOCUMENT or required[node.parent]
        required.append(above and not node.negated)
        words += _encode_node(node, REQUIRED * required[-1] | INNER * (place in inner), writer)
    return words


def _encode_node(node: TwigNode, flags: int, writer: TwigWriter) -> list[int]:
    flags |= DESCENDANT * (node.axis is Axis.DESCENDANT) | NEGATED * node.negated | LEADS_ON * node.leads_on
    flags |= node.kind << KIND_SHIFT | len(node.tests) << TESTS_SHIFT | len(node.firsts) << FIRSTS_SHIFT
    words = [flags | (node.parent + 1) << PARENT_SHIFT, writer.name(node.name)]
    for test in (*node.tests, *node.firsts):
        words += _encode_test(test, writer)
    return words


def _encode_test(test: ValueTest, writer: TwigWriter) -> list[int]:
    flags = OPERATORS.index(test.operator) | TEST_NEGATED * test.negated
    if isinstance(test.literal, str):
        return [flags | writer.string(test.literal) << STRING_SHIFT]
    return [flags | IS_NUMBER, *split_double(test.literal)]


def read_twig(twigs: Twigs, number: int) -> Twig:
    """Decode a twig."""
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
