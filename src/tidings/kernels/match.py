"""Coded atoms meet clusters of clauses; what comes out is pairs of publication and subscription.

A cluster is reached through its key (an equality: the code leads to a bucket of rows) or, without one, through its
cut. Within a bucket, rows are sorted by the cut's bound, and a binary search leaves only rows whose cut holds. The
other tests of a *uniform* cluster are columns of bounds, compared tile by tile without branches; a row of a *general*
cluster has a list of tests of its own.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tidings.kernels.codes import LAST_CODE
from tidings.kernels.compiled import inlined, reading
from tidings.kernels.encode import Coded

NO_KEY, DIRECT_KEY, SPARSE_KEY = 0, 1, 2
NO_CUT, AT_LEAST, AT_MOST, EQUAL, WITHIN = 0, 1, 2, 3, 4
INSIDE, OUTSIDE, MEMBER = 0, 1, 2
NEGATED = 4
TILE = 512
SPARE = 8
"""Reading a mask out writes up to eight places past the last row that passed."""


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
    """One publication's codes by column: where they begin and end among its atoms, and the first of them."""

    stamp: Any
    code: Any
    head: Any
    tail: Any
    mask: Any
    words: Any
    seen: Any


class Found(NamedTuple):
    """Pairs, as far as they are filled."""

    publication: Any
    subscription: Any


class Visit(NamedTuple):
    """What is being matched: a publication's row, the atom that led to a cluster (-1 for none), and the cluster."""

    row: Any
    atom: Any
    cluster: Any


@reading
def match(batch: Coded, order: Any, clusters: Clusters, scratch: Scratch, out: Found, begin: int) -> Any:
    """Match publications in this order, from place `begin` on.

    The answer is the place of the first that did not fit into `out`, and how many pairs were found.
    """
    starts, columns = batch.starts, batch.column
    found = 0
    for place in range(begin, len(order)):
        before, row = found, order[place]
        _scatter(batch, scratch, row)
        for atom in range(starts[row], starts[row + 1]):
            column = columns[atom]
            for v in range(clusters.visit_start[column], clusters.visit_start[column + 1]):
                found = _visit(batch, clusters, scratch, Visit(row, atom, clusters.visit[v]), out, found)
                if found < 0:
                    return place, before
        for v in range(len(clusters.always)):
            found = _visit(batch, clusters, scratch, Visit(row, -1, clusters.always[v]), out, found)
            if found < 0:
                return place, before
        found = _settle(clusters, scratch, out, row, before, found)
    return len(order), found


@reading
def fill_codes(batch: Coded, column: int, found: Any) -> None:
    """Each publication's first code in a column; what has none keeps what stands in `found`."""
    for row in range(len(found)):
        for atom in range(batch.starts[row], batch.starts[row + 1]):
            if batch.column[atom] == column:
                found[row] = batch.code[atom]
                break


@inlined
def _scatter(batch: Coded, scratch: Scratch, row: int) -> None:
    """Put a publication's codes where their columns are looked up. Those of one column stand together, in order."""
    columns, codes = batch.column, batch.code
    for atom in range(batch.starts[row], batch.starts[row + 1]):
        column = columns[atom]
        if scratch.stamp[column] != row:
            scratch.stamp[column] = row
            scratch.code[column] = codes[atom]
            scratch.head[column] = atom
        scratch.tail[column] = atom + 1


@inlined
def _visit(batch: Coded, clusters: Clusters, scratch: Scratch, visit: Visit, out: Found, found: int) -> int:
    """Add the rows of one cluster that a publication satisfies; -1 if they do not fit."""
    low, high = _bucket(batch, clusters, scratch, visit)
    if low >= high:
        return found
    simple = True
    cluster, cut = visit.cluster, clusters.cut_op[visit.cluster]
    if cut != NO_CUT:
        column = clusters.cut_column[cluster]
        if scratch.stamp[column] != visit.row:
            return found
        if scratch.tail[column] - scratch.head[column] > 1:
            simple = False
        else:
            low, high = _cut(clusters, cluster, scratch.code[column], low, high)
            if low >= high:
                return found
    if len(out.publication) - SPARE - found < high - low:
        return -1
    if clusters.list_start[cluster] >= 0:
        return _general(batch, clusters, scratch, visit, low, high, out, found)
    for t in range(clusters.test_start[cluster], clusters.test_start[cluster + 1]):
        column = clusters.test_column[t]
        if scratch.stamp[column] != visit.row:
            return found
        code = scratch.code[column]
        if scratch.tail[column] - scratch.head[column] > 1:
            simple = False
        elif code < clusters.test_floor[t] or code > clusters.test_ceiling[t]:
            return found
    if simple:
        return _tiles(clusters, cluster, scratch, low, high, out, found)
    return _several(batch, clusters, scratch, visit, low, high, out, found)


