"""Layout: clauses become the arrays of `kernels.match.Clusters`, cluster after cluster."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from tidings.kernels import match as kernel
from tidings.kernels.match import Clusters
from tidings.matching.index.arrays import starts_of
from tidings.matching.index.codecs import Codes
from tidings.matching.index.lowering import LoweredBlock, LoweredTest, list_index

Order = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Group:
    """Blocks that are reached in the same way: through keys on one column, through cuts on one column, or both.

    `column` is the one that is looked at when there is neither; without it the clauses are looked at always.
    """

    blocks: Sequence[LoweredBlock]
    keys: Sequence[LoweredTest] = ()
    cuts: Sequence[LoweredTest] = ()
    column: int | None = None


def merge_tests(same: Sequence[LoweredTest]) -> LoweredTest:
    """Plain tests on one column with one operation, over the rows of all.

    Equalities may be of several kinds; then the test is open to the codes of all of them.
    """
    weights = np.array([max(1, len(test.low)) for test in same], np.float64)
    return replace(
        same[0],
        floor=min(test.floor for test in same),
        ceiling=max(test.ceiling for test in same),
        low=np.concatenate([test.low for test in same]),
        high=np.concatenate([test.high for test in same]),
        selectivity=float(np.average([test.selectivity for test in same], weights=weights)),
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
        self._test_ends = [0]
        self._clusters = 0

    def add_uniform(self, block: LoweredBlock) -> None:
        """Clauses of one shape: the bounds of each test as a column, sorted by key and cut."""
        cut = best_cut(block.tests)
        order = _order(block.key, cut, len(block.rows))
        self._key(block.key, order)
        self._cut(cut, order)
        for test in sorted((t for t in block.tests if t is not cut), key=lambda t: t.selectivity):
            self._put("test_column", [test.column], np.int32)
            self._put("test_op", [test.op], np.uint8)
            self._put("test_floor", [test.floor], np.int32)
            self._put("test_ceiling", [test.ceiling], np.int32)
            self._bounds("test", test, order)
        self._put("list_start", [-1], np.int64)
        self._close(block.rows[order], _first_column(block.key, cut))

    def add_general(self, group: Group) -> None:
        """Clauses of many shapes that are reached in the same way: each with a list of its tests."""
        key = merge_tests(group.keys) if group.keys else None
        cut = merge_tests(group.cuts) if group.cuts else None
        rows = np.concatenate([block.rows for block in group.blocks])
        order = _order(key, cut, len(rows))
        self._key(key, order)
        self._cut(cut, order)
        self._put("list_start", [self._sizes["row_test"]], np.int64)
        self._items(group.blocks, order)
        self._close(rows[order], _first_column(key, cut, group.column))

    def finish(self, subscriptions: int) -> Clusters:
        rows = self._joined("subscription", np.int32)
        several = _several(rows, subscriptions)
        visits = [np.array(v, np.int32) for v in self._visits]
        arrays = {
            "visit_start": starts_of([len(v) for v in visits]),
            "visit": np.concatenate(visits) if visits else np.empty(0, np.int32),
            "always": np.array(self._always, np.int32),
            "row_start": starts_of([len(p) for p in self._parts["subscription"]]),
            "test_start": np.array(self._test_ends, np.int64),
            "set_start": np.concatenate(([0], np.cumsum(self._joined("set_size", np.int64)))).astype(
                np.int64
            ),
            "several": several,
        }
        for name in Clusters._fields:
            if name not in arrays:
                arrays[name] = self._joined(name, _DTYPES.get(name, np.int32))
        return Clusters(**arrays)

    def _key(self, key: LoweredTest | None, order: Order) -> None:
        """How codes lead to buckets: directly where they lie close together, else by searching those that occur."""
        first = self._sizes["subscription"]
        self._put("key_column", [key.column if key else -1], np.int32)
        self._put("key_start", [self._sizes["bucket"]], np.int64)
        self._put("sparse_start", [self._sizes["sparse_key"]], np.int64)
        if key is None:
            self._put("key_mode", [kernel.NO_KEY], np.uint8)
            self._put("key_base", [0], np.int32)
            self._put("key_count", [0], np.int64)
            return
        codes = key.low[order]
        base, span = int(codes[0]), (int(codes[-1]) - int(codes[0])) // 2 + 1
        self._put("key_base", [base], np.int32)
        if span <= 4 * len(codes) + 1024:
            counts = np.bincount((codes - base) >> 1, minlength=span)
            self._put("key_mode", [kernel.DIRECT_KEY], np.uint8)
        else:
            distinct, counts = np.unique(codes, return_counts=True)
            self._put("key_mode", [kernel.SPARSE_KEY], np.uint8)
            self._put("sparse_key", distinct, np.int32)
        self._put("key_count", [len(counts)], np.int64)
        self._put("bucket", first + starts_of(counts), np.int32)

    def _cut(self, cut: LoweredTest | None, order: Order) -> None:
        if cut is None:
            for name in ("cut_column", "cut_op", "cut_floor", "cut_ceiling", "cut_low", "cut_high"):
                self._put(name, [0], _DTYPES.get(name, np.int32))
            return
        self._put("cut_column", [cut.column], np.int32)
        self._put("cut_op", [cut.op], np.uint8)
        self._put("cut_floor", [cut.floor], np.int32)
        self._put("cut_ceiling", [cut.ceiling], np.int32)
        self._bounds("cut", cut, order)

    def _bounds(self, prefix: str, test: LoweredTest, order: Order) -> None:
        """A test's bounds: the one its operation compares with, or both for WITHIN."""
        self._put(f"{prefix}_low", [self._sizes["bound"]], np.int64)
        self._put("bound", _sort_bound(test)[order], np.int32)
        self._put(f"{prefix}_high", [self._sizes["bound"]], np.int64)
        if test.op == kernel.WITHIN:
            self._put("bound", test.high[order], np.int32)

    def _items(self, blocks: Sequence[LoweredBlock], order: Order) -> None:
        """The lists of tests of general rows, most selective first, in the order the rows are laid out."""
        parts = [self._block_items(block) for block in blocks]
        counts = np.concatenate([np.full(len(b.rows), len(b.tests)) for b in blocks])
        index, starts = list_index(starts_of(counts), order)
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
        self._test_ends.append(self._sizes["test_op"])
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


def _order(key: LoweredTest | None, cut: LoweredTest | None, rows: int) -> Order:
    """Rows by key, and those with the same key by the bound of their cut."""
    sort_by = [*([_sort_bound(cut)] if cut else []), *([key.low] if key else [])]
    return np.lexsort(sort_by) if sort_by else np.arange(rows)


def _first_column(key: LoweredTest | None, cut: LoweredTest | None, other: int | None = None) -> int | None:
    return key.column if key else cut.column if cut else other
