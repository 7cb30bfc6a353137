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
    """Pairs, as far as they are filled."""

    publication: Any
    subscription: Any


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def match(
    starts: Any, columns: Any, codes: Any, clusters: Clusters, scratch: Scratch, out: Found, begin: int
) -> Any:
    """Match publications from `begin` on: the first that did not fit into `out`, and how many pairs were found.

    Each array is taken out of its group once, up here: taking one out counts a reference, which costs more than
    comparing a whole tile.
    """
    visit_start, visit, always = clusters.visit_start, clusters.visit, clusters.always
    key_mode, key_base, key_start, key_count = (
        clusters.key_mode,
        clusters.key_base,
        clusters.key_start,
        clusters.key_count,
    )
    bucket, sparse_start, sparse_key = clusters.bucket, clusters.sparse_start, clusters.sparse_key
    cut_column, cut_op, cut_floor, cut_ceiling = (
        clusters.cut_column,
        clusters.cut_op,
        clusters.cut_floor,
        clusters.cut_ceiling,
    )
    cut_low, cut_high = clusters.cut_low, clusters.cut_high
    test_start, test_column, test_op = clusters.test_start, clusters.test_column, clusters.test_op
    test_floor, test_ceiling = clusters.test_floor, clusters.test_ceiling
    test_low, test_high, bound = clusters.test_low, clusters.test_high, clusters.bound
    row_start, list_start, row_test = clusters.row_start, clusters.list_start, clusters.row_test
    item_column, item_op, item_low, item_high = (
        clusters.item_column,
        clusters.item_op,
        clusters.item_low,
        clusters.item_high,
    )
    set_start, set_code = clusters.set_start, clusters.set_code
    subscription, several = clusters.subscription, clusters.several
    stamp, value_of, head, chain, many = (
        scratch.stamp,
        scratch.code,
        scratch.head,
        scratch.chain,
        scratch.many,
    )
    mask, words, seen = scratch.mask, scratch.words, scratch.seen
    out_publication, out_subscription = out.publication, out.subscription
    room = len(out_publication) - 8
    found = 0
    for row in range(begin, len(starts) - 1):
        before = found
        first, last = starts[row], starts[row + 1]
        _scatter(columns, codes, first, last, row, stamp, value_of, head, chain, many)
        visits = last - first + 1
        for visited in range(visits):
            # The last round is for the clusters that are looked at in any case.
            a = first + visited
            anyway = a == last
            if anyway:
                from_visit, to_visit = 0, len(always)
            elif chain[a] == -2:
                continue
            else:
                from_visit, to_visit = visit_start[columns[a]], visit_start[columns[a] + 1]
            for v in range(from_visit, to_visit):
                cluster = always[v] if anyway else visit[v]
                base = row_start[cluster]
                low, high = base, row_start[cluster + 1]
                mode = key_mode[cluster]
                if mode == DIRECT_KEY:
                    place = codes[a] - key_base[cluster]
                    if place < 0 or place & 1 or (place >> 1) >= key_count[cluster]:
                        continue
                    number = key_start[cluster] + (place >> 1)
                    low, high = np.int64(bucket[number]), np.int64(bucket[number + 1])
                elif mode == SPARSE_KEY:
                    start = sparse_start[cluster]
                    stop = start + key_count[cluster]
                    place = _lower_bound(sparse_key, codes[a], start, stop)
                    if place == stop or sparse_key[place] != codes[a]:
                        continue
                    number = key_start[cluster] + place - start
                    low, high = np.int64(bucket[number]), np.int64(bucket[number + 1])
                elif not anyway and chain[a] != -1:
                    continue  # reached through a column with several codes: once is enough
                if low == high:
                    continue
                cut, simple = cut_op[cluster], True
                if cut != NO_CUT:
                    column = cut_column[cluster]
                    if stamp[column] != row:
                        continue
                    if many[column]:
                        simple = False
                    else:
                        value = value_of[column]
                        if value < cut_floor[cluster] or value > cut_ceiling[cluster]:
                            continue
                        shift = cut_low[cluster] - base
                        if cut == AT_MOST:
                            low = _lower_bound(bound, value, shift + low, shift + high) - shift
                        else:
                            after = _upper_bound(bound, value, shift + low, shift + high) - shift
                            if cut == EQUAL:
                                low = _lower_bound(bound, value, shift + low, shift + after) - shift
                            high = after
                        if low >= high:
                            continue
                if room - found < high - low:  # reading a mask out writes up to eight places past the end
                    return row, before
                if list_start[cluster] >= 0:
                    lists = list_start[cluster] - base
                    for line in range(low, high):
                        holds = True
                        for item in range(row_test[lists + line], row_test[lists + line + 1]):
                            op = item_op[item]
                            some = False
                            if stamp[item_column[item]] == row:
                                some = _some_item(
                                    op & 3,
                                    item_low[item],
                                    item_high[item],
                                    head[item_column[item]],
                                    chain,
                                    codes,
                                    set_start,
                                    set_code,
                                )
                            if some == (op >= NEGATED):
                                holds = False
                                break
                        if holds:
                            out_subscription[found] = line
                            found += 1
                    continue
                tests, past = test_start[cluster], test_start[cluster + 1]
                possible = True
                for t in range(tests, past):
                    column = test_column[t]
                    if stamp[column] != row:
                        possible = False
                        break
                    if many[column]:
                        simple = False
                    elif value_of[column] < test_floor[t] or value_of[column] > test_ceiling[t]:
                        possible = False
                        break
                if not possible:
                    continue
                if not simple:
                    for line in range(low, high):
                        holds = True
                        if cut != NO_CUT:
                            holds = _some(
                                bound,
                                cut,
                                cut_floor[cluster],
                                cut_ceiling[cluster],
                                cut_low[cluster] - base + line,
                                cut_high[cluster] - base + line,
                                head[cut_column[cluster]],
                                chain,
                                codes,
                            )
                        for t in range(tests, past):
                            if not holds:
                                break
                            holds = _some(
                                bound,
                                test_op[t],
                                test_floor[t],
                                test_ceiling[t],
                                test_low[t] - base + line,
                                test_high[t] - base + line,
                                head[test_column[t]],
                                chain,
                                codes,
                            )
                        if holds:
                            out_subscription[found] = line
                            found += 1
                    continue
                if tests == past and cut != WITHIN:
                    for line in range(low, high):
                        out_subscription[found] = line
                        found += 1
                    continue
                for tile in range(low, high, TILE):
                    size = min(TILE, high - tile)
                    for k in range(size):
                        mask[k] = 1
                    for k in range(size, (size + 7) & ~7):
                        mask[k] = 0
                    if cut == WITHIN:
                        value = value_of[cut_column[cluster]]
                        _keep_at_most(mask, bound, cut_high[cluster] - base + tile, size, value)
                    for t in range(tests, past):
                        value = value_of[test_column[t]]
                        op, at = test_op[t], test_low[t] - base + tile
                        if op == AT_LEAST:
                            _keep_at_least(mask, bound, at, size, value)
                        elif op == AT_MOST:
                            _keep_at_most(mask, bound, at, size, value)
                        elif op == EQUAL:
                            _keep_equal(mask, bound, at, size, value)
                        else:
                            _keep_at_least(mask, bound, at, size, value)
                            _keep_at_most(mask, bound, test_high[t] - base + tile, size, value)
                    for w in range((size + 7) >> 3):
                        if words[w] == 0:
                            continue
                        for k in range(8 * w, 8 * w + 8):
                            out_subscription[found] = tile + k
                            found += mask[k]
        found = _settle(row, before, found, subscription, several, seen, out_publication, out_subscription)
    return len(starts) - 1, found


