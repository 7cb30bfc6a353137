"""Building a segment: compiled subscriptions in, arrays for the kernels out.

Three steps: collect the constants of every column, lower each block to codes and choose its key, lay the clauses out
in clusters. Clauses of one shape that are many stand in a uniform cluster, column by column; the others share a
general cluster with all that have the same key column.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tidings.atoms import Column
from tidings.compiler.plan import Compiled
from tidings.kernels import match as kernel
from tidings.kernels.encode import Codecs
from tidings.kernels.match import Clusters
from tidings.matching.index.codecs import Codes, build_codecs
from tidings.matching.index.lowering import LoweredBlock, LoweredTest, collect_constants, list_index, lower

UNIFORM_FROM = 64
"""Fewer clauses of one shape are not worth a cluster of their own: each cluster is a visit per publication."""

Signature = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class Built:
    """A segment's content: what the kernels read, and what its columns are called."""

    columns: tuple[Column, ...]
    codecs: Codecs
    clusters: Clusters


def build(compiled: Compiled) -> Built:
    """Lay compiled subscriptions out as a segment."""
    constants = collect_constants(compiled)
    columns = constants.columns
    blocks = [
        lower(block, lots, constants)
        for block, lots in zip(compiled.blocks, constants.lots, strict=True)
        if len(block.rows)
    ]
    codecs = build_codecs(list(columns.values()), {d.name: d for d in compiled.domains})
    layout = Layout(len(columns))
    for uniform in _uniform_groups(blocks):
        layout.add_uniform(uniform)
    for general in _general_groups(blocks):
        layout.add_general(general)
    return Built(tuple(columns), codecs, layout.finish(compiled.subscriptions.num_rows))


def _signature(block: LoweredBlock) -> Signature:
    """What blocks of one uniform cluster have in common."""
    tests = sorted((t.column, t.op, t.floor, t.ceiling) for t in block.tests)
    return (block.key_column, *tests)


def _is_uniform(block: LoweredBlock) -> bool:
    return all(test.plain for test in block.tests) and (block.key_column >= 0 or bool(block.tests))


def _uniform_groups(blocks: Sequence[LoweredBlock]) -> list[LoweredBlock]:
    groups: dict[Signature, list[LoweredBlock]] = defaultdict(list)
    for block in blocks:
        if _is_uniform(block):
            groups[_signature(block)].append(block)
    merged = (_merge(group) for group in groups.values())
    return [block for block in merged if len(block.rows) >= UNIFORM_FROM]


def _general_groups(blocks: Sequence[LoweredBlock]) -> list[list[LoweredBlock]]:
    """Blocks that stand in general clusters, by how they are reached: key column, or cut, or column of some test."""
    sizes: dict[Signature, int] = defaultdict(int)
    for block in blocks:
        if _is_uniform(block):
            sizes[_signature(block)] += len(block.rows)
    groups: dict[tuple[int, ...], list[LoweredBlock]] = defaultdict(list)
    for block in blocks:
        if not (_is_uniform(block) and sizes[_signature(block)] >= UNIFORM_FROM):
            groups[_reach(block)].append(block)
    return list(groups.values())


def _reach(block: LoweredBlock) -> tuple[int, ...]:
    if block.key_column >= 0:
        return (block.key_column,)
    cut = best_cut(block.tests)
    if cut is not None:
        return (-1, cut.column, cut.op, cut.floor, cut.ceiling)
    return (-2, *(test.column for test in block.tests if not test.negated))[:2]


def _merge(group: Sequence[LoweredBlock]) -> LoweredBlock:
    """Blocks of one signature as one, their tests in one order."""
    if len(group) == 1:
        return group[0]
    ordered = [sorted(b.tests, key=lambda t: (t.column, t.op, t.floor, t.ceiling)) for b in group]
    tests = tuple(_merge_tests(same) for same in zip(*ordered, strict=True))
    key = np.concatenate([b.key for b in group])
    return LoweredBlock(tests, group[0].key_column, key, np.concatenate([b.rows for b in group]))


def _merge_tests(same: Sequence[LoweredTest]) -> LoweredTest:
    first = same[0]
    weights = np.array([max(1, len(t.low)) for t in same], np.float64)
    selectivity = float(np.average([t.selectivity for t in same], weights=weights))
    low, high = np.concatenate([t.low for t in same]), np.concatenate([t.high for t in same])
    return LoweredTest(
        first.column, True, first.op, first.item, False, first.floor, first.ceiling, low, high, selectivity
    )


def best_cut(tests: Sequence[LoweredTest]) -> LoweredTest | None:
    """The plain test that leaves the fewest rows: an equality where there is one, else the narrowest range."""
    plain = [test for test in tests if test.plain]
    return min(plain, key=lambda t: (t.op != kernel.EQUAL, t.selectivity)) if plain else None


