"""What checking twigs reads and writes: their words, the nodes of documents, room for one twig and one document."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tidings.matching.kernels.codes import StringCodec, find_string
from tidings.matching.kernels.compiled import F64, I32, I64, U8, U32, U64, inlined, reading
from tidings.matching.kernels.strings import NOT_SOUGHT
from tidings.matching.kernels.vectors import prefetch

# As in compiler.twig_words; a test keeps them equal. OPENS is of this module.
DESCENDANT, NEGATED, LEADS_ON, REQUIRED, INNER = 1, 1 << 3, 1 << 4, 1 << 5, 1 << 6
KIND_SHIFT, KIND_MASK = 1, 3
TESTS_SHIFT, FIRSTS_SHIFT, COUNT_MASK, OPENS, PARENT_SHIFT = 7, 11, 15, 1 << 15, 16
OPERATOR_MASK, TEST_NEGATED, IS_NUMBER, STRING_SHIFT = 7, 1 << 3, 1 << 4, 5
EQUAL, UNEQUAL, LESS, AT_MOST, GREATER, AT_LEAST, CONTAINS, STARTS_WITH = range(8)
TEXT, KINDS = 2, 3
MOST_WORDS = 4
"""Of a set of nodes, 64 nodes each: documents with more nodes are no small ones."""

AHEAD, LINE = 4, 16
"""How many pairs ahead something is asked for; words in a line of the processor's cache."""

ENTRIES = 4
FIRST_WORD, SIZE_AND_SORT, SEVERAL, SUBSCRIPTION = range(ENTRIES)
SORT_MASK, SIZE_SHIFT = 3, 2
"""Of a clause: see `Twigs`. They stand together, for clauses stand anywhere in memory."""

NONE = -1


class Twigs(NamedTuple):
    """What a segment's clauses ask beside their tests, and whose they are. Empty if all clauses are about events.

    clause         by clause, ENTRIES numbers: where its words begin; how many there are, times 4, and what sort of
                   publication it is about (see `atoms.Of`); a number for its subscription if that has more than one
                   clause, else -1; its subscription
    word           by clause: its twig (as `twig_order` leaves it), or its pattern (see `graphs.pattern_words`); it has
                   no words where the tests say it all
    space          by number of a name: whether it stands for all names of a namespace
    strings        the strings of all twigs and patterns, as those of one column
    """

    clause: I32
    word: U32
    space: U8
    strings: StringCodec


class Nodes(NamedTuple):
    """The nodes of documents (see `atoms.Atoms`), and of each path the kind and the numbers of its last name.

    `name` is the number of the name itself among those of the twigs, `space` that of any name of its namespace.
    `string` and `number` are each node's value: its number among the strings of the twigs, or NOT_SOUGHT; as a double.
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
    """Room for one twig and one document.

    document   the publication whose lists these are; the tick of the last marks; the publication whose sets these are
    head       by number of a name: the first node of that name; behind the names, by kind: the first of that kind
    next       by node: the next of its name
    other      by node: the next of its kind
    place      by twig node: where its words begin
    state      by twig node and node: NONE if it does not satisfy it, else the node itself, or where that leads on to;
               it says something of nodes of the right name only
    mark       by node, one further than it stands, the document first: the first node found below it
    tick       by node: when it was marked
    seen       by number in `several`: the publication that matched last

    Of small documents (see `twig_sets`), sets of nodes, MOST_WORDS words each:

    named      by kind, and for each by number of a name: the nodes of that name; the last is all of that kind
    above      by node: its parent and all above it; the last is the set of those whose parent is the document
    held       by twig node: the nodes below which there is all that was looked at so far
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
    """Ask for what pairs further on will need: their clauses stand anywhere."""
    if i + 2 * AHEAD < count:
        prefetch(twigs.clause, ENTRIES * np.int64(clause[i + 2 * AHEAD]))
        at = np.int64(twigs.clause[ENTRIES * np.int64(clause[i + AHEAD]) + FIRST_WORD])
        prefetch(twigs.word, at)
        prefetch(twigs.word, at + LINE)


# Twigs as they are checked: from their leaves to their roots, with less to ask on the way.
#
# Compiled twigs begin at the root, and each node has its parent's place. Here the last node comes first, and a node
# says how far behind it its parent stands (0 for the document). The first that tells its parent something is marked
# (OPENS): what a node was told before has no meaning. A node that may have any name has the number behind all names.


@reading
def reverse_twigs(starts: Any, words: Any, which: Any, star: int, names: int, place: Any, kept: Any) -> None:
    """Turn the twigs of those clauses round. There is room for the places and words of the longest."""
    for clause in range(len(which)):
        if which[clause] and starts[clause] < starts[clause + 1]:
            _turn(words, starts[clause], starts[clause + 1], star, names, place, kept)


@inlined
def _turn(words: Any, begin: int, end: int, star: int, names: int, place: Any, kept: Any) -> None:
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
        words[at] = _turned(kept, place, size, q)
        if np.int64(kept[place[q]]) >> KIND_SHIFT & KIND_MASK == TEXT or np.int64(words[at + 1]) == star:
            words[at + 1] = names
        at += place[q + 1] - place[q]


@inlined
def _turned(kept: Any, place: Any, size: int, q: int) -> Any:
    """The flags of a node, with the way to its parent, and whether it is the first to tell it something."""
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
    """How many words a twig node has."""
    flags, end = np.int64(words[at]), at + 2
    for _ in range((flags >> TESTS_SHIFT & COUNT_MASK) + (flags >> FIRSTS_SHIFT & COUNT_MASK)):
        end += 3 if words[end] & np.uint32(IS_NUMBER) else 1
    return int(end - at)


# Values of a document's nodes against the tests of twigs.


@inlined
def all_hold(twigs: Twigs, nodes: Nodes, at: int, tests: int, node: int) -> bool:
    for _ in range(tests):
        flags = np.int64(twigs.word[at])
        if flags & IS_NUMBER:
            low, high = np.uint64(twigs.word[at + 1]), np.uint64(twigs.word[at + 2])
            literal = np.int64(high << np.uint64(32) | low).view(np.float64)
            holds = _compares(flags & OPERATOR_MASK, nodes.number[node], literal)
            at += 3
        else:
            holds = _reads(twigs, nodes, flags & OPERATOR_MASK, node, flags >> STRING_SHIFT)
            at += 1
        if holds == (flags & TEST_NEGATED != 0):
            return False
    return True


@inlined
def _compares(operator: int, value: float, literal: float) -> bool:
    """What is no number is unequal to every number, and that is all."""
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
def _reads(twigs: Twigs, nodes: Nodes, operator: int, node: int, literal: int) -> bool:
    """A node's value as a text. Equal texts have equal numbers; each is sought once."""
    if operator <= UNEQUAL:
        if nodes.string[node] == NOT_SOUGHT:
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
