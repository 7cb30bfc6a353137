"""Twig check for small documents: the nodes that satisfy a twig node are bits, and branches join by `and`.

    <author><first>Dan</first><last>Chai</last></author>      //author[first = "Dan" and last = "Chai"]

The nodes named `first` are a set that is known for the document; those with the value "Dan" are a subset; the
set of their parents is all that `author` needs of this branch.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tidings.matching.kernels.compiled import inlined
from tidings.matching.kernels.shapes.twig_arrays import (
    COUNT_MASK,
    DESCENDANT,
    EQUAL,
    FIRSTS_SHIFT,
    INNER,
    IS_NUMBER,
    KIND_MASK,
    KIND_SHIFT,
    KINDS,
    LEADS_ON,
    MOST_WORDS,
    NEGATED,
    OPENS,
    OPERATOR_MASK,
    PARENT_SHIFT,
    REQUIRED,
    STRING_SHIFT,
    TEST_NEGATED,
    TESTS_SHIFT,
    Nodes,
    Twigs,
    Work,
    all_hold,
    node_words,
)
from tidings.matching.kernels.strings import NOT_LOOKED_UP
from tidings.matching.kernels.vectors import find_first_one

ONE, NO_BITS, ALL_BITS = np.uint64(1), np.uint64(0), np.uint64((1 << 64) - 1)
UNSURE = 2
"""Instead of whether a twig holds."""


@inlined
def is_small(nodes: Nodes, row: int) -> bool:
    return bool(nodes.starts[row + 1] - nodes.starts[row] <= 64 * MOST_WORDS)


@inlined
def collect_sets(nodes: Nodes, work: Work, row: int) -> None:
    """Build the sets of a document: its nodes by name, by namespace and by kind, and the ancestors of each."""
    top, before = len(work.above) - MOST_WORDS, work.document[2]
    if before >= 0:
        _update_names(nodes, work, before, False)
    _update_names(nodes, work, row, True)
    for w in range(MOST_WORDS):
        work.above[top + w] = NO_BITS
    for d in range(nodes.starts[row + 1] - nodes.starts[row]):
        _collect_ancestors(work, d, np.int64(nodes.parent[nodes.starts[row] + d]), top)
    work.document[2] = row


@inlined
def _update_names(nodes: Nodes, work: Work, row: int, there: bool) -> None:
    """Add a document's nodes to the sets of their names, or remove them: there may be thousands of names."""
    first, names = nodes.starts[row], len(work.named) // (MOST_WORDS * KINDS)
    for d in range(nodes.starts[row + 1] - first):
        path, word, bit = nodes.path[first + d], d >> 6, ONE << np.uint64(d & 63)
        kind = np.int64(nodes.kind[path]) * names
        for name in (np.int64(nodes.name[path]), np.int64(nodes.space[path]), names - 1):
            if name >= 0:
                place = (kind + name) * MOST_WORDS + word
                work.named[place] = work.named[place] | bit if there else NO_BITS


@inlined
def _collect_ancestors(work: Work, d: int, parent: int, top: int) -> None:
    """Set the ancestors of a node: its parent and the ancestors of that. Parents come before their children."""
    if parent < 0:
        work.above[top + (d >> 6)] |= ONE << np.uint64(d & 63)
    for w in range(MOST_WORDS):
        work.above[d * MOST_WORDS + w] = work.above[parent * MOST_WORDS + w] if parent >= 0 else NO_BITS
    if parent >= 0:
        work.above[d * MOST_WORDS + (parent >> 6)] |= ONE << np.uint64(parent & 63)


