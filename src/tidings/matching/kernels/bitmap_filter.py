"""Bitmap filter: finds a few candidates among many clauses that no key leads to.

Rows are grouped into tiles of up to TILE_ROWS. A column that is common in a tile has a line of bits for each
*cell* of its codes: the rows that a code of this cell may satisfy. The intersection of the lines of a
publication's cells is its set of candidates, which `match` checks. Above the tiles is a tree: each node has a
column and the interval of all rows below it, so that most publications never reach most tiles.

A batch of publications descends the tree together, so that a tile serves all of them while it is in the
cache.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tidings.matching.kernels.clusters import ABSENT, INSIDE, MEMBER, SEVERAL
from tidings.matching.kernels.codes import upper_bound
from tidings.matching.kernels.compiled import I32, I64, U64, inlined, kernel
from tidings.matching.kernels.encode import Coded
from tidings.matching.kernels.vectors import TILE_WORDS, find_first_one, intersect

BATCH = 1024
"""Publications that descend the tree together."""

MOST_SLOTS = 128
"""The most columns of a tile that have lines."""

FREE = -1
"""Instead of a line: the publication's value rules out no row."""


class Tiles(NamedTuple):
    """A tree of tiles.

    column, cell_*   the filtered columns, by number in the segment; the codes at which their cells begin
    node_*           in preorder: depth, column (a number in `column`; -1 for a tile), interval, tile, and the
                     node to continue with if no publication is left
    tile_*           first row, and first slot
    slot_*           column (a number in `column`), and where its lines begin in `line`: that of publications
                     without a value, then those of its cells
    list_shift       the distance from a row to its list of tests
    """

    column: I32
    cell_start: I64
    cell: I32
    node_depth: I32
    node_column: I32
    node_low: I32
    node_high: I32
    node_skip: I32
    node_tile: I32
    tile_row: I64
    tile_slots: I64
    slot_column: I32
    slot_line: I64
    line: U64
    list_shift: I64


class Work(NamedTuple):
    """Working memory for a batch: codes and lines by column and publication, publications by depth of the tree."""

    number: Any
    code: Any
    cell: Any
    listed: Any
    count: Any
    kept: Any
    starts: Any


class Candidates(NamedTuple):
    """Pairs of a publication (its place in the batch) and a row."""

    place: Any
    row: Any


class FilteredCandidates(NamedTuple):
    """Candidates by publication: those of place i are `row[starts[i]:starts[i + 1]]`."""

    starts: Any
    row: Any
    list_shift: Any


@kernel
def filter_candidates(batch: Coded, order: Any, tiles: Tiles, work: Work, out: Candidates) -> int:
    """Find the candidates of at most BATCH publications; return their number, even if `out` cannot hold them all."""
    _read_codes(batch, order, tiles, work)
    found, node = 0, 0
    while node < len(tiles.node_depth):
        depth, column = tiles.node_depth[node], tiles.node_column[node]
        if column >= 0:
            left = _filter_node(tiles, work, node, depth, column)
            node = node + 1 if left else tiles.node_skip[node]
            continue
        for i in range(work.count[depth]):
            found = _scan_tile(tiles, work, tiles.node_tile[node], work.listed[depth, i], out, found)
        node += 1
    return found


@kernel
def group_candidates(candidates: Candidates, count: int, starts: Any, rows: Any) -> None:
    """Group candidates by place (counting sort)."""
    for i in range(count):
        starts[candidates.place[i] + 1] += 1
    for place in range(len(starts) - 1):
        starts[place + 1] += starts[place]
    for i in range(count - 1, -1, -1):
        place = candidates.place[i]
        # starts[place + 1] is where the place's candidates end, until they are all in; then it is where they begin.
        starts[place + 1] -= 1
        rows[starts[place + 1]] = candidates.row[i]
    for place in range(len(starts) - 1):
        starts[place] = starts[place + 1]
    starts[len(starts) - 1] = count


@inlined
def _read_codes(batch: Coded, order: Any, tiles: Tiles, work: Work) -> None:
    """Write the codes and cells of all publications, column by column."""
    for column in range(len(tiles.column)):
        for i in range(len(order)):
            work.code[column, i] = ABSENT
            work.cell[column, i] = 0
    for i in range(len(order)):
        row = order[i]
        work.listed[0, i] = i
        for atom in range(batch.starts[row], batch.starts[row + 1]):
            column = work.number[batch.column[atom]]
            if column < 0:
                continue
            if work.code[column, i] != ABSENT:
                work.code[column, i] = SEVERAL
                work.cell[column, i] = FREE
                continue
            code, start = batch.code[atom], tiles.cell_start[column]
            work.code[column, i] = code
            work.cell[column, i] = (
                1 + upper_bound(tiles.cell, code, start, tiles.cell_start[column + 1]) - start
            )
    work.count[0] = len(order)


@inlined
def _filter_node(tiles: Tiles, work: Work, node: int, depth: int, column: int) -> int:
    """Keep the publications that continue below a node."""
    low, high = tiles.node_low[node], tiles.node_high[node]
    left = 0
    for i in range(work.count[depth]):
        which = work.listed[depth, i]
        code = work.code[column, which]
        work.listed[depth + 1, left] = which
        if low <= code <= high or code == SEVERAL:
            left += 1
    work.count[depth + 1] = left
    return left


@inlined
def _scan_tile(tiles: Tiles, work: Work, tile: int, which: int, out: Candidates, found: int) -> int:
    """Append a publication's candidates in a tile."""
    lines = 0
    for slot in range(tiles.tile_slots[tile], tiles.tile_slots[tile + 1]):
        cell = work.cell[tiles.slot_column[slot], which]
        if cell != FREE:
            work.starts[lines] = tiles.slot_line[slot] + cell * TILE_WORDS
            lines += 1
    first_row = tiles.tile_row[tile]
    rows = tiles.tile_row[tile + 1] - first_row
    for word in range(TILE_WORDS):
        work.kept[word] = _full(rows - 64 * word)
    if intersect(work.kept, tiles.line, work.starts, 0, lines) == 0:
        return found
    for word in range(TILE_WORDS):
        left = work.kept[word]
        while left:
            if found < len(out.place):
                out.place[found] = which
                out.row[found] = first_row + 64 * word + find_first_one(left)
            found += 1
            left &= left - np.uint64(1)
    return found


@inlined
def _full(rows: int) -> Any:
    """Return a word with one bit per row, at most 64."""
    if rows >= 64:
        return np.uint64(0xFFFFFFFFFFFFFFFF)
    return (np.uint64(1) << np.uint64(max(rows, 0))) - np.uint64(1)


class LineTests(NamedTuple):
    """Tests by clause: the number of the column among those with lines, operation, interval or set."""

    column: Any
    op: Any
    low: Any
    high: Any
    set_start: Any
    set_code: Any


@kernel
def build_bitmaps(
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
    """Remove each row from the lines whose publications cannot satisfy it. All bits are set before.

    `order` maps rows to clauses; the tests of a clause are starts[clause] to starts[clause + 1].
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
                    _clear_row(
                        tests, test, cell, cell_start[column], cell_start[column + 1], lines, base, bit
                    )
        for slot in range(tile_slots[tile], tile_slots[tile + 1]):
            slot_of[slot_column[slot]] = -1


@inlined
def _clear_row(
    tests: LineTests, test: int, cell: Any, start: int, stop: int, lines: Any, base: int, bit: int
) -> None:
    """Clear a row's bit in the line of absent values, and in the lines of cells that its test excludes."""
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
