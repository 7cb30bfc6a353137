"""Coded atoms meet clusters of clauses; what comes out is pairs of publication and subscription.

A cluster is reached through its key (an equality: the code leads to a bucket of rows) or, without one, through its
cut. Within a bucket, rows are sorted by the cut's bound, and a binary search leaves only rows whose cut holds. The
other tests of a *uniform* cluster are columns of bounds, compared tile by tile without branches; a row of a *general*
cluster has a list of tests of its own.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit

NO_KEY, DIRECT_KEY, SPARSE_KEY = 0, 1, 2
NO_CUT, AT_LEAST, AT_MOST, EQUAL, WITHIN = 0, 1, 2, 3, 4
INSIDE, OUTSIDE, MEMBER = 0, 1, 2
NEGATED = 4
TILE = 512


class Clusters(NamedTuple):
    """A segment's clauses. Arrays named in the singular have an entry per cluster, per test or per row of one.

    visit_start, visit    clusters to look at when a column has a value; `always` are looked at in any case
    key_*                 key column, how its codes lead to buckets, and where those stand in `bucket`
    cut_*                 cut column and operation, the codes it is open to, where its bounds stand in `bound`
    test_*                tests of uniform clusters: column, operation, open codes, where the bounds stand in `bound`
    row_start             first row of a cluster (one entry more than clusters)
    list_start            for general clusters, where `row_test` has the first entry of its first row; -1 for uniform
    item_*                tests of general clusters: column, operation, low, high (or the number of a set)
    subscription          by row; `several` numbers those rows' subscriptions that have more than one row, else -1
    """

    visit_start: Any
    visit: Any
    always: Any
    key_column: Any
    key_mode: Any
    key_base: Any
    key_start: Any
    key_count: Any
    sparse_start: Any
    sparse_key: Any
    bucket: Any
    cut_column: Any
    cut_op: Any
    cut_floor: Any
    cut_ceiling: Any
    cut_low: Any
    cut_high: Any
    test_start: Any
    test_column: Any
    test_op: Any
    test_floor: Any
    test_ceiling: Any
    test_low: Any
    test_high: Any
    bound: Any
    row_start: Any
    list_start: Any
    row_test: Any
    item_column: Any
    item_op: Any
    item_low: Any
    item_high: Any
    set_start: Any
    set_code: Any
    subscription: Any
    several: Any


class Scratch(NamedTuple):
    """One publication's codes by column: the first, and a chain of further ones for columns with several."""

    stamp: Any
    code: Any
    head: Any
    chain: Any
    many: Any
    mask: Any
    words: Any
    seen: Any


