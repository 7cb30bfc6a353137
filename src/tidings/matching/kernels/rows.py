"""Rows of a segment: lookup by id, removal of dead rows from matches, order of matches."""

from __future__ import annotations

from typing import Any

import numpy as np

from tidings.matching.kernels.bytes import hash_bytes
from tidings.matching.kernels.compiled import inlined, kernel

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
HALF = np.uint64(32)


@inlined
def _first_slot(data: Any, start: int, length: int, slots: int) -> Any:
    """Return the first slot, from the hash's upper half mixed once more: any number of slots works."""
    upper = (hash_bytes(data, start, length) * GOLDEN) >> HALF
    return np.int64((upper * np.uint64(slots)) >> HALF)


@kernel
def fill_slots(slots: Any, offsets: Any, data: Any) -> None:
    """Enter distinct ids into an empty (-1) table with more slots than ids."""
    for row in range(len(offsets) - 1):
        slot = _first_slot(data, offsets[row], offsets[row + 1] - offsets[row], len(slots))
        while slots[slot] >= 0:
            slot = slot + 1 if slot + 1 < len(slots) else 0
        slots[slot] = row


@kernel
def find_rows(slots: Any, offsets: Any, data: Any, asked: Any, text: Any, rows: Any) -> None:
    """Write the row of each id, or -1. The bytes decide, not the hash."""
    for i in range(len(asked) - 1):
        start, length = asked[i], asked[i + 1] - asked[i]
        slot = _first_slot(text, start, length, len(slots))
        rows[i] = -1
        while slots[slot] >= 0 and rows[i] < 0:
            row = slots[slot]
            if offsets[row + 1] - offsets[row] == length and _same(data, offsets[row], text, start, length):
                rows[i] = row
            slot = slot + 1 if slot + 1 < len(slots) else 0


@inlined
def _same(data: Any, at: int, text: Any, start: int, length: int) -> bool:
    alike = 0
    while alike < length and data[at + alike] == text[start + alike]:
        alike += 1
    return alike == length


@kernel
def keep_alive(dead: Any, publication: Any, subscription: Any) -> int:
    """Move the pairs whose subscription has no bit in `dead` to the front; return how many there are."""
    kept = 0
    for i in range(len(subscription)):
        row = subscription[i]
        publication[kept] = publication[i]
        subscription[kept] = row
        kept += 1 - ((dead[row >> 3] >> (row & 7)) & 1)
    return kept


@kernel
def mark_dead(dead: Any, rows: Any) -> int:
    """Set the bits of rows, and move the newly marked ones to the front of `rows`; return how many there are."""
    new = 0
    for i in range(len(rows)):
        row = rows[i]
        bit = np.uint8(1 << (row & 7))
        if not dead[row >> 3] & bit:
            dead[row >> 3] |= bit
            rows[new] = row
            new += 1
    return new


@kernel
def order_by_publication(publication: Any, starts: Any, order: Any) -> None:
    """Write the stable order of pairs by publication, and where each publication's pairs start (counting sort).

    `starts` is zero and has an entry more than there are publications.
    """
    last = len(starts) - 1
    for i in range(len(publication)):
        starts[publication[i]] += 1
    end = 0
    for place in range(len(starts)):
        count = starts[place]
        starts[place] = end
        end += count
    for i in range(len(publication)):
        place = publication[i]
        order[starts[place]] = i
        starts[place] += 1
    for place in range(last, 0, -1):
        starts[place] = starts[place - 1]
    starts[0] = 0
