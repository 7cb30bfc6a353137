"""Hash tables of names: keys of JSON paths, words of lists, XML namespaces, steps of tag paths.

    parent   key        a trie of paths has a node for each; for lists of words the parent is the number of the list
    0        seller
    1        city       the path seller.city, if seller is node 1

`slots` finds a key by its parent and its bytes: open addressing, at most half full, -1 where empty. The
functions take any NamedTuple with the fields of `Keys`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tidings.matching.kernels.bytes import BYTES, WHOLE, copy_bytes, hash_bytes, load_word
from tidings.matching.kernels.compiled import inlined, kernel

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


@kernel
def fill_slots(table: Any) -> None:
    """Hash all keys and enter them into the empty slots; a key without a parent cannot be found."""
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
    """Return whether the bytes are the key of the node."""
    if table.key_length[node] != length:
        return False
    first, i = table.key_start[node], 0
    if start + BYTES <= len(text):
        if (load_word(text, start) ^ table.key_word[node]) & WHOLE[min(length, BYTES)]:
            return False
        i = min(length, BYTES)
    while i < length and table.keys[first + i] == text[start + i]:
        i += 1
    return i == length


@inlined
def child(table: Any, parent: int, key_hash: Any, text: Any, start: int, length: int) -> Any:
    """Return the node below `parent` with the key in the text, or NOWHERE. The bytes decide, not the hash."""
    mask = len(table.slots) - 1
    slot = _slot(key_hash, parent, mask)
    node = np.int64(table.slots[slot])
    while node >= 0:
        if table.parent[node] == parent and is_key(table, node, text, start, length):
            return node
        slot = (slot + 1) & mask
        node = np.int64(table.slots[slot])
    return np.int64(NOWHERE)


# Tables that grow while a kernel runs: namespaces, and the steps of tag paths.
#
# A name is looked up by its parent and its bytes. A new one is entered if there is room; otherwise the caller enlarges
# the table and runs the kernel again.


NO_ROOM, TOO_MUCH = -2, -3
MOST_PATH_BYTES = 64_000_000
"""A table whose tag paths, written out, exceed this size accepts no new name.

Otherwise a batch of small documents, each with a long path and many names at its end, could fill the memory.
"""

MOST_STEPS = 1_000
"""Probes per lookup: only names chosen on purpose collide that often."""

ENTRIES, NAME_BYTES, PATH_BYTES, TURN = 0, 1, 2, 3
"""Counters in `used`: entries, bytes of names, bytes of tag paths written out, documents begun."""

ELEMENT, ATTRIBUTE, TEXT = 0, 1, 2
"""The kinds of `tidings.documents.model.NodeKind`."""

_SHIFT, _LOW = 32, (1 << 32) - 1
_AT, _TEXT_STEP = 1, 6


class Names(NamedTuple):
    """The fields of `Keys`, with room for more, and counters in `used`; at most half of the slots are filled.

    The parent of namespaces is 0; the first one means no namespace, the second is that of the prefix xml.
    """

    parent: Any
    key_start: Any
    key_length: Any
    key_hash: Any
    key_word: Any
    keys: Any
    slots: Any
    used: Any


class Paths(NamedTuple):
    """Tag paths as names below a `place`: parent path, namespace and kind.

    By path: the length of its last name and of the whole path in bytes, the path of its texts (or -1), and
    the last document that had it.
    """

    parent: Any
    key_start: Any
    key_length: Any
    key_hash: Any
    key_word: Any
    keys: Any
    slots: Any
    used: Any
    name_length: Any
    path_length: Any
    text: Any
    met: Any


@inlined
def make_place(path: int, space: int, kind: int) -> Any:
    """Return one number for a parent path (-1: the document), a namespace and a kind of node."""
    return (np.int64(path) + 1) << _SHIFT | np.int64(space) << 2 | np.int64(kind)


def split_place(number: int) -> tuple[int, int, int]:
    """Return path, namespace and kind of a place."""
    return (number >> _SHIFT) - 1, (number & _LOW) >> 2, number & 3


@inlined
def _name_slot(key_hash: Any, parent: int, mask: int) -> Any:
    """Return the first slot. All bits of the parent count: those of its path are the upper ones."""
    mixed = (key_hash ^ (np.uint64(parent) * _SPREAD)) * _SPREAD
    return np.int64(mixed >> np.uint64(32)) & mask


@inlined
def enter_name(table: Any, parent: int, key_hash: Any, text: Any, start: int, length: int) -> Any:
    """Return the number of a name, a new one if it is not in the table, or NO_ROOM or TOO_MUCH."""
    mask = len(table.slots) - 1
    slot = _name_slot(key_hash, parent, mask)
    node = np.int64(table.slots[slot])
    steps = 0
    while node >= 0 and steps < MOST_STEPS:
        if table.parent[node] == parent and is_key(table, node, text, start, length):
            return node
        slot = (slot + 1) & mask
        node = np.int64(table.slots[slot])
        steps += 1
    if node >= 0 or table.used[PATH_BYTES] > MOST_PATH_BYTES:
        return np.int64(TOO_MUCH)
    new, at = table.used[ENTRIES], table.used[NAME_BYTES]
    if new == len(table.parent) or at + length > len(table.keys):
        return np.int64(NO_ROOM)
    word = np.uint64(0)
    for i in range(min(length, BYTES)):
        word |= np.uint64(text[start + i]) << np.uint64(8 * i)
    copy_bytes(text, start, length, table.keys, at)
    table.parent[new], table.key_start[new], table.key_length[new] = parent, at, length
    table.key_hash[new], table.key_word[new], table.slots[slot] = key_hash, word, new
    table.used[ENTRIES], table.used[NAME_BYTES] = new + 1, at + length
    return np.int64(new)


@inlined
def enter_tag_path(
    paths: Paths,
    spaces: Names,
    above: int,
    space: int,
    kind: int,
    key_hash: Any,
    text: Any,
    start: int,
    length: int,
) -> Any:
    """Return the number of a tag path, a new one if it is not in the table, or NO_ROOM or TOO_MUCH."""
    known = paths.used[ENTRIES]
    path = enter_name(paths, make_place(above, space, kind), key_hash, text, start, length)
    if path == known:
        uri = np.int64(spaces.key_length[space])
        name = length + (uri + 2 if uri > 0 else 0)
        shown = _TEXT_STEP if kind == TEXT else name + _AT if kind == ATTRIBUTE else name
        paths.name_length[path] = name
        paths.path_length[path] = shown + 1 + (paths.path_length[above] if above >= 0 else 0)
        paths.text[path], paths.met[path] = -1, -1
        paths.used[PATH_BYTES] += paths.path_length[path]
    return path


@kernel
def enter_space(spaces: Names, uri: Any) -> Any:
    """Return the number of a namespace, or NO_ROOM; for callers in Python."""
    return enter_name(spaces, 0, hash_bytes(uri, 0, len(uri)), uri, 0, len(uri))


@kernel
def enter_path(paths: Paths, spaces: Names, above: int, space: int, kind: int, name: Any) -> Any:
    """Return the number of a tag path, or NO_ROOM or TOO_MUCH; for callers in Python."""
    return enter_tag_path(
        paths, spaces, above, space, kind, hash_bytes(name, 0, len(name)), name, 0, len(name)
    )


@kernel
def refill_slots(table: Any) -> None:
    """Enter all names into new, empty slots."""
    mask = len(table.slots) - 1
    for node in range(table.used[ENTRIES]):
        slot = _name_slot(table.key_hash[node], table.parent[node], mask)
        while table.slots[slot] >= 0:
            slot = (slot + 1) & mask
        table.slots[slot] = node
