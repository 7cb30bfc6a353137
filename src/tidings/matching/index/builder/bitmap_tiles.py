"""Bitmap tiles: clauses without a selective key, packed so that most publications reach few tiles.

The kernel that reads them is `kernels.bitmap_filter`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from tidings.matching.array_functions import starts_of
from tidings.matching.index.builder.clause_table import ClauseTable, Numbers
from tidings.matching.kernels import clusters as kernel
from tidings.matching.kernels.bitmap_filter import MOST_SLOTS, LineTests, Tiles, build_bitmaps
from tidings.matching.kernels.vectors import TILE_ROWS, TILE_WORDS

CELLS = 16
"""Most cells that the codes of a column are divided into."""

LEVELS = 3
"""Number of columns that divide clauses, one after the other, before they are cut into tiles."""

MOST_COLUMNS = 256
"""Most columns that have bitmap lines; in a wide schema, those that rule out the most."""


@dataclass(slots=True)
class _Tree:
    """Nodes in depth-first order, and the tiles below them."""

    nodes: list[list[int]] = field(default_factory=list)
    tiles: list[Numbers] = field(default_factory=list)

    def open(self, depth: int, column: int, low: int, high: int) -> int:
        self.nodes.append([depth, column, low, high, 0, -1])
        return len(self.nodes) - 1

    def close(self, node: int) -> None:
        self.nodes[node][4] = len(self.nodes)

    def add_tile(self, depth: int, rows: Numbers) -> None:
        self.nodes.append([depth, -1, 0, 0, len(self.nodes) + 1, len(self.tiles)])
        self.tiles.append(rows)


def pack_tiles(clauses: ClauseTable, rows: Numbers) -> tuple[Numbers, Tiles]:
    """Return the clauses in the order of tiles, and the tiles. Rows count from zero."""
    line_columns = _LineColumns.of(clauses, rows)
    tree = _Tree()
    _pack(tree, line_columns, np.arange(len(rows)), 0, 0)
    order = np.concatenate(tree.tiles)
    tile_row = starts_of([len(tile) for tile in tree.tiles])
    slots = line_columns.slots(order, tile_row)
    depth, column, low, high, skip, tile = np.array(tree.nodes, np.int32).reshape(-1, 6).T.copy()
    tile_slots, slot_column, slot_line = slots
    lines = line_columns.lines(order, tile_row, slots)
    return rows[order], Tiles(
        column=line_columns.columns.astype(np.int32),
        cell_start=line_columns.cell_start,
        cell=line_columns.cell,
        node_depth=depth,
        node_column=column,
        node_low=low,
        node_high=high,
        node_skip=skip,
        node_tile=tile,
        tile_row=tile_row,
        tile_slots=tile_slots,
        slot_column=slot_column,
        slot_line=slot_line,
        line=lines,
        list_shift=np.zeros(1, np.int64),
    )


def empty_tiles() -> Tiles:
    """Return the arrays of a segment without tiles."""
    dtypes: dict[str, type[np.generic]] = {
        "cell_start": np.int64,
        "tile_row": np.int64,
        "tile_slots": np.int64,
        "slot_line": np.int64,
        "line": np.uint64,
        "list_shift": np.int64,
    }
    return Tiles(*(np.zeros(0, dtypes.get(name, np.int32)) for name in Tiles._fields))


def _pack(tree: _Tree, line_columns: _LineColumns, rows: Numbers, level: int, depth: int) -> None:
    """Divide rows by their gate of this level and by their interval in it, until they fit into a tile."""
    if len(rows) <= TILE_ROWS or level == LEVELS:
        for part in np.array_split(rows, -(-len(rows) // TILE_ROWS)):
            tree.add_tile(depth, part)
        return
    gates, lows, highs = (
        line_columns.gate[level][rows],
        line_columns.gate_low[level][rows],
        line_columns.gate_high[level][rows],
    )
    order = np.lexsort((lows, gates))
    counts = np.bincount(gates + 1, minlength=len(line_columns.columns) + 1)
    leftovers: list[Numbers] = []
    for gate, (first, last) in enumerate(pairwise(starts_of(counts)), -1):
        mine = order[first:last]
        if gate < 0 or len(mine) < TILE_ROWS // 2:
            leftovers.append(mine)
            continue
        for slab in np.array_split(mine, _slab_count(len(mine), LEVELS - level)):
            node = tree.open(depth, gate, int(lows[slab].min()), int(highs[slab].max()))
            _pack(tree, line_columns, rows[slab], level + 1, depth + 1)
            tree.close(node)
    remaining = rows[np.sort(np.concatenate(leftovers))]
    if len(remaining):
        _pack(tree, line_columns, remaining, level + 1 if len(remaining) < len(rows) else LEVELS, depth)


def _slab_count(rows: int, levels: int) -> int:
    """Return the number of slabs to cut rows into, if `levels` columns share the work."""
    return max(1, round(math.pow(rows / TILE_ROWS, 1 / levels)))


@dataclass(frozen=True, slots=True)
class _LineColumns:
    """Tests of the most useful columns, by clause. The gates of a clause are its LEVELS best intervals."""

    columns: Numbers
    cell_start: Numbers
    cell: npt.NDArray[np.int32]
    starts: Numbers
    tests: LineTests
    weight: npt.NDArray[np.float32]
    gate: npt.NDArray[np.int64]
    gate_low: npt.NDArray[np.int64]
    gate_high: npt.NDArray[np.int64]

    @classmethod
    def of(cls, clauses: ClauseTable, rows: Numbers) -> _LineColumns:
        tests, starts = clauses.tests_of(rows)
        owner = np.repeat(np.arange(len(rows)), np.diff(starts))
        positive = clauses.op[tests] < kernel.NEGATED
        columns, number = _useful_columns(clauses, tests[positive])
        numbered = np.full(len(tests), -1)
        numbered[positive] = number
        selected = np.flatnonzero(numbered >= 0)
        tests, owner, number = tests[selected], owner[selected], numbered[selected]
        starts = starts_of(np.bincount(owner, minlength=len(rows)))
        cell_start, cell = _cell_starts(clauses, tests, number, len(columns))
        line_tests = LineTests(
            number.astype(np.int32), clauses.op[tests], clauses.low[tests], clauses.high[tests],
            clauses.set_start, clauses.set_code,
        )  # fmt: skip
        gates = _find_gates(line_tests, owner, number, len(rows))
        return cls(columns, cell_start, cell, starts, line_tests, 1.0 - clauses.share[tests], *gates)

    def slots(self, order: Numbers, tile_row: Numbers) -> tuple[Numbers, npt.NDArray[np.int32], Numbers]:
        """Choose the columns of each tile that rule out the most; return slot starts, columns and line offsets."""
        tiles = len(tile_row) - 1
        tile = np.empty(len(order), np.int64)
        tile[order] = np.repeat(np.arange(tiles), np.diff(tile_row))
        of_test = np.repeat(tile, np.diff(self.starts))
        width = len(self.columns)
        weight = np.bincount(of_test * width + self.tests.column, self.weight, tiles * width)
        ranked = np.argsort(-weight.reshape(tiles, width), axis=1)[:, :MOST_SLOTS]
        used = np.take_along_axis(weight.reshape(tiles, width), ranked, 1) > 0
        column = ranked[used].astype(np.int32)
        heights = (np.diff(self.cell_start) + 2)[column] * TILE_WORDS
        return starts_of(used.sum(axis=1)), column, starts_of(heights)[:-1]

    def lines(
        self,
        order: Numbers,
        tile_row: Numbers,
        slots: tuple[Numbers, npt.NDArray[np.int32], Numbers],
    ) -> npt.NDArray[np.uint64]:
        tile_slots, column, line = slots
        last = int(line[-1] + (np.diff(self.cell_start) + 2)[column[-1]] * TILE_WORDS) if len(line) else 0
        lines = np.full(last + TILE_WORDS, np.uint64(0xFFFFFFFFFFFFFFFF))
        slot_of = np.full(len(self.columns), -1)
        build_bitmaps(
            self.tests, self.starts, order, tile_row, tile_slots, column, line,
            self.cell_start, self.cell, slot_of, lines,
        )  # fmt: skip
        return lines


def _useful_columns(clauses: ClauseTable, tests: Numbers) -> tuple[Numbers, Numbers]:
    """Rank columns by how much their tests rule out; return them and the rank of each test's column, or -1."""
    weight = np.bincount(clauses.column[tests], 1.0 - clauses.share[tests])
    columns = np.argsort(-weight, kind="stable")[:MOST_COLUMNS]
    columns = columns[weight[columns] > 0]
    number = np.full(len(weight), -1)
    number[columns] = np.arange(len(columns))
    return columns, number[clauses.column[tests]]


