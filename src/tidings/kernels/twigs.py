"""Twigs meet documents: of the pairs that the tests let through, those whose branches meet in the same elements.

A twig is checked from its leaves to its root. For each of its nodes the kernel finds the document's nodes that satisfy
it together with all below it, and tells their parents or ancestors. So it takes a time that grows with the size of the
twig times the size of the document, however the two are nested. A twig node that must be found, and is not, ends it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tidings.kernels.codes import StringCodec, find_string
from tidings.kernels.compiled import inlined, reading
from tidings.kernels.dtypes import F64, I32, I64, U8, U32
from tidings.kernels.vectors import prefetch

# As in compiler.twig_words; a test keeps them equal.
DESCENDANT, NEGATED, LEADS_ON, REQUIRED, INNER = 1, 1 << 3, 1 << 4, 1 << 5, 1 << 6
KIND_SHIFT, KIND_MASK = 1, 3
TESTS_SHIFT, FIRSTS_SHIFT, COUNT_MASK, PARENT_SHIFT = 7, 11, 15, 16
OPERATOR_MASK, TEST_NEGATED, IS_NUMBER, STRING_SHIFT = 7, 1 << 3, 1 << 4, 5
EQUAL, UNEQUAL, LESS, AT_MOST, GREATER, AT_LEAST, CONTAINS, STARTS_WITH = range(8)
TEXT, KINDS = 2, 3
AHEAD, LINE = 4, 16
"""How many pairs ahead something is asked for; words in a line of the processor's cache."""

NONE = -1
NOT_SOUGHT = -2
"""In place of a string's number: nobody has asked yet."""


class Twigs(NamedTuple):
    """What a segment's clauses ask beside their tests, and whose they are. Empty if all clauses are about events.

    subscription   by clause
    several        by clause: a number for subscriptions with more than one clause, else -1
    of             by clause: what sort of publication it is about (see `atoms.Of`)
    start, word    by clause: its twig (see `compiler.twig_words`), or its pattern (see `compiler.graph_words`); it has
                   no words where the tests say it all
    star           the number of the name `*`, or -1
    space          by number of a name: whether it stands for all names of a namespace
    strings        the strings of all twigs and patterns, as those of one column
    """

    subscription: I32
    several: I32
    of: U8
    start: I64
    word: U32
    star: I32
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

    document   the publication whose lists these are; the tick of the last marks
    head       by number of a name: the first node of that name; behind the names, by kind: the first of that kind
    next       by node: the next of its name
    other      by node: the next of its kind
    place      by twig node: where its words begin
    state      by twig node and node: NONE if it does not satisfy it, else the node itself, or where that leads on to;
               it says something of nodes of the right name only
    mark       by node, one further than it stands, the document first: the first node found below it
    tick       by node: when it was marked
    seen       by number in `several`: the publication that matched last
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


@reading
def check(twigs: Twigs, nodes: Nodes, work: Work, publication: Any, clause: Any, count: int, of: int) -> int:
    """Of pairs with clauses, keep those that hold, each subscription once, in place of its clause; how many those are.

    The pairs of a publication stand together.
    """
    kept = 0
    for i in range(count):
        prefetch_twigs(twigs, clause, i, count)
        row, asked = publication[i], np.int64(clause[i])
        if twigs.of[asked] != of:
            continue
        several = twigs.several[asked]
        if several >= 0 and work.seen[several] == row:
            continue
        if twigs.start[asked] < twigs.start[asked + 1]:
            if work.document[0] != row:
                _list_nodes(nodes, work, np.int64(row))
            if not _holds(twigs, nodes, work, np.int64(row), asked):
                continue
        if several >= 0:
            work.seen[several] = row
        publication[kept] = row
        clause[kept] = twigs.subscription[asked]
        kept += 1
    return kept


@inlined
def prefetch_twigs(twigs: Twigs, clause: Any, i: int, count: int) -> None:
    """Ask for what pairs further on will need: their clauses stand anywhere."""
    if i + 2 * AHEAD < count:
        far = clause[i + 2 * AHEAD]
        prefetch(twigs.start, far)
        prefetch(twigs.of, far)
        prefetch(twigs.several, far)
        prefetch(twigs.subscription, far)
        at = twigs.start[clause[i + AHEAD]]
        prefetch(twigs.word, at)
        prefetch(twigs.word, at + LINE)


@inlined
def _list_nodes(nodes: Nodes, work: Work, row: int) -> None:
    """List a document's nodes by name and by kind, in the order of the document."""
    names = len(work.head) - KINDS
    for i in range(len(work.head)):
        work.head[i] = NONE
    first = nodes.starts[row]
    for d in range(nodes.starts[row + 1] - first - 1, -1, -1):
        path = nodes.path[first + d]
        name, kind = nodes.name[path], names + nodes.kind[path]
        if name >= 0:
            work.next[d] = work.head[name]
            work.head[name] = d
        work.other[d] = work.head[kind]
        work.head[kind] = d
    work.document[0] = row


