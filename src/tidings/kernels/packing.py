"""Drawing the lines of bitmap tiles (see `sift`)."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tidings.kernels.clusters import INSIDE, MEMBER
from tidings.kernels.compiled import inlined, reading
from tidings.kernels.search import upper_bound
from tidings.kernels.vectors import TILE_WORDS


class LineTests(NamedTuple):
    """Tests by clause: the number of the column among those with lines, operation, interval or set."""

    column: Any
    op: Any
    low: Any
    high: Any
    set_start: Any
    set_code: Any


@reading
def draw_lines(
    tests: LineTests,
    starts: Any,
    order: Any,
    tile_row: Any,
    tile_slots: Any,
    slot_column: Any,
    slot_line: Any,
    cell_start: Any,
    cell: Any,
    slot_of: Any,
    lines: Any,
) -> None:
    """Take each row out of the lines whose publications cannot satisfy it. All bits are set before.

    `order` says which clause stands in a row; its tests are starts[clause] to starts[clause + 1].
    """
    for tile in range(len(tile_row) - 1):
        for slot in range(tile_slots[tile], tile_slots[tile + 1]):
            slot_of[slot_column[slot]] = slot
        for row in range(tile_row[tile], tile_row[tile + 1]):
            for test in range(starts[order[row]], starts[order[row] + 1]):
                column = tests.column[test]
                slot = slot_of[column]
                if slot >= 0:
                    base = slot_line[slot] + ((row - tile_row[tile]) >> 6)
                    bit = np.uint64(1) << np.uint64((row - tile_row[tile]) & 63)
                    _take_out(tests, test, cell, cell_start[column], cell_start[column + 1], lines, base, bit)
        for slot in range(tile_slots[tile], tile_slots[tile + 1]):
            slot_of[slot_column[slot]] = -1


@inlined
def _take_out(
    tests: LineTests, test: int, cell: Any, start: int, stop: int, lines: Any, base: int, bit: int
) -> None:
    """Clear a row's bit in a column's lines: in that of absent values, and in those of cells it does not ask for."""
    lines[base] &= ~bit
    op = tests.op[test]
    if op == INSIDE:
        first = upper_bound(cell, tests.low[test], start, stop) - start
        last = upper_bound(cell, tests.high[test], start, stop) - start
        for place in range(stop - start + 1):
            if place < first or place > last:
                lines[base + (1 + place) * TILE_WORDS] &= ~bit
    elif op == MEMBER:
        member, end = tests.set_start[tests.low[test]], tests.set_start[tests.low[test] + 1]
        for place in range(stop - start + 1):
            while member < end and upper_bound(cell, tests.set_code[member], start, stop) - start < place:
                member += 1
            if member == end or upper_bound(cell, tests.set_code[member], start, stop) - start > place:
                lines[base + (1 + place) * TILE_WORDS] &= ~bit