@inlined
def sets_hold(twigs: Twigs, nodes: Nodes, work: Work, first: int, words: int, begin: int, end: int) -> int:
    """Return whether a twig holds for the document; UNSURE if it asks for the first of several nodes.

    The nodes of the document begin at `first`, and its sets have `words` words.
    """
    q, at = 0, begin
    while at < end:
        flags = np.int64(twigs.word[at])
        if flags & (LEADS_ON | COUNT_MASK << FIRSTS_SHIFT):
            return UNSURE
        found = _filter_nodes(twigs, nodes, work, q, at, flags, first, words)
        if not found and flags & REQUIRED:
            return 0
        if flags >> PARENT_SHIFT:
            _propagate(nodes, work, q, flags, first, words)
        elif (found if flags & DESCENDANT else _at_top(work, q, words)) == (flags & NEGATED != 0):
            return 0
        at += node_words(twigs.word, at)
        q += 1
    return 1


@inlined
def _filter_nodes(
    twigs: Twigs, nodes: Nodes, work: Work, q: int, at: int, flags: int, first: int, words: int
) -> bool:
    """Leave in `held` the nodes that satisfy a twig node; return whether there are any."""
    kind, tests = flags >> KIND_SHIFT & KIND_MASK, flags >> TESTS_SHIFT & COUNT_MASK
    names, left = len(work.named) // (MOST_WORDS * KINDS), NO_BITS
    named = (kind * names + np.int64(twigs.word[at + 1])) * MOST_WORDS
    for w in range(words):
        bits = work.named[named + w]
        if flags & INNER:
            bits &= work.held[q * MOST_WORDS + w]
        if tests:
            bits = _apply_tests(twigs, nodes, at + 2, tests, first + 64 * w, bits)
        work.held[q * MOST_WORDS + w] = bits
        left |= bits
    return bool(left != NO_BITS)


@inlined
def _apply_tests(twigs: Twigs, nodes: Nodes, at: int, tests: int, node: int, bits: Any) -> Any:
    """Return the nodes from `node` on whose values pass the tests."""
    rest = bits
    is_equality = (
        tests == 1 and np.int64(twigs.word[at]) & (OPERATOR_MASK | TEST_NEGATED | IS_NUMBER) == EQUAL
    )
    literal = np.int64(twigs.word[at]) >> STRING_SHIFT
    while rest != NO_BITS:
        bit = find_first_one(rest)
        rest &= rest - ONE
        string = nodes.string[node + bit]
        if is_equality and string != NOT_LOOKED_UP:
            holds = string == literal
        else:
            holds = all_hold(twigs, nodes, at, tests, node + bit)
        if not holds:
            bits &= ~(ONE << np.uint64(bit))
    return bits


@inlined
def _at_top(work: Work, q: int, words: int) -> bool:
    top = len(work.above) - MOST_WORDS
    met = NO_BITS
    for w in range(words):
        met |= work.held[q * MOST_WORDS + w] & work.above[top + w]
    return bool(met != NO_BITS)


@inlined
def _propagate(nodes: Nodes, work: Work, q: int, flags: int, first: int, words: int) -> None:
    """Leave in the parent's set those nodes that have, or with NEGATED do not have, a satisfying node below them."""
    target, turned = (q + (flags >> PARENT_SHIFT)) * MOST_WORDS, ALL_BITS if flags & NEGATED else NO_BITS
    for v in range(words):
        parents = NO_BITS
        for w in range(words):
            parents |= _parents(nodes, work, work.held[q * MOST_WORDS + w], flags, first, w, v)
        parents ^= turned
        work.held[target + v] = parents if flags & OPENS else work.held[target + v] & parents


@inlined
def _parents(nodes: Nodes, work: Work, bits: Any, flags: int, first: int, w: int, v: int) -> Any:
    """Return word v of the parents, or of all ancestors, of the nodes in word w."""
    parents = NO_BITS
    while bits != NO_BITS:
        d = 64 * w + find_first_one(bits)
        bits &= bits - ONE
        if flags & DESCENDANT:
            parents |= work.above[d * MOST_WORDS + v]
        else:
            parent = nodes.parent[first + d]
            if parent >= 0 and parent >> 6 == v:
                parents |= ONE << np.uint64(parent & 63)
    return parents
