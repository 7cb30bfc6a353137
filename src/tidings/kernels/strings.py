"""Texts of documents are sought in the strings of a segment, each once, before anything else asks for them."""

from __future__ import annotations

from typing import Any

import numpy as np

from tidings.kernels.codes import StringCodec, find_hashed
from tidings.kernels.compiled import inlined, reading
from tidings.kernels.hashing import hash_bytes
from tidings.kernels.vectors import prefetch

NONE, NOT_SOUGHT, SOUGHT, SAME = -1, -2, -3, -4
"""In place of a string's number: it is none of them; nobody has asked yet. While texts are sought: this one is; it is
the one before it."""

AT_ONCE = 16
"""So many texts are sought together: the memory is asked for what the last needs before the first is looked at."""


@reading
def seek(
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
