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

from tidings.kernels.clusters import ABSENT, SEVERAL
from tidings.kernels.compiled import inlined, reading
from tidings.kernels.dtypes import I32, I64, U64
from tidings.kernels.encode import Coded
from tidings.kernels.search import upper_bound
from tidings.kernels.vectors import TILE_WORDS, first_one, meet

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


class Sifted(NamedTuple):
    """Candidates by publication: those of place i are starts[i] to starts[i + 1]; where lists of tests stand."""

    starts: Any
    row: Any
    list_shift: Any


@reading
def sift(batch: Coded, order: Any, tiles: Tiles, work: Work, out: Candidates) -> int:
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