@inlined
def _bucket(batch: Coded, clusters: Clusters, scratch: Scratch, visit: Visit) -> Any:
    """The rows to look at: those of the key's bucket, or all of a cluster without a key."""
    cluster, mode = visit.cluster, clusters.key_mode[visit.cluster]
    if mode == NO_KEY:
        if visit.atom >= 0 and scratch.head[batch.column[visit.atom]] != visit.atom:
            return 0, 0  # reached through a column with several codes: once is enough
        return clusters.row_start[cluster], clusters.row_start[cluster + 1]
    code = batch.code[visit.atom]
    if mode == DIRECT_KEY:
        place = code - clusters.key_base[cluster]
        if place < 0 or place & 1 or (place >> 1) >= clusters.key_count[cluster]:
            return 0, 0
        number = clusters.key_start[cluster] + (place >> 1)
    else:
        start = clusters.sparse_start[cluster]
        stop = start + clusters.key_count[cluster]
        at = _lower_bound(clusters.sparse_key, code, start, stop)
        if at == stop or clusters.sparse_key[at] != code:
            return 0, 0
        number = clusters.key_start[cluster] + at - start
    return np.int64(clusters.bucket[number]), np.int64(clusters.bucket[number + 1])


@inlined
def _cut(clusters: Clusters, cluster: int, code: int, low: int, high: int) -> Any:
    """Of rows sorted by their cut's bound, those whose cut holds (for WITHIN: whose lower bound does)."""
    if code < clusters.cut_floor[cluster] or code > clusters.cut_ceiling[cluster]:
        return 0, 0
    bound, cut = clusters.bound, clusters.cut_op[cluster]
    shift = clusters.cut_low[cluster] - clusters.row_start[cluster]
    if cut == AT_MOST:
        return _lower_bound(bound, code, shift + low, shift + high) - shift, high
    after = _upper_bound(bound, code, shift + low, shift + high) - shift
    if cut == EQUAL:
        low = _lower_bound(bound, code, shift + low, shift + after) - shift
    return low, after


@inlined
def _tiles(
    clusters: Clusters, cluster: int, scratch: Scratch, low: int, high: int, out: Found, found: int
) -> int:
    """The fast path: every column has one code, so a test is a comparison with a column of bounds."""
    tests, past = clusters.test_start[cluster], clusters.test_start[cluster + 1]
    within = clusters.cut_op[cluster] == WITHIN
    lines = out.subscription
    if tests == past and not within:
        for line in range(low, high):
            lines[found + line - low] = line
        return found + high - low
    mask, words, bound, base = scratch.mask, scratch.words, clusters.bound, clusters.row_start[cluster]
    for tile in range(low, high, TILE):
        size = min(TILE, high - tile)
        _open(mask, size)
        shift = tile - base
        if within:
            code = scratch.code[clusters.cut_column[cluster]]
            _keep_at_most(mask, bound, clusters.cut_high[cluster] + shift, size, code)
        for t in range(tests, past):
            code, op = scratch.code[clusters.test_column[t]], clusters.test_op[t]
            at = clusters.test_low[t] + shift
            if op == AT_LEAST:
                _keep_at_least(mask, bound, at, size, code)
            elif op == AT_MOST:
                _keep_at_most(mask, bound, at, size, code)
            elif op == EQUAL:
                _keep_equal(mask, bound, at, size, code)
            else:
                _keep_at_least(mask, bound, at, size, code)
                _keep_at_most(mask, bound, clusters.test_high[t] + shift, size, code)
        for w in range((size + 7) >> 3):
            if words[w] != 0:
                for k in range(8 * w, 8 * w + 8):
                    lines[found] = tile + k
                    found += mask[k]
    return found


@inlined
def _open(mask: Any, size: int) -> None:
    """Let every row of a tile pass, and none of the few behind it that are read out with it."""
    for k in range(size):
        mask[k] = 1
    for k in range(size, (size + 7) & ~7):
        mask[k] = 0


@inlined
def _keep_at_least(mask: Any, bound: Any, at: int, size: int, code: int) -> None:
    window = bound[at : at + size]
    for k in range(size):
        mask[k] &= window[k] <= code


@inlined
def _keep_at_most(mask: Any, bound: Any, at: int, size: int, code: int) -> None:
    window = bound[at : at + size]
    for k in range(size):
        mask[k] &= window[k] >= code


@inlined
def _keep_equal(mask: Any, bound: Any, at: int, size: int, code: int) -> None:
    window = bound[at : at + size]
    for k in range(size):
        mask[k] &= window[k] == code


