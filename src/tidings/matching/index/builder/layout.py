"""Cluster layout: writes access paths into the arrays of `matching.kernels.clusters.Clusters`."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np
import numpy.typing as npt

from tidings.errors import TidingsError
from tidings.matching.array_functions import starts_of
from tidings.matching.index.builder import access_paths
from tidings.matching.index.builder.access_paths import AccessPath
from tidings.matching.index.builder.clause_table import ClauseTable, Numbers, form_bounds, op_of
from tidings.matching.kernels import clusters as kernel
from tidings.matching.kernels.clusters import Clusters
from tidings.matching.kernels.vectors import LANES


class ClusterLayout:
    """Collects clusters, then joins them into the arrays of `matching.kernels.clusters.Clusters`."""

    def __init__(self, columns: int, clauses: ClauseTable) -> None:
        self._clauses = clauses
        self._visits: list[list[int]] = [[] for _ in range(columns)]
        self._always: list[int] = []
        self._parts: dict[str, list[npt.NDArray[Any]]] = defaultdict(list)
        self._sizes: dict[str, int] = defaultdict(int)
        self._base = _bases(clauses, columns)
        self._test_ends = [0]
        self._clusters = 0

    def add(self, path: AccessPath) -> None:
        """Add a cluster. Clauses in tiles keep their order: they are found through the tiles only."""
        by_cut = path.cut if path.cut is not None else path.second
        if path.any_second:
            order = _merge_order(self._clauses, path)
        else:
            order = _sort_order(self._clauses, path.key, by_cut, len(path.rows))
        self._add_key(path, order)
        paired = self._parts["key_mode"][-1][0] == kernel.PAIR_KEY
        if path.any_second and path.second is not None:
            self._add_second_keys(path.second[order])
        else:
            self._add_cut(None if paired or by_cut is None else by_cut[order])
        if path.layout == access_paths.UNIFORM:
            self._add_columns(path, order)
        else:
            keys = (path.key, path.second if paired or path.any_second else None)
            self._add_lists(path, order, [key for key in keys if key is not None])
        self._put("subscription", self._clauses.subscription[path.rows[order]], np.int32)
        self._test_ends.append(self._sizes["test_op"])
        if path.layout != access_paths.TILES:
            self._add_visit(path)
        self._clusters += 1

    def finish(self, subscriptions: int) -> Clusters:
        rows = self._join("subscription")
        visits = [np.array(v, np.uint32) for v in self._visits]
        arrays: dict[str, npt.NDArray[Any]] = {
            "visit_start": starts_of([len(v) for v in visits]),
            "visit": np.concatenate(visits) if visits else np.empty(0, np.uint32),
            "always": np.array(self._always, np.uint32),
            "row_start": starts_of([len(p) for p in self._parts["subscription"]]),
            "test_start": np.array(self._test_ends, np.int64),
            "set_start": self._clauses.set_start,
            "set_code": self._clauses.set_code,
            "subscription": _pad(rows),
            "several": _number_repeated(rows, subscriptions),
            "narrow_base": self._base if self._sizes["narrow"] else np.empty(0, np.int32),
        }
        for name in Clusters._fields:
            if name not in arrays:
                arrays[name] = self._join(name)
        arrays["bound"] = _pad(arrays["bound"])
        return Clusters(**arrays)

    def row_count(self) -> int:
        return self._sizes["subscription"]

    def list_shift(self) -> int:
        """Return the distance from a row of the last added cluster to its list of tests."""
        first = self._sizes["subscription"] - len(self._parts["subscription"][-1])
        return int(self._parts["list_start"][-1][0]) - first

    def _add_visit(self, path: AccessPath) -> None:
        first = path.key if path.key is not None else path.cut
        column = path.column if first is None else int(self._clauses.column[first[0]])
        (self._always if column is None else self._visits[column]).append(self._clusters)

    def _add_key(self, path: AccessPath, order: Numbers) -> None:
        """Map codes to buckets: directly if they lie close together, else by a search in those that occur."""
        first, c = self._sizes["subscription"], self._clauses
        key = path.key
        self._put("key_column", [c.column[key[0]] if key is not None else 0], np.uint32)
        self._put("key_start", [self._sizes["bucket"]], np.int64)
        self._put("sparse_start", [self._sizes["sparse_key"]], np.int64)
        self._add_pair_columns(path)
        if key is None:
            self._put_key(kernel.NO_KEY, 0, 0)
            return
        codes = c.low[key[order]].astype(np.int64)
        base, span = int(codes[0]), (int(codes[-1]) - int(codes[0])) // 2 + 1
        pairs = span * int(self._parts["second_count"][-1][0])
        if path.second is not None and not path.any_second and pairs <= 32 * len(codes) + 1024:
            second = c.low[path.second[order]].astype(np.int64) - int(self._parts["second_base"][-1][0])
            place = ((codes - base) >> 1) * (pairs // span) + (second >> 1)
            counts = np.bincount(place, minlength=pairs)
            self._put_key(kernel.PAIR_KEY, base, span)
        elif span <= 16 * len(codes) + 1024:
            counts = np.bincount((codes - base) >> 1, minlength=span)
            self._put_key(kernel.DIRECT_KEY, base, span)
        else:
            distinct, counts = np.unique(codes, return_counts=True)
            self._put("sparse_key", distinct)
            self._put_key(kernel.SPARSE_KEY, base, len(distinct))
        self._put("bucket", first + starts_of(counts))

    def _put_key(self, mode: int, base: int, count: int) -> None:
        self._put("key_mode", [mode], np.uint8)
        self._put("key_base", [base])
        self._put("key_count", [count], np.int64)

    def _add_pair_columns(self, path: AccessPath) -> None:
        column, base, count = 0, 0, 0
        if path.second is not None and not path.any_second:
            codes = self._clauses.low[path.second]
            column, base = int(self._clauses.column[path.second[0]]), int(codes.min())
            count = (int(codes.max()) - base) // 2 + 1
        self._put("second_column", [column], np.uint32)
        self._put("second_base", [base])
        self._put("second_count", [count], np.int64)

    def _add_cut(self, cut: Numbers | None) -> None:
        """Add the cut; `cut` has the test of each row, in the order of rows."""
        if cut is None:
            self._put("cut_column", [0], np.uint32)
            self._put("cut_floor", [0])
            self._put("cut_ceiling", [0])
            self._put("cut_op", [kernel.NO_CUT], np.uint8)
            self._put("cut_low", [0], np.int64)
            self._put("cut_high", [0], np.int64)
        else:
            self._add_bounds("cut", cut)

    def _add_second_keys(self, second: Numbers) -> None:
        """Add the column and the code of each row's second key."""
        c, has_second = self._clauses, second >= 0
        self._put("cut_column", [0], np.uint32)
        self._put("cut_floor", [0])
        self._put("cut_ceiling", [0])
        self._put("cut_op", [kernel.NO_CUT], np.uint8)
        self._put("cut_low", [self._sizes["bound"]], np.int64)
        self._put("bound", np.where(has_second, c.low[second], 0))
        self._put("cut_high", [self._sizes["bound"]], np.int64)
        self._put("bound", np.where(has_second, c.column[second], -1))

    def _add_columns(self, path: AccessPath, order: Numbers) -> None:
        """Add the tests that are neither key nor cut as columns of bounds, most selective first."""
        c = self._clauses
        used = [int(test[0]) for test in (path.key, path.cut) if test is not None]
        tests = c.test_matrix(path.rows)
        unused = [t for t in range(tests.shape[1]) if tests[0, t] not in used]
        for t in sorted(unused, key=lambda t: c.share[tests[0, t]]):
            self._add_bounds("test", tests[order, t])
        self._put_layout(kernel.UNIFORM, 0, "bound")

    def _put_layout(self, layout: int, width: int, array: str) -> None:
        """Record the layout of the cluster's rows, and where they start in their array."""
        self._put("layout", [layout], np.uint8)
        self._put("width", [width])
        self._put("list_start", [self._sizes[array]], np.int64)

    def _add_bounds(self, prefix: str, tests: Numbers) -> None:
        """Add the bounds of a test: the one that its operation compares with, or both for WITHIN."""
        c, form = self._clauses, int(self._clauses.form[tests[0]])
        op, (floor, ceiling) = op_of(form), form_bounds(form)
        self._put(f"{prefix}_column", [c.column[tests[0]]], np.uint32)
        self._put(f"{prefix}_op", [op], np.uint8)
        self._put(f"{prefix}_floor", [floor])
        self._put(f"{prefix}_ceiling", [ceiling])
        self._put(f"{prefix}_low", [self._sizes["bound"]], np.int64)
        self._put("bound", c.high[tests] if op == kernel.AT_MOST else c.low[tests])
        self._put(f"{prefix}_high", [self._sizes["bound"]], np.int64)
        if op == kernel.WITHIN:
            self._put("bound", c.high[tests])

    def _add_lists(self, path: AccessPath, order: Numbers, keys: list[Numbers]) -> None:
        """Add the tests of each row except its keys, most selective first: rows of fixed width, or lists."""
        c, rows = self._clauses, path.rows[order]
        tests, starts = c.tests_of(rows)
        listed = np.ones(len(tests), bool)
        for key in keys:
            has_key = np.flatnonzero(key[order] >= 0)
            listed[(starts[:-1] + key[order] - c.starts[rows])[has_key]] = False
        owner = np.repeat(np.arange(len(rows)), np.diff(starts))[listed]
        tests = tests[listed]
        tests = tests[np.lexsort((c.share[tests], owner))]
        if path.layout == access_paths.EQUALITIES:
            self._add_equalities(tests, path.width + (path.second is not None and len(keys) < 2))
            return
        self._put_layout(kernel.MERGE if path.any_second else kernel.GENERAL, 0, "row_test")
        first = self._sizes["item"] // kernel.ITEM
        self._put("row_test", first + starts_of(np.bincount(owner, minlength=len(rows))))
        items = (c.column[tests], c.op[tests].astype(np.int32), c.low[tests], c.high[tests])
        self._put("item", np.column_stack(items).reshape(-1))

    def _add_equalities(self, tests: Numbers, width: int) -> None:
        """Add rows of fixed width: column and code of each equality, packed into one number if both are small."""
        column, code = self._clauses.column[tests].astype(np.int64), self._clauses.low[tests].astype(np.int64)
        distance = code - self._base[column]
        if (column < 1 << 15).all() and (distance <= 0xFFFF).all():
            self._put_layout(kernel.NARROW, width, "narrow")
            self._put("narrow", column << 16 | distance, np.uint32)
        else:
            self._put_layout(kernel.EQUALITIES, width, "equality")
            self._put("equality", np.column_stack((column, code)).reshape(-1))

    def _put(self, name: str, values: Any, dtype: Any = np.int32) -> None:
        array = np.asarray(values).astype(dtype, copy=False)
        self._parts[name].append(array)
        self._sizes[name] += len(array)
        if self._sizes[name] > kernel.LAST:
            raise TidingsError(f"a segment cannot hold more than {kernel.LAST:,} entries in {name}")

    def _join(self, name: str) -> npt.NDArray[Any]:
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
"""Types of arrays that may be empty: kernels are compiled for types."""


