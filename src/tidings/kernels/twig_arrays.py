"""What checking twigs reads and writes: their words, the nodes of documents, room for one twig and one document."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tidings.kernels.codes import StringCodec
from tidings.kernels.compiled import inlined
from tidings.kernels.dtypes import F64, I32, I64, U8, U32, U64
from tidings.kernels.vectors import prefetch

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
    word           by clause: its twig (as `twig_order` leaves it), or its pattern (see `compiler.graph_words`); it has
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