@inlined
def _several(
    batch: Coded,
    clusters: Clusters,
    scratch: Scratch,
    visit: Visit,
    low: int,
    high: int,
    out: Found,
    found: int,
) -> int:
    """Some column has several codes: each test of a row asks whether one of them satisfies it."""
    cluster = visit.cluster
    cut, bound = clusters.cut_op[cluster], clusters.bound
    for line in range(low, high):
        shift = line - clusters.row_start[cluster]
        holds = True
        if cut != NO_CUT:
            first, last = _bounds(
                bound, cut, clusters.cut_low[cluster] + shift, clusters.cut_high[cluster] + shift
            )
            first, last = max(first, clusters.cut_floor[cluster]), min(last, clusters.cut_ceiling[cluster])
            holds = _some(batch, scratch, clusters.cut_column[cluster], first, last)
        for t in range(clusters.test_start[cluster], clusters.test_start[cluster + 1]):
            if not holds:
                break
            first, last = _bounds(
                bound, clusters.test_op[t], clusters.test_low[t] + shift, clusters.test_high[t] + shift
            )
            first, last = max(first, clusters.test_floor[t]), min(last, clusters.test_ceiling[t])
            holds = _some(batch, scratch, clusters.test_column[t], first, last)
        if holds:
            out.subscription[found] = line
            found += 1
    return found


@inlined
def _bounds(bound: Any, op: int, low: int, high: int) -> Any:
    """Between which codes a row's test holds; `low` and `high` are where its bounds stand."""
    if op == AT_LEAST:
        return np.int64(bound[low]), np.int64(LAST_CODE)
    if op == AT_MOST:
        return np.int64(0), np.int64(bound[low])
    if op == EQUAL:
        return np.int64(bound[low]), np.int64(bound[low])
    return np.int64(bound[low]), np.int64(bound[high])


@inlined
def _some(batch: Coded, scratch: Scratch, column: int, first: int, last: int) -> bool:
    """Whether some code of a column lies between `first` and `last`."""
    tail = scratch.tail[column]
    place = _lower_bound(batch.code, first, scratch.head[column], tail)
    return bool(place < tail and batch.code[place] <= last)


@inlined
def _general(
    batch: Coded,
    clusters: Clusters,
    scratch: Scratch,
    visit: Visit,
    low: int,
    high: int,
    out: Found,
    found: int,
) -> int:
    """Rows with lists of tests of their own, most selective first."""
    lists = clusters.list_start[visit.cluster] - clusters.row_start[visit.cluster]
    row_test, item_op, item_column, stamp = (
        clusters.row_test,
        clusters.item_op,
        clusters.item_column,
        scratch.stamp,
    )
    for line in range(low, high):
        holds = True
        for item in range(row_test[lists + line], row_test[lists + line + 1]):
            some = stamp[item_column[item]] == visit.row and _some_item(batch, clusters, scratch, item)
            if some == (item_op[item] >= NEGATED):
                holds = False
                break
        if holds:
            out.subscription[found] = line
            found += 1
    return found


@inlined
def _some_item(batch: Coded, clusters: Clusters, scratch: Scratch, item: int) -> bool:
    """Whether some code of a column stands as a general cluster's item asks."""
    op, low, high = clusters.item_op[item] & 3, clusters.item_low[item], clusters.item_high[item]
    column, codes = clusters.item_column[item], batch.code
    head, tail = scratch.head[column], scratch.tail[column]
    if op == INSIDE:
        return _some(batch, scratch, column, low, high)
    if op == OUTSIDE:
        return bool(codes[head] < low or codes[tail - 1] > high)
    members, first, last = clusters.set_code, clusters.set_start[low], clusters.set_start[low + 1]
    if tail - head > last - first:
        for member in range(first, last):  # noqa: SIM110 - Numba has no generators here
            if _some(batch, scratch, column, members[member], members[member]):
                return True
        return False
    for atom in range(head, tail):
        place = _lower_bound(members, codes[atom], first, last)
        if place < last and members[place] == codes[atom]:
            return True
    return False


@inlined
def _settle(clusters: Clusters, scratch: Scratch, out: Found, row: int, before: int, found: int) -> int:
    """Turn the rows found for a publication into its subscriptions, each once."""
    subscription, several, seen = clusters.subscription, clusters.several, scratch.seen
    publications, subscriptions = out.publication, out.subscription
    kept = before
    for i in range(before, found):
        line = subscriptions[i]
        if len(several):
            number = several[line]
            if number >= 0:
                if seen[number] == row:
                    continue
                seen[number] = row
        publications[kept] = row
        subscriptions[kept] = subscription[line]
        kept += 1
    return kept


@inlined
def _lower_bound(values: Any, value: int, low: int, high: int) -> int:
    """The first place whose value is not less."""
    while low < high:
        middle = (low + high) >> 1
        if values[middle] < value:
            low = middle + 1
        else:
            high = middle
    return low


@inlined
def _upper_bound(values: Any, value: int, low: int, high: int) -> int:
    """The first place whose value is greater."""
    while low < high:
        middle = (low + high) >> 1
        if values[middle] <= value:
            low = middle + 1
        else:
            high = middle
    return low
