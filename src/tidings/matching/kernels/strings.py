"""Texts of documents are sought in the strings of a segment, each once, before anything else asks for them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from tidings.matching.kernels.bytes import hash_bytes
from tidings.matching.kernels.codes import StringCodec, find_hashed
from tidings.matching.kernels.compiled import I32, U8, inlined, reading
from tidings.matching.kernels.vectors import prefetch

NONE, NOT_SOUGHT, SOUGHT, SAME = -1, -2, -3, -4
"""In place of a string's number: it is none of them; nobody has asked yet. While texts are sought: this one is; it is
the one before it."""

AT_ONCE = 16
"""So many texts are sought together: the memory is asked for what the last needs before the first is looked at."""


@reading
def find_strings(
    path: Any,
    value: Any,
    length: Any,
    text: Any,
    asked: Any,
    codec: StringCodec,
    column: int,
    hashes: Any,
    found: Any,
) -> None:
    """For each text whose path is `asked` for, its number among the strings of a column, or NONE.

    An element and its text node have one text between them. `hashes` has room for AT_ONCE.
    """
    for begin in range(0, len(path), AT_ONCE):
        end = min(len(path), begin + AT_ONCE)
        for a in range(begin, end):
            found[a] = NONE if asked[path[a]] else NOT_SOUGHT
            if not asked[path[a]] or length[a] > codec.longest[column]:
                continue
            found[a] = SAME if a > 0 and _is_same(value, length, found, a) else SOUGHT
            if found[a] == SOUGHT:
                hashes[a - begin] = hash_bytes(text, value[a], length[a])
                prefetch(codec.slots, _slot(codec, column, hashes[a - begin]))
        _look_ahead(found, codec, column, hashes, begin, end)
        for a in range(begin, end):
            if found[a] == SAME:
                found[a] = found[a - 1]
            elif found[a] == SOUGHT:
                found[a] = find_hashed(codec, column, text, value[a], length[a], hashes[a - begin])


@inlined
def _is_same(value: Any, length: Any, found: Any, a: int) -> bool:
    """Whether a text is the one before it, which has been or is being sought."""
    return bool(value[a] == value[a - 1] and length[a] == length[a - 1] and found[a - 1] != NOT_SOUGHT)


@inlined
def _slot(codec: StringCodec, column: int, hashed: Any) -> int:
    return int(codec.slot_start[column] + np.int64(hashed & np.uint64(codec.slot_mask[column])))


@inlined
def _look_ahead(found: Any, codec: StringCodec, column: int, hashes: Any, begin: int, end: int) -> None:
    """Ask the memory for the strings that the hashes lead to: first for where they stand, then for them."""
    for a in range(begin, end):
        if found[a] == SOUGHT:
            number = codec.slots[_slot(codec, column, hashes[a - begin])]
            prefetch(codec.offsets, codec.start[column] + max(0, number))
    for a in range(begin, end):
        if found[a] == SOUGHT:
            number = codec.slots[_slot(codec, column, hashes[a - begin])]
            prefetch(codec.data, codec.offsets[codec.start[column] + max(0, number)])


# Which of many patterns a text begins with, ends with or contains: one trie, three walks.
#
# The trie is built from sorted patterns, level by level, so that the children of a node stand together in byte order.
# Failure links make it an Aho-Corasick automaton: a text is read once, however many patterns there are.


class Trie(NamedTuple):
    """Nodes level by level, the root first. The children of node i are first[i] to first[i + 1].

    `pattern` is the pattern that ends at the node or -1, `fail` the node of its longest proper suffix, and `link` the
    next node below the root on the way of failures where a pattern ends, or -1. Each array has one entry more than
    there are nodes, so that several tries can stand in one array.
    """

    first: I32
    byte: U8
    pattern: I32
    fail: I32
    link: I32


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def build(offsets: Any, data: Any) -> Any:
    """The trie of distinct patterns in byte order; pattern i is data[offsets[i]:offsets[i + 1]]."""
    patterns = len(offsets) - 1
    most = offsets[patterns] - offsets[0] + 1
    first = np.zeros(most + 1, np.int32)
    byte = np.zeros(most + 1, np.uint8)
    pattern = np.full(most + 1, -1, np.int32)
    low, high = np.zeros(most, np.int32), np.zeros(most, np.int32)
    depth = np.zeros(most, np.int32)
    high[0] = patterns
    nodes, node = 1, 0
    while node < nodes:
        first[node] = nodes
        i, stop, deep = low[node], high[node], depth[node]
        while i < stop and offsets[i + 1] - offsets[i] == deep:
            pattern[node] = i
            i += 1
        while i < stop:
            key = data[offsets[i] + deep]
            j = i
            while j < stop and data[offsets[j] + deep] == key:
                j += 1
            byte[nodes], low[nodes], high[nodes], depth[nodes] = key, i, j, deep + 1
            nodes += 1
            i = j
        node += 1
    first[nodes] = nodes
    size = nodes + 1
    fail, link = np.zeros(size, np.int32), np.full(size, -1, np.int32)
    trie = Trie(first[:size].copy(), byte[:size].copy(), pattern[:size].copy(), fail, link)
    _link(trie, nodes)
    return trie


@inlined
def child(trie: Trie, base: int, node: int, key: int) -> int:
    """The child of `node` by `key`, or -1; `base` is where this trie's nodes begin."""
    low, high = trie.first[base + node], trie.first[base + node + 1]
    while low < high:
        middle = (low + high) >> 1
        if trie.byte[base + middle] < key:
            low = middle + 1
        else:
            high = middle
    if low < trie.first[base + node + 1] and trie.byte[base + low] == key:
        return int(low)
    return -1


@inlined
def step(trie: Trie, base: int, node: int, key: int) -> int:
    """Where the automaton goes from `node` on reading `key`."""
    while True:
        found = child(trie, base, node, key)
        if found >= 0:
            return found
        if node == 0:
            return 0
        node = trie.fail[base + node]


@inlined
def _link(trie: Trie, nodes: int) -> None:
    for node in range(nodes):
        for next_node in range(trie.first[node], trie.first[node + 1]):
            fail = 0 if node == 0 else step(trie, 0, trie.fail[node], trie.byte[next_node])
            trie.fail[next_node] = fail
            trie.link[next_node] = fail if fail > 0 and trie.pattern[fail] >= 0 else trie.link[fail]
