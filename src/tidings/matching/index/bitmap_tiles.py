"""Tiles: clauses that no key leads to, packed so that most publications come to few of them
(see `kernels.bitmap_filter`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from tidings.matching.index.arrays import starts_of
from tidings.matching.index.clause_table import ClauseTable, Numbers
from tidings.matching.kernels import clusters as kernel
from tidings.matching.kernels.bitmap_filter import MOST_SLOTS, LineTests, Tiles, build_bitmaps
from tidings.matching.kernels.vectors import TILE_ROWS, TILE_WORDS

CELLS = 16
"""Into how many cells a column's codes are divided at the most."""

LEVELS = 3
"""How many columns one after the other divide clauses before they are cut into tiles."""

MOST_COLUMNS = 256
"""How many columns have lines somewhere: in a wide schema, the commonest."""


@dataclass(slots=True)
class _Tree:
    """Nodes in the order of a walk, and the tiles below them."""

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
    """The clauses in the order in which they stand in tiles, and the tiles. Rows count from zero."""
    asked = _Asked.of(clauses, rows)
    tree = _Tree()
    _pack(tree, asked, np.arange(len(rows)), 0, 0)
    order = np.concatenate(tree.tiles)
    tile_row = starts_of([len(tile) for tile in tree.tiles])
    slots = asked.slots(order, tile_row)
    depth, column, low, high, skip, tile = np.array(tree.nodes, np.int32).reshape(-1, 6).T.copy()
    tile_slots, slot_column, slot_line = slots
    lines = asked.lines(order, tile_row, slots)
    return rows[order], Tiles(
        column=asked.columns.astype(np.int32),
        cell_start=asked.cell_start,
        cell=asked.cell,
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


def no_tiles() -> Tiles:
    """What stands where no clause is in a tile."""
    dtypes: dict[str, type[np.generic]] = {
        "cell_start": np.int64,
        "tile_row": np.int64,
        "tile_slots": np.int64,
        "slot_line": np.int64,
        "line": np.uint64,
        "list_shift": np.int64,
    }
    return Tiles(*(np.zeros(0, dtypes.get(name, np.int32)) for name in Tiles._fields))


def _pack(tree: _Tree, asked: _Asked, rows: Numbers, level: int, depth: int) -> None:
    """Divide rows by the column that is their next, and by where they lie in it, until they fill a tile."""
    if len(rows) <= TILE_ROWS or level == LEVELS:
        for part in np.array_split(rows, -(-len(rows) // TILE_ROWS)):
            tree.add_tile(depth, part)
        return
    gates, lows, highs = asked.gate[level][rows], asked.gate_low[level][rows], asked.gate_high[level][rows]
    order = np.lexsort((lows, gates))
    counts = np.bincount(gates + 1, minlength=len(asked.columns) + 1)
    rest: list[Numbers] = []
    for gate, (first, last) in enumerate(pairwise(starts_of(counts)), -1):
        mine = order[first:last]
        if gate < 0 or len(mine) < TILE_ROWS // 2:
            rest.append(mine)
            continue
        for slab in np.array_split(mine, _slabs(len(mine), LEVELS - level)):
            node = tree.open(depth, gate, int(lows[slab].min()), int(highs[slab].max()))
            _pack(tree, asked, rows[slab], level + 1, depth + 1)
            tree.close(node)
    remaining = rows[np.sort(np.concatenate(rest))]
    if len(remaining):
        _pack(tree, asked, remaining, level + 1 if len(remaining) < len(rows) else LEVELS, depth)


def _slabs(rows: int, levels: int) -> int:
    """Into how many slabs to cut rows, if `levels` columns are to share the work."""
    return max(1, round(math.pow(rows / TILE_ROWS, 1 / levels)))


@dataclass(frozen=True, slots=True)
class _Asked:
    """What clauses ask of the commonest columns: their tests, by clause, and the best few of each as gates."""

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
    def of(cls, clauses: ClauseTable, rows: Numbers) -> _Asked:
        tests, starts = clauses.tests_of(rows)
        owner = np.repeat(np.arange(len(rows)), np.diff(starts))
        positive = clauses.op[tests] < kernel.NEGATED
        columns, number = _commonest(clauses, tests[positive])
        numbered = np.full(len(tests), -1)
        numbered[positive] = number
        kept = np.flatnonzero(numbered >= 0)
        tests, owner, number = tests[kept], owner[kept], numbered[kept]
        starts = starts_of(np.bincount(owner, minlength=len(rows)))
        cell_start, cell = _cells(clauses, tests, number, len(columns))
        held = LineTests(
            number.astype(np.int32), clauses.op[tests], clauses.low[tests], clauses.high[tests],
            clauses.set_start, clauses.set_code,
        )  # fmt: skip
        gates = _gates(held, owner, number, len(rows))
        return cls(columns, cell_start, cell, starts, held, 1.0 - clauses.share[tests], *gates)

    def slots(self, order: Numbers, tile_row: Numbers) -> tuple[Numbers, npt.NDArray[np.int32], Numbers]:
        """For each tile the columns that rule out the most: where they begin, which they are, where their lines are."""
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


def _commonest(clauses: ClauseTable, tests: Numbers) -> tuple[Numbers, Numbers]:
    """The columns whose tests rule out the most, best first, and for each test the number of its column or -1."""
    weight = np.bincount(clauses.column[tests], 1.0 - clauses.share[tests])
    columns = np.argsort(-weight, kind="stable")[:MOST_COLUMNS]
    columns = columns[weight[columns] > 0]
    number = np.full(len(weight), -1)
    number[columns] = np.arange(len(columns))
    return columns, number[clauses.column[tests]]


def _cells(
    clauses: ClauseTable, tests: Numbers, number: Numbers, columns: int
) -> tuple[Numbers, npt.NDArray[np.int32]]:
    """The codes at which each column's cells begin, so that tests begin and end in all cells equally often."""
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
    return starts_of([len(each) for each in cells]), np.concatenate([*cells, []]).astype(np.int32)


def _gates(tests: LineTests, owner: Numbers, number: Numbers, rows: int) -> list[npt.NDArray[np.int64]]:
    """Each clause's best columns that it asks an interval of, one per level, with the intervals; -1 for none."""
    inside = np.flatnonzero(tests.op == kernel.INSIDE)
    order = inside[np.lexsort((number[inside], owner[inside]))]
    held = starts_of(np.bincount(owner[order], minlength=rows))
    gate = np.full((LEVELS, rows), -1, np.int64)
    low, high = np.zeros((LEVELS, rows), np.int64), np.zeros((LEVELS, rows), np.int64)
    for level in range(LEVELS):
        has = np.flatnonzero(np.diff(held) > level)
        test = order[held[has] + level]
        gate[level, has], low[level, has], high[level, has] = number[test], tests.low[test], tests.high[test]
    return [gate, low, high]