def _cell_starts(
    clauses: ClauseTable, tests: Numbers, number: Numbers, columns: int
) -> tuple[Numbers, npt.NDArray[np.int32]]:
    """Return the codes at which the cells of each column start, so that bounds are spread evenly over cells."""
    cells = []
    order = np.argsort(number, kind="stable")
    bounds = starts_of(np.bincount(number, minlength=columns))
    for first, last in pairwise(bounds):
        mine = tests[order[first:last]]
        inside = mine[clauses.op[mine] == kernel.INSIDE]
        edges = np.sort(np.concatenate((clauses.low[inside], clauses.high[inside].astype(np.int64) + 1)))
        edges = edges[(edges > 0) & (edges <= kernel.LAST)]
        picked = edges[np.arange(1, CELLS) * len(edges) // CELLS] if len(edges) else edges
        cells.append(np.unique(picked))
    return starts_of([len(starts) for starts in cells]), np.concatenate([*cells, []]).astype(np.int32)


def _find_gates(tests: LineTests, owner: Numbers, number: Numbers, rows: int) -> list[npt.NDArray[np.int64]]:
    """Return the best columns that each clause has an interval on, one per level, with the intervals; -1 for none."""
    inside = np.flatnonzero(tests.op == kernel.INSIDE)
    order = inside[np.lexsort((number[inside], owner[inside]))]
    starts = starts_of(np.bincount(owner[order], minlength=rows))
    gate = np.full((LEVELS, rows), -1, np.int64)
    low, high = np.zeros((LEVELS, rows), np.int64), np.zeros((LEVELS, rows), np.int64)
    for level in range(LEVELS):
        has = np.flatnonzero(np.diff(starts) > level)
        test = order[starts[has] + level]
        gate[level, has], low[level, has], high[level, has] = number[test], tests.low[test], tests.high[test]
    return [gate, low, high]