class Layout:
    """Collects clusters and joins them into the arrays of `kernels.match.Clusters`."""

    def __init__(self, columns: int) -> None:
        self._columns = columns
        self._visits: list[list[int]] = [[] for _ in range(columns)]
        self._always: list[int] = []
        self._parts: dict[str, list[npt.NDArray[Any]]] = defaultdict(list)
        self._sizes: dict[str, int] = defaultdict(int)
        self._clusters = 0

    def add_uniform(self, block: LoweredBlock) -> None:
        cut = best_cut(block.tests)
        bounds = np.zeros(len(block.rows), np.int32) if cut is None else _sort_bound(cut)
        order = (
            np.lexsort((bounds, block.key)) if block.key_column >= 0 else np.argsort(bounds, kind="stable")
        )
        self._key(block.key_column, block.key[order] if block.key_column >= 0 else None, len(order))
        self._cut(cut, order)
        tests = sorted((t for t in block.tests if t is not cut), key=lambda t: t.selectivity)
        for test in tests:
            self._put("test_column", [test.column], np.int32)
            self._put("test_op", [test.op], np.uint8)
            self._put("test_floor", [test.floor], np.int32)
            self._put("test_ceiling", [test.ceiling], np.int32)
            self._bounds("test", test, order)
        self._put("list_start", [-1], np.int64)
        reach = block.key_column if block.key_column >= 0 else cut.column if cut else None
        self._close(block.rows[order], reach)

    def add_general(self, blocks: Sequence[LoweredBlock]) -> None:
        key_column = blocks[0].key_column
        rows = np.concatenate([b.rows for b in blocks])
        key = np.concatenate([b.key for b in blocks]) if key_column >= 0 else None
        cuts = [best_cut(b.tests) if key_column < 0 else None for b in blocks]
        held = [cut for cut in cuts if cut is not None]
        bounds = np.concatenate([_sort_bound(cut) for cut in held]) if held else None
        order = np.argsort(
            key if key is not None else bounds if bounds is not None else np.zeros(len(rows)), kind="stable"
        )
        self._key(key_column, key[order] if key is not None else None, len(rows))
        self._cut(_merge_tests(held) if held else None, order)
        self._put("list_start", [self._sizes["row_test"]], np.int64)
        self._items(blocks, order)
        positive = [t.column for t in blocks[0].tests if not t.negated]
        reach = key_column if key_column >= 0 else held[0].column if held else next(iter(positive), None)
        self._close(rows[order], reach)

    def finish(self, subscriptions: int) -> Clusters:
        rows = self._joined("subscription", np.int32)
        several = _several(rows, subscriptions)
        visits = [np.array(v, np.int32) for v in self._visits]
        arrays = {
            "visit_start": _starts([len(v) for v in visits]),
            "visit": np.concatenate(visits) if visits else np.empty(0, np.int32),
            "always": np.array(self._always, np.int32),
            "row_start": _starts([len(p) for p in self._parts["subscription"]]),
            "test_start": _starts([int(n[0]) for n in self._parts.pop("tests", [])]),
            "set_start": np.concatenate(([0], np.cumsum(self._joined("set_size", np.int64)))).astype(
                np.int64
            ),
            "several": several,
        }
        for name in Clusters._fields:
            if name not in arrays:
                arrays[name] = self._joined(name, _DTYPES.get(name, np.int32))
        return Clusters(**arrays)

    def _key(self, column: int, key: Codes | None, rows: int) -> None:
        """How codes lead to buckets: directly where they lie close together, else by searching the codes that occur."""
        first = self._sizes["subscription"]
        self._put("key_column", [column], np.int32)
        self._put("key_start", [self._sizes["bucket"]], np.int64)
        self._put("sparse_start", [self._sizes["sparse_key"]], np.int64)
        if key is None:
            self._put("key_mode", [kernel.NO_KEY], np.uint8)
            self._put("key_base", [0], np.int32)
            self._put("key_count", [0], np.int64)
            return
        base, span = int(key[0]), (int(key[-1]) - int(key[0])) // 2 + 1
        self._put("key_base", [base], np.int32)
        if span <= 4 * rows + 1024:
            counts = np.bincount((key - base) >> 1, minlength=span)
            self._put("key_mode", [kernel.DIRECT_KEY], np.uint8)
        else:
            codes, counts = np.unique(key, return_counts=True)
            self._put("key_mode", [kernel.SPARSE_KEY], np.uint8)
            self._put("sparse_key", codes, np.int32)
        self._put("key_count", [len(counts)], np.int64)
        self._put("bucket", first + _starts(counts), np.int32)

    def _cut(self, cut: LoweredTest | None, order: npt.NDArray[np.int64]) -> None:
        if cut is None:
            for name in ("cut_column", "cut_op", "cut_floor", "cut_ceiling", "cut_low", "cut_high"):
                self._put(name, [0], _DTYPES.get(name, np.int32))
            return
        self._put("cut_column", [cut.column], np.int32)
        self._put("cut_op", [cut.op], np.uint8)
        self._put("cut_floor", [cut.floor], np.int32)
        self._put("cut_ceiling", [cut.ceiling], np.int32)
        self._bounds("cut", cut, order)

    def _bounds(self, prefix: str, test: LoweredTest, order: npt.NDArray[np.int64]) -> None:
        """A test's bounds: the one its operation compares with, or both for WITHIN."""
        self._put(f"{prefix}_low", [self._sizes["bound"]], np.int64)
        self._put("bound", _sort_bound(test)[order], np.int32)
        self._put(f"{prefix}_high", [self._sizes["bound"]], np.int64)
        if test.op == kernel.WITHIN:
            self._put("bound", test.high[order], np.int32)

    def _items(self, blocks: Sequence[LoweredBlock], order: npt.NDArray[np.int64]) -> None:
        """The lists of tests of general rows, most selective first, in the order the rows are laid out."""
        parts = [self._block_items(block) for block in blocks]
        counts = np.concatenate([np.full(len(b.rows), len(b.tests)) for b in blocks])
        index, starts = list_index(_starts(counts), order)
        first = self._sizes["item_op"]
        for place, name in enumerate(("item_column", "item_op", "item_low", "item_high")):
            joined = np.concatenate([part[place] for part in parts])
            self._put(name, joined[index], _DTYPES.get(name, np.int32))
        self._put("row_test", first + starts, np.int64)

    def _block_items(self, block: LoweredBlock) -> list[npt.NDArray[Any]]:
        shape = (len(block.rows), len(block.tests))
        column, op = np.empty(shape, np.int32), np.empty(shape, np.uint8)
        low, high = np.empty(shape, np.int32), np.empty(shape, np.int32)
        for i, test in enumerate(sorted(block.tests, key=lambda t: t.selectivity)):
            column[:, i], low[:, i], high[:, i] = test.column, test.low, test.high
            op[:, i] = test.item + kernel.NEGATED * test.negated
            if test.members is not None and test.offsets is not None:
                low[:, i] = self._sizes["set_size"] + np.arange(len(block.rows))
                self._put("set_size", np.diff(test.offsets), np.int64)
                self._put("set_code", test.members, np.int32)
        return [array.reshape(-1) for array in (column, op, low, high)]

    def _close(self, rows: npt.NDArray[np.int32], reach: int | None) -> None:
        """End a cluster: its subscriptions, how many tests it has, and through which column it is visited."""
        self._put("subscription", rows, np.int32)
        done = sum(int(n[0]) for n in self._parts["tests"])
        self._parts["tests"].append(np.array([self._sizes["test_op"] - done]))
        if reach is None:
            self._always.append(self._clusters)
        else:
            self._visits[reach].append(self._clusters)
        self._clusters += 1

    def _put(self, name: str, values: Any, dtype: Any) -> None:
        array = np.asarray(values, dtype)
        self._parts[name].append(array)
        self._sizes[name] += len(array)

    def _joined(self, name: str, dtype: Any) -> npt.NDArray[Any]:
        parts = self._parts.get(name)
        return np.concatenate(parts).astype(dtype, copy=False) if parts else np.empty(0, dtype)


