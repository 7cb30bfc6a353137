"""Twigs as they are checked: from their leaves to their roots, with less to ask on the way.

Compiled twigs begin at the root, and each node has its parent's place. Here the last node comes first, and a node
says how far behind it its parent stands (0 for the document). The first that tells its parent something is marked
(OPENS): what a node was told before has no meaning. A node that may have any name has the number behind all names.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tidings.kernels.compiled import inlined, reading
from tidings.kernels.twig_arrays import (
    COUNT_MASK,
    FIRSTS_SHIFT,
    IS_NUMBER,
    KIND_MASK,
    KIND_SHIFT,
    OPENS,
    PARENT_SHIFT,
    TESTS_SHIFT,
    TEXT,
)


@reading
def turn(starts: Any, words: Any, which: Any, star: int, names: int, place: Any, kept: Any) -> None:
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
