"""Strings: lookup of document texts among the strings of a segment, and tries of text patterns."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tidings.matching.kernels.bytes import hash_bytes
from tidings.matching.kernels.codes import StringCodec, find_hashed
from tidings.matching.kernels.compiled import I32, U8, allocating_kernel, inlined, kernel
from tidings.matching.kernels.vectors import prefetch

NONE, NOT_LOOKED_UP, PENDING, REPEATED = -1, -2, -3, -4
"""Instead of the number of a string: not a known string; not looked up. During lookup: pending; same text as
the previous atom.
"""

GROUP = 16
"""Texts that are looked up together: the memory of the last is prefetched before the first is compared."""


@kernel
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
    """Write for each text whose path is `asked` for its number among the strings of a column, or NONE.

    An element and its text node share one text. `hashes` has room for GROUP.
    """
    for begin in range(0, len(path), GROUP):
        end = min(len(path), begin + GROUP)
        for a in range(begin, end):
            found[a] = NONE if asked[path[a]] else NOT_LOOKED_UP
            if not asked[path[a]] or length[a] > codec.longest[column]:
                continue
            found[a] = REPEATED if a > 0 and _is_same(value, length, found, a) else PENDING
            if found[a] == PENDING:
                hashes[a - begin] = hash_bytes(text, value[a], length[a])
                prefetch(codec.slots, _slot(codec, column, hashes[a - begin]))
        _prefetch_strings(found, codec, column, hashes, begin, end)
        for a in range(begin, end):
            if found[a] == REPEATED:
                found[a] = found[a - 1]
            elif found[a] == PENDING:
                found[a] = find_hashed(codec, column, text, value[a], length[a], hashes[a - begin])


@inlined
def _is_same(value: Any, length: Any, found: Any, a: int) -> bool:
    """Return whether a text is the previous one, and that one has been or is being looked up."""
    return bool(value[a] == value[a - 1] and length[a] == length[a - 1] and found[a - 1] != NOT_LOOKED_UP)


@inlined
def _slot(codec: StringCodec, column: int, hashed: Any) -> int:
    return int(codec.slot_start[column] + np.int64(hashed & np.uint64(codec.slot_mask[column])))


@inlined
def _prefetch_strings(found: Any, codec: StringCodec, column: int, hashes: Any, begin: int, end: int) -> None:
    """Prefetch the strings that the hashes lead to: first their offsets, then their bytes."""
    for a in range(begin, end):
        if found[a] == PENDING:
            number = codec.slots[_slot(codec, column, hashes[a - begin])]
            prefetch(codec.offsets, codec.start[column] + max(0, number))
    for a in range(begin, end):
        if found[a] == PENDING:
            number = codec.slots[_slot(codec, column, hashes[a - begin])]
            prefetch(codec.data, codec.offsets[codec.start[column] + max(0, number)])


# Which of many patterns a text starts with, ends with or contains: one trie, three traversals.
#
# The trie is built from sorted patterns, level by level, so that the children of a node are adjacent and in byte order.
# Failure links make it an Aho-Corasick automaton: a text is read once, however many patterns there are.


class Trie(NamedTuple):
    """Nodes level by level, the root first. The children of node i are first[i] to first[i + 1].

    `pattern` is the pattern that ends at the node or -1, `fail` the node of its longest proper suffix, and
    `link` the next node on the chain of failures, below the root, where a pattern ends, or -1. Each array has
    one entry more than there are nodes, so that several tries fit into one array.
    """

    first: I32
    byte: U8
    pattern: I32
    fail: I32
    link: I32


@allocating_kernel
def build_trie(offsets: Any, data: Any) -> Any:
    """Build the trie of distinct patterns in byte order; pattern i is data[offsets[i]:offsets[i + 1]]."""
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
    _link_failures(trie, nodes)
    return trie


@inlined
def child(trie: Trie, base: int, node: int, key: int) -> int:
    """Return the child of `node` by `key`, or -1; `base` is where the nodes of this trie begin."""
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
def next_state(trie: Trie, base: int, node: int, key: int) -> int:
    """Return the state of the automaton after reading `key` in `node`."""
    while True:
        found = child(trie, base, node, key)
        if found >= 0:
            return found
        if node == 0:
            return 0
        node = trie.fail[base + node]


@inlined
def _link_failures(trie: Trie, nodes: int) -> None:
    for node in range(nodes):
        for next_node in range(trie.first[node], trie.first[node + 1]):
            fail = 0 if node == 0 else next_state(trie, 0, trie.fail[node], trie.byte[next_node])
            trie.fail[next_node] = fail
            trie.link[next_node] = fail if fail > 0 and trie.pattern[fail] >= 0 else trie.link[fail]
