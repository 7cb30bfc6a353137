"""Sifting: bitmaps leave a few candidates of very many clauses that no key leads to.

Rows stand in tiles of up to TILE_ROWS. For a column that is common in a tile and each *cell* of its codes there is a
line of bits: the rows that a code of this cell may satisfy. What the lines of a publication's cells have in common are
its candidates; `match` checks those. Above the tiles stands a tree: each node names a column and the interval all rows
below it lie in, so that most publications never come to most tiles.

A batch of publications goes down the tree together, so that a tile serves all of them while it is in the cache.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tidings.matching.kernels.clusters import ABSENT, INSIDE, MEMBER, SEVERAL
from tidings.matching.kernels.compiled import I32, I64, U64, inlined, reading
from tidings.matching.kernels.encode import Coded
from tidings.matching.kernels.search import upper_bound
from tidings.matching.kernels.vectors import TILE_WORDS, first_one, meet

BATCH = 1024
"""How many publications go down the tree together."""

MOST_SLOTS = 128
"""How many columns of a tile have lines at the most."""

FREE = -1
"""In place of a line: whatever the publication has there, it rules no row out."""


class Tiles(NamedTuple):
    """A tree of tiles.

    column, cell_*   the columns that are looked at, by number in the segment; the codes at which their cells begin
    node_*           in the order of a walk: depth, column (a number in `column`; -1 for a tile), the interval, where to
                     go on if no publication is left, the tile
    tile_*           first row, and where its slots begin
    slot_*           column (a number in `column`), and where the line of publications without a value stands in
                     `line`; those of its cells follow
    list_shift       what to add to a row to find its list of tests
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
    """Room for sifting a batch: codes and lines by column and publication, publications by depth of the tree."""

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
    """Candidates by publication: those of place i are starts[i] to starts[i + 1]; where lists of tests stand."""

    starts: Any
    row: Any
    list_shift: Any


@reading
def filter_candidates(batch: Coded, order: Any, tiles: Tiles, work: Work, out: Candidates) -> int:
    """Find the candidates of some publications, BATCH at the most.

    The answer is their number, also if there was no room for all of them.
    """
    _read(batch, order, tiles, work)
    found, node = 0, 0
    while node < len(tiles.node_depth):
        depth, column = tiles.node_depth[node], tiles.node_column[node]
        if column >= 0:
            left = _narrow(tiles, work, node, depth, column)
            node = node + 1 if left else tiles.node_skip[node]
            continue
        for i in range(work.count[depth]):
            found = _meet_tile(tiles, work, tiles.node_tile[node], work.listed[depth, i], out, found)
        node += 1
    return found


@reading
def group(candidates: Candidates, count: int, starts: Any, rows: Any) -> None:
    """Bring candidates together by place."""
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
def _read(batch: Coded, order: Any, tiles: Tiles, work: Work) -> None:
    """The codes and cells of all publications, column by column."""
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
def _narrow(tiles: Tiles, work: Work, node: int, depth: int, column: int) -> int:
    """Of the publications that came to a node, those that go on below it."""
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
def _meet_tile(tiles: Tiles, work: Work, tile: int, which: int, out: Candidates, found: int) -> int:
    """Add a publication's candidates in a tile."""
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
    if meet(work.kept, tiles.line, work.starts, 0, lines) == 0:
        return found
    for word in range(TILE_WORDS):
        left = work.kept[word]
        while left:
            if found < len(out.place):
                out.place[found] = which
                out.row[found] = first_row + 64 * word + first_one(left)
            found += 1
            left &= left - np.uint64(1)
    return found


@inlined
def _full(rows: int) -> Any:
    """A word with as many bits as there are rows, 64 at the most."""
    if rows >= 64:
        return np.uint64(0xFFFFFFFFFFFFFFFF)
    return (np.uint64(1) << np.uint64(max(rows, 0))) - np.uint64(1)


# Drawing the lines of bitmap tiles (see `sift`).


class LineTests(NamedTuple):
    """Tests by clause: the number of the column among those with lines, operation, interval or set."""

    column: Any
    op: Any
    low: Any
    high: Any
    set_start: Any
    set_code: Any


@reading
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