@njit(cache=True, nogil=True, forceinline=True)  # type: ignore[untyped-decorator]
def _scatter(
    columns: Any,
    codes: Any,
    first: int,
    last: int,
    row: int,
    stamp: Any,
    value_of: Any,
    head: Any,
    chain: Any,
    many: Any,
) -> None:
    """Put a publication's codes where their columns are looked up.

    chain[a] is the next atom of the same column, -1 at the end of the chain, -2 for a code that was there already.
    """
    for a in range(first, last):
        column, code = columns[a], codes[a]
        if stamp[column] != row:
            stamp[column] = row
            value_of[column] = code
            head[column] = a
            chain[a] = -1
            many[column] = 0
            continue
        other = head[column]
        while other >= 0 and codes[other] != code:
            other = chain[other]
        if other >= 0:
            chain[a] = -2
        else:
            chain[a] = head[column]
            head[column] = a
            many[column] = 1


@njit(cache=True, nogil=True, forceinline=True)  # type: ignore[untyped-decorator]
def _lower_bound(values: Any, value: int, low: int, high: int) -> int:
    """The first place whose value is not less."""
    while low < high:
        middle = (low + high) >> 1
        if values[middle] < value:
            low = middle + 1
        else:
            high = middle
    return low


@njit(cache=True, nogil=True, forceinline=True)  # type: ignore[untyped-decorator]
def _upper_bound(values: Any, value: int, low: int, high: int) -> int:
    """The first place whose value is greater."""
    while low < high:
        middle = (low + high) >> 1
        if values[middle] <= value:
            low = middle + 1
        else:
            high = middle
    return low


