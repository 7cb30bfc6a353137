"""Twig check: keeps the pairs that passed the tests and whose branches join in the same elements.

A twig is checked from its leaves to its root. For each twig node the kernel finds the document nodes that
satisfy it and everything below it, and marks their parents or ancestors. So the time grows with the size of
the twig times the size of the document, however they are nested. A required twig node without a document node
ends the check.

Most documents are small: for those, the nodes that satisfy a twig node are a bit set (see `twig_sets`). The
code below is for large documents, and for twigs that ask for the first of several nodes.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tidings.matching.kernels.compiled import inlined, kernel
from tidings.matching.kernels.shapes.twig_arrays import (
    COUNT_MASK,
    DESCENDANT,
    ENTRIES,
    FIRST_WORD,
    FIRSTS_SHIFT,
    INNER,
    IS_NUMBER,
    KIND_MASK,
    KIND_SHIFT,
    KINDS,
    LEADS_ON,
    NEGATED,
    NONE,
    OPENS,
    PARENT_SHIFT,
    REQUIRED,
    SEVERAL,
    SHAPE_MASK,
    SIZE_AND_SHAPE,
    SIZE_SHIFT,
    SUBSCRIPTION,
    TESTS_SHIFT,
    Nodes,
    Twigs,
    Work,
    all_hold,
    node_words,
    prefetch_twigs,
)
from tidings.matching.kernels.shapes.twig_sets import UNSURE, collect_sets, is_small, sets_hold


@kernel
def check(
    twigs: Twigs, nodes: Nodes, work: Work, publication: Any, clause: Any, count: int, shape: int
) -> int:
    """Keep the pairs whose twig holds, with subscriptions for clauses, each once; return how many there are.

    The pairs of a publication are adjacent.
    """
    kept = 0
    for i in range(count):
        prefetch_twigs(twigs, clause, i, count)
        row, asked = publication[i], ENTRIES * np.int64(clause[i])
        size = np.int64(twigs.clause[asked + SIZE_AND_SHAPE])
        if size & SHAPE_MASK != shape:
            continue
        several = twigs.clause[asked + SEVERAL]
        if several >= 0 and work.seen[several] == row:
            continue
        begin = np.int64(twigs.clause[asked + FIRST_WORD])
        end = begin + (size >> SIZE_SHIFT)
        if begin < end and not _holds(twigs, nodes, work, np.int64(row), begin, end):
            continue
        if several >= 0:
            work.seen[several] = row
        publication[kept] = row
        clause[kept] = twigs.clause[asked + SUBSCRIPTION]
        kept += 1
    return kept


@inlined
def _list_nodes(nodes: Nodes, work: Work, row: int) -> None:
    """List the nodes of a document by name and by kind, in document order."""
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
def _holds(twigs: Twigs, nodes: Nodes, work: Work, row: int, begin: int, end: int) -> bool:
    if is_small(nodes, row):
        if work.document[2] != row:
            collect_sets(nodes, work, row)
        answer = _sets_hold(twigs, nodes, work, row, begin, end)
        if answer != UNSURE:
            return bool(answer)
    if work.document[0] != row:
        _list_nodes(nodes, work, row)
    return _lists_hold(twigs, nodes, work, row, begin, end)


@inlined
def _sets_hold(twigs: Twigs, nodes: Nodes, work: Work, row: int, begin: int, end: int) -> int:
    """Check with sets. Nearly all documents need one word, for which the compiler removes the loops over words."""
    first = nodes.starts[row]
    words = (nodes.starts[row + 1] - first + 63) >> 6
    if words == 1:
        return int(sets_hold(twigs, nodes, work, first, 1, begin, end))
    return int(sets_hold(twigs, nodes, work, first, words, begin, end))


@inlined
def _lists_hold(twigs: Twigs, nodes: Nodes, work: Work, row: int, begin: int, end: int) -> bool:
    size = _find_places(twigs, work, begin, end)
    first = nodes.starts[row]
    for q in range(size):
        flags = np.int64(twigs.word[work.place[q]])
        if not _find_nodes(twigs, nodes, work, q, first) and flags & REQUIRED:
            return False
        if not _filter_parents(twigs, nodes, work, q, flags, first):
            return False
    return True


@inlined
def _find_places(twigs: Twigs, work: Work, begin: int, end: int) -> int:
    """Write where the nodes of the twig begin; return how many there are."""
    size, at = 0, begin
    while at < end:
        work.place[size] = at
        at += node_words(twigs.word, at)
        size += 1
    return size


@inlined
def _first_node(twigs: Twigs, work: Work, at: int) -> Any:
    """Return the first candidate for a twig node, and whether to follow those of its name, or all of its kind."""
    kind, asked = np.int64(twigs.word[at]) >> KIND_SHIFT & KIND_MASK, np.int64(twigs.word[at + 1])
    named = asked < len(twigs.space) and twigs.space[asked] == 0
    return work.head[asked if named else len(work.head) - KINDS + kind], named


@inlined
def _find_nodes(twigs: Twigs, nodes: Nodes, work: Work, q: int, first: int) -> bool:
    """Find the nodes that satisfy a twig node and mark those above them; return whether there are any."""
    at, base, found = work.place[q], q * len(work.mark) + 1, False
    flags, asked = np.int64(twigs.word[at]), np.int64(twigs.word[at + 1])
    kind, tests = flags >> KIND_SHIFT & KIND_MASK, flags >> TESTS_SHIFT & COUNT_MASK
    in_space = asked < len(twigs.space) and twigs.space[asked] != 0
    work.document[1] += 1
    d, named = _first_node(twigs, work, at)
    while d != NONE:
        path = nodes.path[first + d]
        good = nodes.kind[path] == kind and (not in_space or asked == nodes.space[path])
        if good and flags & INNER:
            good = work.state[base + d] != NONE
        if good and tests:
            good = all_hold(twigs, nodes, at + 2, tests, first + d)
        if good:
            found = True
            _mark_ancestors(nodes, work, flags, first, d, work.state[base + d] if flags & INNER else d)
        d = work.next[d] if named else work.other[d]
    return found


@inlined
def _mark_ancestors(nodes: Nodes, work: Work, flags: int, first: int, d: int, value: int) -> None:
    """Mark the parent, or all ancestors, of a node that satisfies a twig node. The document is place 0."""
    up, tick = nodes.parent[first + d] + 1, work.document[1]
    while work.tick[up] != tick or work.mark[up] > value:
        work.mark[up], work.tick[up] = value, tick
        if up == 0 or not flags & DESCENDANT:
            break
        up = nodes.parent[first + up - 1] + 1


@inlined
def _filter_parents(twigs: Twigs, nodes: Nodes, work: Work, q: int, flags: int, first: int) -> bool:
    """Leave in the state of the parent the nodes that have what the twig asks below them; False if the twig fails."""
    wanted, way = flags & NEGATED == 0, flags >> PARENT_SHIFT
    if way == 0:
        return _is_marked(twigs, nodes, work, q, flags, first, 0) == wanted
    base, opens = (q + way) * len(work.mark), flags & OPENS != 0
    d, named = _first_node(twigs, work, work.place[q + way])
    while d != NONE:
        place = base + 1 + d
        if opens:
            work.state[place] = d
        if work.state[place] != NONE:
            if _is_marked(twigs, nodes, work, q, flags, first, d + 1) != wanted:
                work.state[place] = NONE
            elif flags & LEADS_ON:
                work.state[place] = work.mark[d + 1]
        d = work.next[d] if named else work.other[d]
    return True


@inlined
def _is_marked(twigs: Twigs, nodes: Nodes, work: Work, q: int, flags: int, first: int, place: int) -> bool:
    """Return whether a node is marked, and the first node below it passes the tests for that."""
    if work.tick[place] != work.document[1]:
        return False
    node = work.mark[place]
    firsts = flags >> FIRSTS_SHIFT & COUNT_MASK
    if firsts == 0:
        return True
    at = work.place[q] + 2
    for _ in range(flags >> TESTS_SHIFT & COUNT_MASK):
        at += 3 if twigs.word[at] & np.uint32(IS_NUMBER) else 1
    return all_hold(twigs, nodes, at, firsts, first + node)
