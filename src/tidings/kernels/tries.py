"""Which of many patterns a text begins with, ends with or contains: one trie, three walks.

The trie is built from sorted patterns, level by level, so that the children of a node stand together in byte order.
Failure links make it an Aho-Corasick automaton: a text is read once, however many patterns there are.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from tidings.kernels.compiled import inlined
from tidings.kernels.dtypes import I32, U8


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
