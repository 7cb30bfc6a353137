"""Keys: byte strings below a parent, found by their hash.

    parent   key        a trie of paths has a node for each; lists of words have their number as the parent
    0        seller
    1        city       the path seller.city, if seller is the node 1

`slots` finds a key by its parent and its bytes: open addressing, at most half full, -1 where empty. The functions
take any NamedTuple with the fields of `Keys`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tidings.kernels.compiled import inlined, reading
from tidings.kernels.hashing import hash_bytes
from tidings.kernels.words import BYTES, WHOLE, word_at

NOWHERE = -1
_SPREAD = np.uint64(0x9E3779B97F4A7C15)


class Keys(NamedTuple):
    """Key i is key_length[i] bytes of `keys` at key_start[i], below parent[i]; key_word[i] has the first eight."""

    parent: Any
    key_start: Any
    key_length: Any
    key_hash: Any
    key_word: Any
    keys: Any
    slots: Any


@inlined
def _slot(key_hash: Any, parent: int, mask: int) -> Any:
    mixed = (key_hash ^ np.uint64(parent)) * _SPREAD
    return np.int64(mixed >> np.uint64(32)) & mask


@reading
def fill_slots(table: Any) -> None:
    """Hash all keys and enter them into the (empty) slots; one without a parent is not to be found."""
    mask = len(table.slots) - 1
    for node in range(len(table.parent)):
        if table.parent[node] < 0:
            continue
        first = table.key_start[node]
        table.key_hash[node] = hash_bytes(table.keys, first, table.key_length[node])
        slot = _slot(table.key_hash[node], table.parent[node], mask)
        while table.slots[slot] >= 0:
            slot = (slot + 1) & mask
        table.slots[slot] = node


@inlined
def is_key(table: Any, node: int, text: Any, start: int, length: int) -> bool:
    """Whether the bytes are the key of the node."""
    if table.key_length[node] != length:
        return False
    first, i = table.key_start[node], 0
    if start + BYTES <= len(text):
        if (word_at(text, start) ^ table.key_word[node]) & WHOLE[min(length, BYTES)]:
            return False
        i = min(length, BYTES)
    while i < length and table.keys[first + i] == text[start + i]:
        i += 1
    return i == length


@inlined
def child(table: Any, parent: int, key_hash: Any, text: Any, start: int, length: int) -> Any:
    """The node below `parent` with the key in the text, or NOWHERE. The hash leads there, the bytes decide."""
    mask = len(table.slots) - 1
    slot = _slot(key_hash, parent, mask)
    node = np.int64(table.slots[slot])
    while node >= 0:
        if table.parent[node] == parent and is_key(table, node, text, start, length):
            return node
        slot = (slot + 1) & mask
        node = np.int64(table.slots[slot])
    return np.int64(NOWHERE)