def _bases(clauses: ClauseTable, columns: int) -> npt.NDArray[np.int32]:
    """Return the smallest code in equalities of each column; -1 for columns without equalities."""
    tests = np.flatnonzero(clauses.is_equality)
    least = np.full(columns, kernel.LAST, np.int32)
    np.minimum.at(least, clauses.column[tests], clauses.low[tests])
    return np.where(least == kernel.LAST, -1, least).astype(np.int32)


def _pad(array: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
    """Add LANES zeros: a vector comparison reads that many numbers from any row on."""
    return np.concatenate((array, np.zeros(LANES, np.int32)))


def _number_repeated(rows: npt.NDArray[np.int32], subscriptions: int) -> npt.NDArray[np.int32]:
    """Number the subscriptions with more than one row, -1 for all others; empty if there are none."""
    counts = np.bincount(rows, minlength=subscriptions)
    if not (counts > 1).any():
        return np.empty(0, np.int32)
    return np.where(counts > 1, np.cumsum(counts > 1) - 1, -1).astype(np.int32)


def _merge_order(clauses: ClauseTable, path: AccessPath) -> Numbers:
    """Sort rows by key, then by column and code of their second key; rows without a second key come first."""
    assert path.key is not None and path.second is not None
    has_second = path.second >= 0
    column = np.where(has_second, clauses.column[path.second], -1)
    return np.lexsort((np.where(has_second, clauses.low[path.second], 0), column, clauses.low[path.key]))


def _sort_order(clauses: ClauseTable, key: Numbers | None, cut: Numbers | None, rows: int) -> Numbers:
    """Sort rows by key, then by the bound of their cut."""
    by = []
    if cut is not None:
        at_most = op_of(int(clauses.form[cut[0]])) == kernel.AT_MOST
        by.append((clauses.high if at_most else clauses.low)[cut])
    if key is not None:
        by.append(clauses.low[key])
    return np.lexsort(by) if by else np.arange(rows)
