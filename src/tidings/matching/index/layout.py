"""Layout: ways become the arrays of `matching.kernels.clusters.Clusters`, cluster after cluster."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np
import numpy.typing as npt

from tidings.errors import TidingsError
from tidings.matching.index import access_paths
from tidings.matching.index.access_paths import AccessPath
from tidings.matching.index.arrays import starts_of
from tidings.matching.index.clause_table import ClauseTable, Numbers, op_of, open_codes
from tidings.matching.kernels import clusters as kernel
from tidings.matching.kernels.clusters import Clusters
from tidings.matching.kernels.vectors import LANES


class Layout:
    """Collects clusters and joins them into the arrays of `matching.kernels.clusters.Clusters`."""

    def __init__(self, columns: int, clauses: ClauseTable) -> None:
        self._clauses = clauses
        self._visits: list[list[int]] = [[] for _ in range(columns)]
        self._always: list[int] = []
        self._parts: dict[str, list[npt.NDArray[Any]]] = defaultdict(list)
        self._sizes: dict[str, int] = defaultdict(int)
        self._base = _bases(clauses, columns)
        self._test_ends = [0]
        self._clusters = 0

    def add(self, way: AccessPath) -> None:
        """One more cluster. Clauses in tiles stand in the order they are given: nothing but the tiles leads to them."""
        by_cut = way.cut if way.cut is not None else way.second
        order = (
            _met_order(self._clauses, way)
            if way.meets
            else _order(self._clauses, way.key, by_cut, len(way.rows))
        )
        self._key(way, order)
        paired = self._parts["key_mode"][-1][0] == kernel.PAIR_KEY
        if way.meets and way.second is not None:
            self._meeting(way.second[order])
        else:
            self._cut(None if paired or by_cut is None else by_cut[order])
        if way.layout == access_paths.UNIFORM:
            self._columns(way, order)
        else:
            taken = (way.key, way.second if paired or way.meets else None)
            self._lists(way, order, [test for test in taken if test is not None])
        self._put("subscription", self._clauses.subscription[way.rows[order]], np.int32)
        self._test_ends.append(self._sizes["test_op"])
        if way.layout != access_paths.TILES:
            self._reach(way)
        self._clusters += 1

    def finish(self, subscriptions: int) -> Clusters:
        rows = self._joined("subscription")
        visits = [np.array(v, np.uint32) for v in self._visits]
        arrays: dict[str, npt.NDArray[Any]] = {
            "visit_start": starts_of([len(v) for v in visits]),
            "visit": np.concatenate(visits) if visits else np.empty(0, np.uint32),
            "always": np.array(self._always, np.uint32),
            "row_start": starts_of([len(p) for p in self._parts["subscription"]]),
            "test_start": np.array(self._test_ends, np.int64),
            "set_start": self._clauses.set_start,
            "set_code": self._clauses.set_code,
            "subscription": _padded(rows),
            "several": _several(rows, subscriptions),
            "narrow_base": self._base if self._sizes["narrow"] else np.empty(0, np.int32),
        }
        for name in Clusters._fields:
            if name not in arrays:
                arrays[name] = self._joined(name)
        arrays["bound"] = _padded(arrays["bound"])
        return Clusters(**arrays)

    def rows(self) -> int:
        return self._sizes["subscription"]

    def list_shift(self) -> int:
        """What to add to a row of the cluster added last to find its list of tests."""
        first = self._sizes["subscription"] - len(self._parts["subscription"][-1])
        return int(self._parts["list_start"][-1][0]) - first

    def _reach(self, way: AccessPath) -> None:
        first = way.key if way.key is not None else way.cut
        column = way.column if first is None else int(self._clauses.column[first[0]])
        (self._always if column is None else self._visits[column]).append(self._clusters)

    def _key(self, way: AccessPath, order: Numbers) -> None:
        """How codes lead to buckets: directly where they lie close together, else by searching those that occur."""
        first, c = self._sizes["subscription"], self._clauses
        key = way.key
        self._put("key_column", [c.column[key[0]] if key is not None else 0], np.uint32)
        self._put("key_start", [self._sizes["bucket"]], np.int64)
        self._put("sparse_start", [self._sizes["sparse_key"]], np.int64)
        self._second(way)
        if key is None:
            self._key_of(kernel.NO_KEY, 0, 0)
            return
        codes = c.low[key[order]].astype(np.int64)
        base, span = int(codes[0]), (int(codes[-1]) - int(codes[0])) // 2 + 1
        pairs = span * int(self._parts["second_count"][-1][0])
        if way.second is not None and not way.meets and pairs <= 32 * len(codes) + 1024:
            second = c.low[way.second[order]].astype(np.int64) - int(self._parts["second_base"][-1][0])
            place = ((codes - base) >> 1) * (pairs // span) + (second >> 1)
            counts = np.bincount(place, minlength=pairs)
            self._key_of(kernel.PAIR_KEY, base, span)
        elif span <= 16 * len(codes) + 1024:
            counts = np.bincount((codes - base) >> 1, minlength=span)
            self._key_of(kernel.DIRECT_KEY, base, span)
        else:
            distinct, counts = np.unique(codes, return_counts=True)
            self._put("sparse_key", distinct)
            self._key_of(kernel.SPARSE_KEY, base, len(distinct))
        self._put("bucket", first + starts_of(counts))

    def _key_of(self, mode: int, base: int, count: int) -> None:
        self._put("key_mode", [mode], np.uint8)
        self._put("key_base", [base])
        self._put("key_count", [count], np.int64)

    def _second(self, way: AccessPath) -> None:
        column, base, count = 0, 0, 0
        if way.second is not None and not way.meets:
            codes = self._clauses.low[way.second]
            column, base = int(self._clauses.column[way.second[0]]), int(codes.min())
            count = (int(codes.max()) - base) // 2 + 1
        self._put("second_column", [column], np.uint32)
        self._put("second_base", [base])
        self._put("second_count", [count], np.int64)

    def _cut(self, cut: Numbers | None) -> None:
        """`cut` has the test of each row, rows in order."""
        if cut is None:
            self._put("cut_column", [0], np.uint32)
            self._put("cut_floor", [0])
            self._put("cut_ceiling", [0])
            self._put("cut_op", [kernel.NO_CUT], np.uint8)
            self._put("cut_low", [0], np.int64)
            self._put("cut_high", [0], np.int64)
        else:
            self._test("cut", cut)

    def _meeting(self, second: Numbers) -> None:
        """Column and code of each row's second key."""
        c, there = self._clauses, second >= 0
        self._put("cut_column", [0], np.uint32)
        self._put("cut_floor", [0])
        self._put("cut_ceiling", [0])
        self._put("cut_op", [kernel.NO_CUT], np.uint8)
        self._put("cut_low", [self._sizes["bound"]], np.int64)
        self._put("bound", np.where(there, c.low[second], 0))
        self._put("cut_high", [self._sizes["bound"]], np.int64)
        self._put("bound", np.where(there, c.column[second], -1))

    def _columns(self, way: AccessPath, order: Numbers) -> None:
        """The tests that are neither key nor cut, most selective first, as columns of bounds."""
        c = self._clauses
        taken = [int(test[0]) for test in (way.key, way.cut) if test is not None]
        tests = c.matrix(way.rows)
        kept = [t for t in range(tests.shape[1]) if tests[0, t] not in taken]
        for t in sorted(kept, key=lambda t: c.share[tests[0, t]]):
            self._test("test", tests[order, t])
        self._rows_as(kernel.UNIFORM, 0, "bound")

    def _rows_as(self, layout: int, width: int, stands_in: str) -> None:
        """How the rows of the cluster stand, and in which array."""
        self._put("layout", [layout], np.uint8)
        self._put("width", [width])
        self._put("list_start", [self._sizes[stands_in]], np.int64)

    def _test(self, prefix: str, tests: Numbers) -> None:
        """A test's bounds: the one its operation compares with, or both for WITHIN."""
        c, form = self._clauses, int(self._clauses.form[tests[0]])
        op, (floor, ceiling) = op_of(form), open_codes(form)
        self._put(f"{prefix}_column", [c.column[tests[0]]], np.uint32)
        self._put(f"{prefix}_op", [op], np.uint8)
        self._put(f"{prefix}_floor", [floor])
        self._put(f"{prefix}_ceiling", [ceiling])
        self._put(f"{prefix}_low", [self._sizes["bound"]], np.int64)
        self._put("bound", c.high[tests] if op == kernel.AT_MOST else c.low[tests])
        self._put(f"{prefix}_high", [self._sizes["bound"]], np.int64)
        if op == kernel.WITHIN:
            self._put("bound", c.high[tests])

    def _lists(self, way: AccessPath, order: Numbers, keys: list[Numbers]) -> None:
        """The tests of each row but its keys: equalities only in rows of one width, or lists, most selective first."""
        c, rows = self._clauses, way.rows[order]
        tests, starts = c.tests_of(rows)
        kept = np.ones(len(tests), bool)
        for key in keys:
            there = np.flatnonzero(key[order] >= 0)
            kept[(starts[:-1] + key[order] - c.starts[rows])[there]] = False
        owner = np.repeat(np.arange(len(rows)), np.diff(starts))[kept]
        tests = tests[kept]
        tests = tests[np.lexsort((c.share[tests], owner))]
        if way.layout == access_paths.EQUALITIES:
            self._equalities(tests, way.width + (way.second is not None and len(keys) < 2))
            return
        self._rows_as(kernel.MET if way.meets else kernel.GENERAL, 0, "row_test")
        first = self._sizes["item"] // kernel.ITEM
        self._put("row_test", first + starts_of(np.bincount(owner, minlength=len(rows))))
        named = (c.column[tests], c.op[tests].astype(np.int32), c.low[tests], c.high[tests])
        self._put("item", np.column_stack(named).reshape(-1))

    def _equalities(self, tests: Numbers, width: int) -> None:
        """Rows of fixed width: column and code of each equality, in one number if they are small enough."""
        column, code = self._clauses.column[tests].astype(np.int64), self._clauses.low[tests].astype(np.int64)
        distance = code - self._base[column]
        if (column < 1 << 15).all() and (distance <= 0xFFFF).all():
            self._rows_as(kernel.NARROW, width, "narrow")
            self._put("narrow", column << 16 | distance, np.uint32)
        else:
            self._rows_as(kernel.EQUALITIES, width, "equality")
            self._put("equality", np.column_stack((column, code)).reshape(-1))

    def _put(self, name: str, values: Any, dtype: Any = np.int32) -> None:
        array = np.asarray(values).astype(dtype, copy=False)
        self._parts[name].append(array)
        self._sizes[name] += len(array)
        if self._sizes[name] > kernel.LAST:
            raise TidingsError(f"a segment has no room for more than {kernel.LAST:,} entries in {name}")

    def _joined(self, name: str) -> npt.NDArray[Any]:
        parts = self._parts.get(name)
        return np.concatenate(parts) if parts else np.empty(0, _DTYPES.get(name, np.int32))