class Found(NamedTuple):
    publication: Any
    subscription: Any


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def match(
    starts: Any, columns: Any, codes: Any, clusters: Clusters, scratch: Scratch, out: Found, begin: int
) -> Any:
    """Match publications from `begin` on: the first that did not fit into `out`, and how many pairs were found."""
    found = 0
    for row in range(begin, len(starts) - 1):
        before = found
        low, high = starts[row], starts[row + 1]
        _scatter(columns, codes, low, high, row, scratch)
        for a in range(low, high):
            column = columns[a]
            newest = scratch.chain[a]
            if newest == -2:
                continue
            for v in range(clusters.visit_start[column], clusters.visit_start[column + 1]):
                cluster = clusters.visit[v]
                keyed = clusters.key_mode[cluster] != NO_KEY
                if not keyed and newest != -1:
                    continue
                found = _visit(clusters, cluster, scratch, columns, codes, row, codes[a], out, found)
                if found < 0:
                    return row, before
        for v in range(len(clusters.always)):
            found = _visit(clusters, clusters.always[v], scratch, columns, codes, row, 0, out, found)
            if found < 0:
                return row, before
    return len(starts) - 1, found


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _scatter(columns: Any, codes: Any, low: int, high: int, row: int, scratch: Scratch) -> None:
    """Put a publication's codes where their columns are looked up.

    chain[a] is the next atom of the same column, -1 at the end of the chain, -2 for a code that was there already.
    """
    for a in range(low, high):
        column, code = columns[a], codes[a]
        if scratch.stamp[column] != row:
            scratch.stamp[column] = row
            scratch.code[column] = code
            scratch.head[column] = a
            scratch.chain[a] = -1
            scratch.many[column] = 0
            continue
        other = scratch.head[column]
        while other >= 0 and codes[other] != code:
            other = scratch.chain[other]
        if other >= 0:
            scratch.chain[a] = -2
        else:
            scratch.chain[a] = scratch.head[column]
            scratch.head[column] = a
            scratch.many[column] = 1


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _visit(
    clusters: Clusters,
    cluster: int,
    scratch: Scratch,
    columns: Any,
    codes: Any,
    row: int,
    code: int,
    out: Found,
    found: int,
) -> int:
    """Add the matches of one cluster; -1 if they do not fit."""
    low, high = clusters.row_start[cluster], clusters.row_start[cluster + 1]
    mode = clusters.key_mode[cluster]
    if mode != NO_KEY:
        bucket = _bucket(clusters, cluster, mode, code)
        if bucket < 0:
            return found
        low, high = clusters.bucket[bucket], clusters.bucket[bucket + 1]
        if low == high:
            return found
    cut = clusters.cut_op[cluster]
    simple = True
    if cut != NO_CUT:
        column = clusters.cut_column[cluster]
        if scratch.stamp[column] != row:
            return found
        if scratch.many[column]:
            simple = False
        else:
            value = scratch.code[column]
            if value < clusters.cut_floor[cluster] or value > clusters.cut_ceiling[cluster]:
                return found
            low, high = _cut(clusters, cluster, cut, value, low, high)
    if low >= high:
        return found
    if len(out.publication) - found < high - low:
        return -1
    if clusters.list_start[cluster] >= 0:
        return _general(clusters, cluster, scratch, columns, codes, row, low, high, out, found)
    for t in range(clusters.test_start[cluster], clusters.test_start[cluster + 1]):
        column = clusters.test_column[t]
        if scratch.stamp[column] != row:
            return found
        if scratch.many[column]:
            simple = False
        elif scratch.code[column] < clusters.test_floor[t] or scratch.code[column] > clusters.test_ceiling[t]:
            return found
    if not simple:
        return _chained(clusters, cluster, scratch, codes, row, low, high, out, found)
    return _tiles(clusters, cluster, scratch, row, low, high, out, found)


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _bucket(clusters: Clusters, cluster: int, mode: int, code: int) -> int:
    if mode == DIRECT_KEY:
        place = code - clusters.key_base[cluster]
        if place < 0 or place & 1 or (place >> 1) >= clusters.key_count[cluster]:
            return -1
        return int(clusters.key_start[cluster] + (place >> 1))
    first = clusters.sparse_start[cluster]
    low, high = first, first + clusters.key_count[cluster]
    while low < high:
        middle = (low + high) >> 1
        if clusters.sparse_key[middle] < code:
            low = middle + 1
        else:
            high = middle
    if low < first + clusters.key_count[cluster] and clusters.sparse_key[low] == code:
        return int(clusters.key_start[cluster] + low - first)
    return -1


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _cut(clusters: Clusters, cluster: int, cut: int, value: int, low: int, high: int) -> Any:
    """Of rows sorted by their cut's bound, those whose cut holds (WITHIN: whose lower bound does)."""
    shift = clusters.cut_low[cluster] - clusters.row_start[cluster]
    first, last = low, high
    if cut != AT_MOST:
        while low < last:
            middle = (low + last) >> 1
            if clusters.bound[shift + middle] <= value:
                low = middle + 1
            else:
                last = middle
        high, low, last = low, first, low
    if cut == AT_MOST or cut == EQUAL:
        while low < last:
            middle = (low + last) >> 1
            if clusters.bound[shift + middle] < value:
                low = middle + 1
            else:
                last = middle
    return low, high


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _emit(clusters: Clusters, scratch: Scratch, row: int, line: int, out: Found, found: int) -> int:
    if len(clusters.several):
        number = clusters.several[line]
        if number >= 0:
            if scratch.seen[number] == row:
                return found
            scratch.seen[number] = row
    out.publication[found] = row
    out.subscription[found] = clusters.subscription[line]
    return found + 1


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _tiles(
    clusters: Clusters, cluster: int, scratch: Scratch, row: int, low: int, high: int, out: Found, found: int
) -> int:
    """The fast path: every column has one code, so a test is a comparison with a column of bounds."""
    tests, last = clusters.test_start[cluster], clusters.test_start[cluster + 1]
    within = clusters.cut_op[cluster] == WITHIN
    base = clusters.row_start[cluster]
    if tests == last and not within:
        for line in range(low, high):
            found = _emit(clusters, scratch, row, line, out, found)
        return found
    mask, words, bound = scratch.mask, scratch.words, clusters.bound
    for tile in range(low, high, TILE):
        size = min(TILE, high - tile)
        for k in range(size):
            mask[k] = 1
        if within:
            value = scratch.code[clusters.cut_column[cluster]]
            at = clusters.cut_high[cluster] - base + tile
            for k in range(size):
                mask[k] &= bound[at + k] >= value
        for t in range(tests, last):
            value = scratch.code[clusters.test_column[t]]
            op = clusters.test_op[t]
            at = clusters.test_low[t] - base + tile
            if op == AT_LEAST:
                for k in range(size):
                    mask[k] &= bound[at + k] <= value
            elif op == AT_MOST:
                for k in range(size):
                    mask[k] &= bound[at + k] >= value
            elif op == EQUAL:
                for k in range(size):
                    mask[k] &= bound[at + k] == value
            else:
                top = clusters.test_high[t] - base + tile
                for k in range(size):
                    mask[k] &= (bound[at + k] <= value) & (bound[top + k] >= value)
        for k in range(size, (size + 7) & ~7):
            mask[k] = 0
        for w in range((size + 7) >> 3):
            if words[w] == 0:
                continue
            for k in range(8 * w, 8 * w + 8):
                if mask[k]:
                    found = _emit(clusters, scratch, row, tile + k, out, found)
    return found


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _chained(
    clusters: Clusters,
    cluster: int,
    scratch: Scratch,
    codes: Any,
    row: int,
    low: int,
    high: int,
    out: Found,
    found: int,
) -> int:
    """Some column has several codes: each test of a row asks whether one of them satisfies it."""
    base = clusters.row_start[cluster]
    for line in range(low, high):
        holds = True
        if clusters.cut_op[cluster] != NO_CUT:
            holds = _some(
                clusters.bound,
                clusters.cut_op[cluster],
                clusters.cut_floor[cluster],
                clusters.cut_ceiling[cluster],
                clusters.cut_low[cluster] - base + line,
                clusters.cut_high[cluster] - base + line,
                scratch.head[clusters.cut_column[cluster]],
                scratch.chain,
                codes,
            )
        for t in range(clusters.test_start[cluster], clusters.test_start[cluster + 1]):
            if not holds:
                break
            holds = _some(
                clusters.bound,
                clusters.test_op[t],
                clusters.test_floor[t],
                clusters.test_ceiling[t],
                clusters.test_low[t] - base + line,
                clusters.test_high[t] - base + line,
                scratch.head[clusters.test_column[t]],
                scratch.chain,
                codes,
            )
        if holds:
            found = _emit(clusters, scratch, row, line, out, found)
    return found


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _some(
    bound: Any, op: int, floor: int, ceiling: int, low: int, high: int, atom: int, chain: Any, codes: Any
) -> bool:
    while atom >= 0:
        code = codes[atom]
        if floor <= code <= ceiling:
            if op == AT_LEAST:
                if bound[low] <= code:
                    return True
            elif op == AT_MOST:
                if bound[low] >= code:
                    return True
            elif op == EQUAL:
                if bound[low] == code:
                    return True
            elif bound[low] <= code <= bound[high]:
                return True
        atom = chain[atom]
    return False


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _general(
    clusters: Clusters,
    cluster: int,
    scratch: Scratch,
    columns: Any,
    codes: Any,
    row: int,
    low: int,
    high: int,
    out: Found,
    found: int,
) -> int:
    shift = clusters.list_start[cluster] - clusters.row_start[cluster]
    for line in range(low, high):
        holds = True
        for item in range(clusters.row_test[shift + line], clusters.row_test[shift + line + 1]):
            op = clusters.item_op[item]
            some = _item_holds(clusters, item, op & 3, scratch, codes, row)
            if some == (op >= NEGATED):
                holds = False
                break
        if holds:
            found = _emit(clusters, scratch, row, line, out, found)
    return found


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _item_holds(clusters: Clusters, item: int, op: int, scratch: Scratch, codes: Any, row: int) -> bool:
    """Whether some code of the item's column stands as the item asks."""
    column = clusters.item_column[item]
    if scratch.stamp[column] != row:
        return False
    low, high = clusters.item_low[item], clusters.item_high[item]
    atom = scratch.head[column]
    while atom >= 0:
        code = codes[atom]
        if op == INSIDE:
            if low <= code <= high:
                return True
        elif op == OUTSIDE:
            if code < low or code > high:
                return True
        elif _member(clusters, low, code):
            return True
        atom = scratch.chain[atom]
    return False


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _member(clusters: Clusters, number: int, code: int) -> bool:
    low, high = clusters.set_start[number], clusters.set_start[number + 1]
    last = high
    while low < high:
        middle = (low + high) >> 1
        if clusters.set_code[middle] < code:
            low = middle + 1
        else:
            high = middle
    return bool(low < last and clusters.set_code[low] == code)