@njit(cache=True, nogil=True, forceinline=True)  # type: ignore[untyped-decorator]
def _keep_at_least(mask: Any, bound: Any, at: int, size: int, value: int) -> None:
    window = bound[at : at + size]
    for k in range(size):
        mask[k] &= window[k] <= value


@njit(cache=True, nogil=True, forceinline=True)  # type: ignore[untyped-decorator]
def _keep_at_most(mask: Any, bound: Any, at: int, size: int, value: int) -> None:
    window = bound[at : at + size]
    for k in range(size):
        mask[k] &= window[k] >= value


@njit(cache=True, nogil=True, forceinline=True)  # type: ignore[untyped-decorator]
def _keep_equal(mask: Any, bound: Any, at: int, size: int, value: int) -> None:
    window = bound[at : at + size]
    for k in range(size):
        mask[k] &= window[k] == value


@njit(cache=True, nogil=True, forceinline=True)  # type: ignore[untyped-decorator]
def _settle(
    row: int,
    before: int,
    found: int,
    subscription: Any,
    several: Any,
    seen: Any,
    out_publication: Any,
    out_subscription: Any,
) -> int:
    """Turn the rows found for a publication into its subscriptions, each once."""
    kept = before
    for i in range(before, found):
        line = out_subscription[i]
        if len(several):
            number = several[line]
            if number >= 0:
                if seen[number] == row:
                    continue
                seen[number] = row
        out_publication[kept] = row
        out_subscription[kept] = subscription[line]
        kept += 1
    return kept


@njit(cache=True, nogil=True, forceinline=True)  # type: ignore[untyped-decorator]
def _some(
    bound: Any, op: int, floor: int, ceiling: int, low: int, high: int, atom: int, chain: Any, codes: Any
) -> bool:
    """Whether some code of a column satisfies a uniform cluster's test."""
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


@njit(cache=True, nogil=True, forceinline=True)  # type: ignore[untyped-decorator]
def _some_item(
    op: int, low: int, high: int, atom: int, chain: Any, codes: Any, set_start: Any, set_code: Any
) -> bool:
    """Whether some code of a column stands as a general cluster's item asks."""
    while atom >= 0:
        code = codes[atom]
        if op == INSIDE:
            if low <= code <= high:
                return True
        elif op == OUTSIDE:
            if code < low or code > high:
                return True
        else:
            place = _lower_bound(set_code, code, set_start[low], set_start[low + 1])
            if place < set_start[low + 1] and set_code[place] == code:
                return True
        atom = chain[atom]
    return False