@inlined
def _holds(twigs: Twigs, nodes: Nodes, work: Work, row: int, clause: int) -> bool:
    size = _find_places(twigs, work, twigs.start[clause], twigs.start[clause + 1])
    first, width = nodes.starts[row], len(work.mark)
    for q in range(size):  # a node's state is made when the first below it, or it itself, is looked at
        work.state[q * width] = NONE
    for q in range(size - 1, -1, -1):
        flags = np.int64(twigs.word[work.place[q]])
        if not _find(twigs, nodes, work, q, first) and flags & REQUIRED:
            return False
        if not _ask(twigs, nodes, work, q, flags, first):
            return False
    return True


@inlined
def _find_places(twigs: Twigs, work: Work, begin: int, end: int) -> int:
    """Where the twig's nodes begin; how many there are."""
    size, at = 0, begin
    while at < end:
        work.place[size] = at
        flags = np.int64(twigs.word[at])
        at += 2
        tests = (flags >> TESTS_SHIFT & COUNT_MASK) + (flags >> FIRSTS_SHIFT & COUNT_MASK)
        for _ in range(tests):
            at += 3 if twigs.word[at] & np.uint32(IS_NUMBER) else 1
        size += 1
    return size


@inlined
def _first(twigs: Twigs, work: Work, at: int) -> Any:
    """The first node that a twig node may mean, and whether to look at those of its name, or at all of its kind."""
    kind, asked = np.int64(twigs.word[at]) >> KIND_SHIFT & KIND_MASK, np.int64(twigs.word[at + 1])
    named = kind != TEXT and asked != twigs.star[0] and twigs.space[asked] == 0
    return work.head[asked if named else len(work.head) - KINDS + kind], named


@inlined
def _find(twigs: Twigs, nodes: Nodes, work: Work, q: int, first: int) -> bool:
    """Leave in the state of a twig node the nodes that satisfy it, and tell those above them; whether there are any."""
    at, base, found = work.place[q], q * len(work.mark) + 1, False
    flags, asked = np.int64(twigs.word[at]), np.int32(twigs.word[at + 1])
    kind, tests = flags >> KIND_SHIFT & KIND_MASK, flags >> TESTS_SHIFT & COUNT_MASK
    in_space = kind != TEXT and twigs.space[asked] != 0
    work.document[1] += 1
    d, named = _first(twigs, work, at)
    while d != NONE:
        path = nodes.path[first + d]
        good = nodes.kind[path] == kind and (not in_space or asked == nodes.space[path])
        if good and flags & INNER:
            good = work.state[base + d] != NONE
        if good and tests:
            good = _all_hold(twigs, nodes, at + 2, tests, first + d)
        if good:
            found = True
            _tell(nodes, work, flags, first, d, work.state[base + d] if flags & INNER else d)
        d = work.next[d] if named else work.other[d]
    return found


@inlined
def _tell(nodes: Nodes, work: Work, flags: int, first: int, d: int, value: int) -> None:
    """Tell the parent, or all ancestors, of a node that satisfies a twig node. The document counts as place 0."""
    up, tick = nodes.parent[first + d] + 1, work.document[1]
    while work.tick[up] != tick or work.mark[up] > value:
        work.mark[up], work.tick[up] = value, tick
        if up == 0 or not flags & DESCENDANT:
            break
        up = nodes.parent[first + up - 1] + 1


@inlined
def _ask(twigs: Twigs, nodes: Nodes, work: Work, q: int, flags: int, first: int) -> bool:
    """Leave in the state of the parent those nodes below which there is what is asked; False if the twig fails."""
    wanted, parent = flags & NEGATED == 0, flags >> PARENT_SHIFT
    if parent == 0:
        return _is_told(twigs, nodes, work, q, flags, first, 0) == wanted
    base = (parent - 1) * len(work.mark)
    fresh = work.state[base] == NONE
    work.state[base] = 0
    d, named = _first(twigs, work, work.place[parent - 1])
    while d != NONE:
        place = base + 1 + d
        if fresh:
            work.state[place] = d
        if work.state[place] != NONE:
            if _is_told(twigs, nodes, work, q, flags, first, d + 1) != wanted:
                work.state[place] = NONE
            elif flags & LEADS_ON:
                work.state[place] = work.mark[d + 1]
        d = work.next[d] if named else work.other[d]
    return True


@inlined
def _is_told(twigs: Twigs, nodes: Nodes, work: Work, q: int, flags: int, first: int, place: int) -> bool:
    """Whether a node has been told of something below it, the first of which passes the tests for that."""
    if work.tick[place] != work.document[1]:
        return False
    told = work.mark[place]
    firsts = flags >> FIRSTS_SHIFT & COUNT_MASK
    if firsts == 0:
        return True
    at = work.place[q] + 2
    for _ in range(flags >> TESTS_SHIFT & COUNT_MASK):
        at += 3 if twigs.word[at] & np.uint32(IS_NUMBER) else 1
    return _all_hold(twigs, nodes, at, firsts, first + told)


@inlined
def _all_hold(twigs: Twigs, nodes: Nodes, at: int, tests: int, node: int) -> bool:
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