_DTYPES: dict[str, Any] = {
    "key_mode": np.uint8,
    "key_start": np.int64,
    "key_count": np.int64,
    "sparse_start": np.int64,
    "cut_op": np.uint8,
    "cut_low": np.int64,
    "cut_high": np.int64,
    "test_op": np.uint8,
    "test_low": np.int64,
    "test_high": np.int64,
    "list_start": np.int64,
    "row_test": np.int64,
    "item_op": np.uint8,
}


def _sort_bound(test: LoweredTest) -> Codes:
    """The bound that rows are sorted by: the upper one for `at most`, else the lower one."""
    return test.high if test.op == kernel.AT_MOST else test.low


def _several(rows: npt.NDArray[np.int32], subscriptions: int) -> npt.NDArray[np.int32]:
    """Numbers the subscriptions with more than one row, by row; -1 for the others, nothing if there are none."""
    counts = np.bincount(rows, minlength=subscriptions)
    if not (counts > 1).any():
        return np.empty(0, np.int32)
    numbers = np.where(counts > 1, np.cumsum(counts > 1) - 1, -1).astype(np.int32)
    return numbers[rows]


def _starts(counts: Any) -> npt.NDArray[np.int64]:
    return np.concatenate(([0], np.cumsum(counts, dtype=np.int64))).astype(np.int64)
