"""Arrays of the twig check: words of twigs, nodes of documents, working memory, and the tests of values."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tidings.matching.kernels.codes import StringCodec, find_string
from tidings.matching.kernels.compiled import F64, I32, I64, U8, U32, U64, inlined, kernel
from tidings.matching.kernels.strings import NOT_LOOKED_UP
from tidings.matching.kernels.vectors import prefetch

# As in documents.twigs; a test keeps them equal. OPENS is defined here.
DESCENDANT, NEGATED, LEADS_ON, REQUIRED, INNER = 1, 1 << 3, 1 << 4, 1 << 5, 1 << 6
KIND_SHIFT, KIND_MASK = 1, 3
TESTS_SHIFT, FIRSTS_SHIFT, COUNT_MASK, OPENS, PARENT_SHIFT = 7, 11, 15, 1 << 15, 16
OPERATOR_MASK, TEST_NEGATED, IS_NUMBER, STRING_SHIFT = 7, 1 << 3, 1 << 4, 5
EQUAL, UNEQUAL, LESS, AT_MOST, GREATER, AT_LEAST, CONTAINS, STARTS_WITH = range(8)
TEXT, KINDS = 2, 3
MOST_WORDS = 4
"""Words of 64 nodes in a set of nodes: documents with more nodes are not small."""

AHEAD, LINE = 4, 16
"""How many pairs ahead clauses are prefetched; words per cache line."""

ENTRIES = 4
FIRST_WORD, SIZE_AND_SHAPE, SEVERAL, SUBSCRIPTION = range(ENTRIES)
SHAPE_MASK, SIZE_SHIFT = 3, 2
"""Entries of a clause: see `Twigs`. They are adjacent, because clauses are anywhere in memory."""

NONE = -1


class Twigs(NamedTuple):
    """The shapes of a segment's clauses, and their subscriptions. Empty if all clauses are about flat atoms.

    clause         by clause, ENTRIES numbers: where its words begin; how many there are, times 4, plus its shape (see
                   `atoms.AtomShape`); a number for its subscription if that has more than one clause, else -1; its
                   subscription
    word           by clause: its twig (see `reverse_twigs`) or its pattern (see `graphs.pattern_words`); none
                   if the tests are sufficient
    space          by number of a name: whether it means all names of a namespace
    strings        the strings of all twigs and patterns, as those of one column
    """

    clause: I32
    word: U32
    space: U8
    strings: StringCodec


class Nodes(NamedTuple):
    """The nodes of documents (see `atoms.Atoms`), and for each path the kind and the numbers of its last
    name.

    `name` is the number of the name itself among those of the twigs, `space` that of any name of its
    namespace. `string` and `number` are the value of each node: its number among the strings of the twigs, or
    NOT_LOOKED_UP; and as a double.
    """

    starts: I64
    path: I32
    parent: I32
    value: I64
    length: I32
    text: U8
    kind: U8
    name: I32
    space: I32
    string: I32
    number: F64


class Work(NamedTuple):
    """Working memory for one twig and one document.

    document   the publication of these lists; the tick of the last marks; the publication of these sets
    head       by number of a name: the first node of that name; after the names, by kind: the first of that kind
    next       by node: the next of its name
    other      by node: the next of its kind
    place      by twig node: where its words begin
    state      by twig node and node: NONE if it does not satisfy it, else the node itself or the one it
               leads on to; only defined for nodes of the right name
    mark       by node plus one, the document first: the first node found below it
    tick       by node: when it was marked
    seen       by number in `several`: the publication that matched last

    For small documents (see `twig_sets`), sets of nodes, MOST_WORDS words each:

    named      by kind, and for each by number of a name: the nodes of that name; the last is all of that kind
    above      by node: its ancestors; the last is the set of nodes whose parent is the document
    held       by twig node: the nodes that satisfy all twig nodes below it so far
    """

    document: I64
    head: I32
    next: I32
    other: I32
    place: I64
    state: I32
    mark: I32
    tick: I64
    seen: I64
    named: U64
    above: U64
    held: U64


@inlined
def prefetch_twigs(twigs: Twigs, clause: Any, i: int, count: int) -> None:
    """Prefetch the twigs of later pairs: their clauses are anywhere in memory."""
    if i + 2 * AHEAD < count:
        prefetch(twigs.clause, ENTRIES * np.int64(clause[i + 2 * AHEAD]))
        at = np.int64(twigs.clause[ENTRIES * np.int64(clause[i + AHEAD]) + FIRST_WORD])
        prefetch(twigs.word, at)
        prefetch(twigs.word, at + LINE)


# Reversed twigs: the order of checking, from leaves to root.
#
# A compiled twig begins at the root, and each node has the number of its parent. Here the last node comes first, and a
# node has the distance to its parent (0 for the document). The first child that reports to its parent is marked
# (OPENS): it resets the state of the parent. A node that may have any name has the number after all names.


@kernel
def reverse_twigs(starts: Any, words: Any, which: Any, star: int, names: int, place: Any, kept: Any) -> None:
    """Reverse the twigs of some clauses. `place` and `kept` have room for the longest."""
    for clause in range(len(which)):
        if which[clause] and starts[clause] < starts[clause + 1]:
            _reverse(words, starts[clause], starts[clause + 1], star, names, place, kept)


@inlined
def _reverse(words: Any, begin: int, end: int, star: int, names: int, place: Any, kept: Any) -> None:
    size, at = 0, begin
    while at < end:
        place[size] = at - begin
        at += node_words(words, at)
        size += 1
    place[size] = end - begin
    for i in range(end - begin):
        kept[i] = words[begin + i]
    at = begin
    for q in range(size - 1, -1, -1):
        for i in range(place[q], place[q + 1]):
            words[at + i - place[q]] = kept[i]
        words[at] = _reversed_flags(kept, place, size, q)
        if np.int64(kept[place[q]]) >> KIND_SHIFT & KIND_MASK == TEXT or np.int64(words[at + 1]) == star:
            words[at + 1] = names
        at += place[q + 1] - place[q]


@inlined
def _reversed_flags(kept: Any, place: Any, size: int, q: int) -> Any:
    """Return the flags of a node, with the distance to its parent, and whether it is the first to report to it."""
    flags = np.int64(kept[place[q]])
    parent = flags >> PARENT_SHIFT
    if parent == 0:
        return np.uint32(flags)
    opens = True
    for later in range(q + 1, size):
        opens &= np.int64(kept[place[later]]) >> PARENT_SHIFT != parent
    way = q - (parent - 1)
    return np.uint32(way << PARENT_SHIFT | flags & ((1 << PARENT_SHIFT) - 1) | (OPENS if opens else 0))


@inlined
def node_words(words: Any, at: int) -> int:
    """Return the number of words of a twig node."""
    flags, end = np.int64(words[at]), at + 2
    for _ in range((flags >> TESTS_SHIFT & COUNT_MASK) + (flags >> FIRSTS_SHIFT & COUNT_MASK)):
        end += 3 if words[end] & np.uint32(IS_NUMBER) else 1
    return int(end - at)


# Tests of node values.


@inlined
def all_hold(twigs: Twigs, nodes: Nodes, at: int, tests: int, node: int) -> bool:
    for _ in range(tests):
        flags = np.int64(twigs.word[at])
        if flags & IS_NUMBER:
            low, high = np.uint64(twigs.word[at + 1]), np.uint64(twigs.word[at + 2])
            literal = np.int64(high << np.uint64(32) | low).view(np.float64)
            holds = _compare_numbers(flags & OPERATOR_MASK, nodes.number[node], literal)
            at += 3
        else:
            holds = _compare_texts(twigs, nodes, flags & OPERATOR_MASK, node, flags >> STRING_SHIFT)
            at += 1
        if holds == (flags & TEST_NEGATED != 0):
            return False
    return True


@inlined
def _compare_numbers(operator: int, value: float, literal: float) -> bool:
    """Compare numbers. NaN differs from every number, and has no order."""
    if operator == EQUAL:
        return value == literal
    if operator == UNEQUAL:
        return value != literal
    if operator == LESS:
        return value < literal
    if operator == AT_MOST:
        return value <= literal
    if operator == GREATER:
        return value > literal
    return value >= literal


@inlined
def _compare_texts(twigs: Twigs, nodes: Nodes, operator: int, node: int, literal: int) -> bool:
    """Compare a node's value as a text. Equal texts have equal numbers; each is looked up once."""
    if operator <= UNEQUAL:
        if nodes.string[node] == NOT_LOOKED_UP:
            nodes.string[node] = find_string(
                twigs.strings, 0, nodes.text, nodes.value[node], nodes.length[node]
            )
        return (nodes.string[node] == literal) == (operator == EQUAL)
    begin = twigs.strings.offsets[literal]
    size, length = twigs.strings.offsets[literal + 1] - begin, np.int64(nodes.length[node])
    last = 0 if operator == STARTS_WITH else length - size
    if size > length:
        return False
    for shift in range(last + 1):
        i = 0
        while i < size and twigs.strings.data[begin + i] == nodes.text[nodes.value[node] + shift + i]:
            i += 1
        if i == size:
            return True
    return False