_DTYPES: dict[str, Any] = {
    "key_column": np.uint32,
    "second_column": np.uint32,
    "cut_column": np.uint32,
    "test_column": np.uint32,
    "key_mode": np.uint8,
    "key_start": np.int64,
    "key_count": np.int64,
    "sparse_start": np.int64,
    "second_count": np.int64,
    "cut_op": np.uint8,
    "cut_low": np.int64,
    "cut_high": np.int64,
    "test_op": np.uint8,
    "test_low": np.int64,
    "test_high": np.int64,
    "layout": np.uint8,
    "narrow": np.uint32,
    "list_start": np.int64,
}
"""Of arrays that may be empty: kernels are compiled for types."""


def _bases(clauses: ClauseTable, columns: int) -> npt.NDArray[np.int32]:
    """The least code that equalities ask for, by column; -1 where there are none."""
    tests = np.flatnonzero(clauses.is_equality)
    least = np.full(columns, kernel.LAST, np.int32)
    np.minimum.at(least, clauses.column[tests], clauses.low[tests])
    return np.where(least == kernel.LAST, -1, least).astype(np.int32)


def _padded(array: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
    """LANES places more: a comparison reads so many from any row on."""
    return np.concatenate((array, np.zeros(LANES, np.int32)))


def _several(rows: npt.NDArray[np.int32], subscriptions: int) -> npt.NDArray[np.int32]:
    """Numbers the subscriptions with more than one row; -1 for the others, nothing if there are none."""
    counts = np.bincount(rows, minlength=subscriptions)
    if not (counts > 1).any():
        return np.empty(0, np.int32)
    return np.where(counts > 1, np.cumsum(counts > 1) - 1, -1).astype(np.int32)


def _met_order(clauses: ClauseTable, way: AccessPath) -> Numbers:
    """Rows by key, and those with the same key by column and code of their second, those without one first."""
    assert way.key is not None and way.second is not None
    there = way.second >= 0
    column = np.where(there, clauses.column[way.second], -1)
    return np.lexsort((np.where(there, clauses.low[way.second], 0), column, clauses.low[way.key]))


def _order(clauses: ClauseTable, key: Numbers | None, cut: Numbers | None, rows: int) -> Numbers:
    """Rows by key, and those with the same key by the bound of their cut."""
    by = []
    if cut is not None:
        at_most = op_of(int(clauses.form[cut[0]])) == kernel.AT_MOST
        by.append((clauses.high if at_most else clauses.low)[cut])
    if key is not None:
        by.append(clauses.low[key])
    return np.lexsort(by) if by else np.arange(rows)
