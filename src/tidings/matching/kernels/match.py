"""Matching: coded atoms and clusters of clauses give pairs of publication and subscription.

A cluster is reached through its key (an equality, or a pair of them: the codes lead to a bucket of rows) or,
without one, through its cut. Rows of a bucket are sorted by the bound of the cut, and a binary search leaves
only rows whose cut holds. `row_checks` evaluates the other tests: those of a *uniform* cluster are columns of
bounds, rows of other clusters have tests of their own. Clauses without an access path pass through
`bitmap_filter` first; its candidates are checked here.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tidings.matching.kernels.bitmap_filter import FilteredCandidates
from tidings.matching.kernels.clusters import (
    ABSENT,
    AT_MOST,
    DIRECT_KEY,
    EQUAL,
    EQUALITIES,
    GENERAL,
    ITEM,
    MERGE,
    NARROW,
    NO_CUT,
    NOT_NARROW,
    PAIR_KEY,
    SEVERAL,
    SPARSE_KEY,
    UNIFORM,
    VISITS,
    Clusters,
    Pairs,
    Scratch,
    Span,
)
from tidings.matching.kernels.codes import lower_bound, upper_bound
from tidings.matching.kernels.compiled import inlined, kernel
from tidings.matching.kernels.encode import Coded
from tidings.matching.kernels.row_checks import (
    check_columns,
    check_equalities,
    check_equalities_of_several,
    check_lists,
    check_narrow,
    list_holds,
    next_merge_match,
    pack_narrow,
)
from tidings.matching.kernels.vectors import prefetch

LINE, MOST_LINES = 16, 4
"""Numbers per cache line, and how many lines of a bucket are prefetched."""

AHEAD = 4
"""How many publications ahead atoms are prefetched."""

NO_ROWS, ALL_ROWS = -2, -1
"""Instead of the number of a bucket."""


@kernel
def match(
    batch: Coded,
    order: Any,
    clusters: Clusters,
    candidates: FilteredCandidates,
    scratch: Scratch,
    tick: int,
    out: Pairs,
    begin: int,
) -> Any:
    """Match publications in the given order, from place `begin` on.

    Returns the place of the first one that did not fit into `out`, and the number of pairs found. In
    `scratch.seen`, publication i is tick + i.
    """
    found = 0
    for place in range(begin, len(order)):
        before, row = found, order[place]
        _prefetch_atoms(batch, order, place)
        several = _scatter(batch, clusters, scratch, row)
        found = _match_one(batch, row, clusters, scratch, several, out, found)
        if found >= 0 and len(candidates.row):
            found = _check_candidates(batch, clusters, candidates, scratch, place, out, found)
        _clear(batch, scratch, row)
        if found < 0:
            return place, before
        if len(clusters.several):
            found = _remove_duplicates(clusters, scratch, out, tick + row, before, found)
        for i in range(before, found):
            out.publication[i] = row
    return len(order), found


@kernel
def fill_codes(batch: Coded, column: int, found: Any) -> None:
    """Write each publication's first code in a column; entries of publications without one are left unchanged."""
    for row in range(len(found)):
        for atom in range(batch.starts[row], batch.starts[row + 1]):
            if batch.column[atom] == column:
                found[row] = batch.code[atom]
                break


@inlined
def _prefetch_atoms(batch: Coded, order: Any, place: int) -> None:
    """Prefetch the atoms of later publications: `order` jumps around in the batch."""
    if place + 2 * AHEAD < len(order):
        prefetch(batch.starts, order[place + 2 * AHEAD])
        start = batch.starts[order[place + AHEAD]]
        prefetch(batch.column, start)
        prefetch(batch.code, start)


@inlined
def _scatter(batch: Coded, clusters: Clusters, scratch: Scratch, row: int) -> bool:
    """Write a publication's codes by column; return whether some column has several."""
    columns, codes, several, narrow = batch.column, batch.code, False, len(clusters.narrow_base) > 0
    for atom in range(batch.starts[row], batch.starts[row + 1]):
        column = columns[atom]
        if scratch.code[column] == ABSENT:
            scratch.code[column] = codes[atom]
            scratch.head[column] = atom
            if narrow:
                scratch.narrow[column] = pack_narrow(column, codes[atom], clusters.narrow_base[column])
        else:
            scratch.code[column] = SEVERAL
            scratch.narrow[column] = NOT_NARROW
            several = True
        scratch.tail[column] = atom + 1
    return several


@inlined
def _clear(batch: Coded, scratch: Scratch, row: int) -> None:
    for atom in range(batch.starts[row], batch.starts[row + 1]):
        scratch.code[batch.column[atom]] = ABSENT
        scratch.narrow[batch.column[atom]] = NOT_NARROW


@inlined
def _match_one(
    batch: Coded, row: int, clusters: Clusters, scratch: Scratch, several: bool, out: Pairs, found: int
) -> int:
    """Append the rows of all clusters that a publication satisfies; -1 if they do not fit.

    First all buckets are located, then all are read, then their rows: when a step needs memory, the previous
    step has prefetched it for all clusters at once.
    """
    atom, end, always, visit, last_visit = batch.starts[row], batch.starts[row + 1], 0, 0, 0
    if atom < end:
        visit, last_visit = _visits(batch, clusters, atom)
    # Only one call in this loop checks rows: that code is long, and inlined at every call.
    while True:
        waiting = 0
        while atom < end and waiting <= VISITS:
            if visit < last_visit:
                waiting = _find_bucket(batch, clusters, scratch, atom, clusters.visit[visit], waiting)
                visit += 1
            else:
                atom += 1
                if atom < end:
                    visit, last_visit = _visits(batch, clusters, atom)
        while atom == end and always < len(clusters.always) and waiting <= VISITS:
            scratch.cluster[waiting], scratch.bucket[waiting] = clusters.always[always], ALL_ROWS
            waiting += 1
            always += 1
        found = _check_waiting(batch, row, clusters, scratch, waiting, several, out, found)
        if atom == end and always == len(clusters.always):
            return found


@inlined
def _visits(batch: Coded, clusters: Clusters, atom: int) -> Any:
    """Return the range of clusters in `visit` that an atom leads to."""
    column = batch.column[atom]
    return clusters.visit_start[column], clusters.visit_start[column + 1]


@inlined
def _find_bucket(
    batch: Coded, clusters: Clusters, scratch: Scratch, atom: int, cluster: int, waiting: int
) -> int:
    """Append the bucket of a cluster that an atom leads to, if there is one; return the number of waiting visits."""
    mode, code, number = clusters.key_mode[cluster], batch.code[atom], np.int64(NO_ROWS)
    if mode == PAIR_KEY:
        return _find_pair_buckets(batch, clusters, scratch, atom, cluster, waiting)
    if mode == DIRECT_KEY:
        place = _direct_place(code, clusters.key_base[cluster], clusters.key_count[cluster])
        if place >= 0:
            number = clusters.key_start[cluster] + place
            prefetch(clusters.bucket, number)
    elif mode == SPARSE_KEY:
        start = clusters.sparse_start[cluster]
        stop = start + clusters.key_count[cluster]
        at = lower_bound(clusters.sparse_key, code, start, stop)
        if at < stop and clusters.sparse_key[at] == code:
            number = clusters.key_start[cluster] + at - start
    elif scratch.head[batch.column[atom]] == atom:  # a column with several codes: once is enough
        number = np.int64(ALL_ROWS)
    if number == NO_ROWS:
        return waiting
    scratch.cluster[waiting], scratch.bucket[waiting] = cluster, number
    return waiting + 1


@inlined
def _find_pair_buckets(
    batch: Coded, clusters: Clusters, scratch: Scratch, atom: int, cluster: int, waiting: int
) -> int:
    """Append the buckets that two codes lead to. A publication may have several codes in the second column, too."""
    column = clusters.second_column[cluster]
    first = _direct_place(batch.code[atom], clusters.key_base[cluster], clusters.key_count[cluster])
    if first < 0 or scratch.code[column] == ABSENT:
        return waiting
    base, count = clusters.second_base[cluster], clusters.second_count[cluster]
    number = clusters.key_start[cluster] + first * count
    if scratch.code[column] != SEVERAL:
        second = _direct_place(scratch.code[column], base, count)
        if second < 0:
            return waiting
        scratch.cluster[waiting], scratch.bucket[waiting] = cluster, number + second
        prefetch(clusters.bucket, number + second)
        return waiting + 1
    for other in range(scratch.head[column], scratch.tail[column]):
        second = _direct_place(batch.code[other], base, count)
        if second >= 0:
            scratch.cluster[waiting], scratch.bucket[waiting] = cluster, number + second
            waiting += 1
    return waiting


@inlined
def _check_waiting(
    batch: Coded,
    row: int,
    clusters: Clusters,
    scratch: Scratch,
    waiting: int,
    several: bool,
    out: Pairs,
    found: int,
) -> int:
    """Visit the waiting clusters; -1 if the rows do not fit."""
    met = 0
    for w in range(waiting):
        cluster, number = scratch.cluster[w], scratch.bucket[w]
        low, high = clusters.row_start[cluster], clusters.row_start[cluster + 1]
        if number != ALL_ROWS:
            at = np.uint64(number)
            low, high = np.int64(clusters.bucket[at]), np.int64(clusters.bucket[at + np.uint64(1)])
        scratch.low[w], scratch.high[w] = low, high
        if clusters.layout[cluster] == NARROW:
            _prefetch_rows(clusters.narrow, clusters, cluster, low, high, clusters.width[cluster])
        elif clusters.layout[cluster] == EQUALITIES:
            _prefetch_rows(clusters.equality, clusters, cluster, low, high, 2 * clusters.width[cluster])
        elif clusters.layout[cluster] == GENERAL:
            prefetch(clusters.row_test, clusters.list_start[cluster] - clusters.row_start[cluster] + low)
        elif clusters.layout[cluster] == MERGE:
            _prefetch_bounds(clusters, cluster, low, high)
            met += 1
    for w in range(waiting):
        if clusters.layout[scratch.cluster[w]] == GENERAL:
            _prefetch_lists(clusters, scratch.cluster[w], scratch.low[w], scratch.high[w])
    for w in range(waiting):
        cluster, low, high = scratch.cluster[w], scratch.low[w], scratch.high[w]
        if low < high and found >= 0 and clusters.layout[cluster] != MERGE:
            found = _visit(batch, clusters, scratch, Span(cluster, low, high), several, out, found)
    if met == 0 or found < 0:
        return found
    return _check_merged(batch, row, clusters, scratch, waiting, out, found)


@inlined
def _check_merged(
    batch: Coded, row: int, clusters: Clusters, scratch: Scratch, waiting: int, out: Pairs, found: int
) -> int:
    """Append the rows of MERGE clusters whose second key and list hold; -1 if they do not fit.

    The rows with a matching second key are found first, for all waiting clusters, because their lists are
    anywhere in memory. Until the lists are read, `out` holds the numbers of lists and rows.
    """
    met, last = found, batch.starts[row + 1]
    for w in range(waiting):
        cluster, at, high = scratch.cluster[w], scratch.low[w], scratch.high[w]
        if clusters.layout[cluster] != MERGE or at >= high:
            continue
        if len(out.publication) - met < high - at:
            return -1
        shift = clusters.list_start[cluster] - clusters.row_start[cluster]
        at, atom = next_merge_match(batch, clusters, cluster, at, high, batch.starts[row], last)
        while at < high:
            out.publication[met], out.subscription[met] = shift + at, at
            prefetch(clusters.row_test, shift + at)
            prefetch(clusters.subscription, at)
            met += 1
            at, atom = next_merge_match(batch, clusters, cluster, at + 1, high, atom, last)
    for i in range(found, met):
        prefetch(clusters.item, ITEM * np.int64(clusters.row_test[out.publication[i]]))
    for i in range(found, met):
        if list_holds(batch, clusters, scratch, np.int64(out.publication[i])):
            out.subscription[found] = clusters.subscription[out.subscription[i]]
            found += 1
    return found


@inlined
def _prefetch_rows(array: Any, clusters: Clusters, cluster: int, low: int, high: int, size: int) -> None:
    """Prefetch rows of `size` numbers each."""
    at = clusters.list_start[cluster] + (low - clusters.row_start[cluster]) * size
    for line in range(at, at + min(MOST_LINES * LINE, (high - low) * size), LINE):
        prefetch(array, line)


@inlined
def _prefetch_bounds(clusters: Clusters, cluster: int, low: int, high: int) -> None:
    """Prefetch the second keys of MERGE rows: codes and columns."""
    shift, columns = clusters.cut_low[cluster] - clusters.row_start[cluster], clusters.cut_high[cluster]
    for row in range(low, min(high, low + MOST_LINES * LINE), LINE):
        prefetch(clusters.bound, shift + row)
        prefetch(clusters.bound, columns - clusters.row_start[cluster] + row)


@inlined
def _prefetch_lists(clusters: Clusters, cluster: int, low: int, high: int) -> None:
    """Prefetch the tests of the first rows of lists."""
    shift = clusters.list_start[cluster] - clusters.row_start[cluster]
    for row in range(low, min(high, low + MOST_LINES)):
        prefetch(clusters.item, ITEM * np.int64(clusters.row_test[shift + row]))


@inlined
def _visit(
    batch: Coded, clusters: Clusters, scratch: Scratch, span: Span, several: bool, out: Pairs, found: int
) -> int:
    """Append the rows of a bucket that a publication satisfies; -1 if they do not fit."""
    cluster, low, high = span
    layout = clusters.layout[cluster]
    if clusters.cut_op[cluster] != NO_CUT:
        code = scratch.code[clusters.cut_column[cluster]]
        if code == ABSENT:
            return found
        if code != SEVERAL:
            low, high = _cut(clusters, cluster, code, low, high)
    if len(out.publication) - found < high - low:
        return -1
    left = Span(cluster, low, high)
    if layout == UNIFORM:
        return check_columns(batch, clusters, scratch, left, out, found)
    if layout == GENERAL:
        return check_lists(batch, clusters, scratch, left, out, found)
    if several:
        return check_equalities_of_several(batch, clusters, scratch, left, out, found)
    if layout == NARROW:
        return check_narrow(clusters, scratch, left, out, found)
    return check_equalities(clusters, scratch, left, out, found)


@inlined
def _direct_place(code: int, base: int, count: int) -> int:
    """Return the number of a code among `count` constants from `base` on; -1 if it is not one of them."""
    place = code - base
    if place < 0 or place & 1 or (place >> 1) >= count:
        return -1
    return place >> 1


@inlined
def _cut(clusters: Clusters, cluster: int, code: int, low: int, high: int) -> Any:
    """Return the rows, sorted by the bound of their cut, whose cut holds (for WITHIN: whose lower bound holds)."""
    if code < clusters.cut_floor[cluster] or code > clusters.cut_ceiling[cluster]:
        return 0, 0
    bound, cut = clusters.bound, clusters.cut_op[cluster]
    shift = clusters.cut_low[cluster] - clusters.row_start[cluster]
    if cut == AT_MOST:
        return lower_bound(bound, code, shift + low, shift + high) - shift, high
    after = upper_bound(bound, code, shift + low, shift + high) - shift
    if cut == EQUAL:
        low = lower_bound(bound, code, shift + low, shift + after) - shift
    return low, after


@inlined
def _check_candidates(
    batch: Coded,
    clusters: Clusters,
    candidates: FilteredCandidates,
    scratch: Scratch,
    place: int,
    out: Pairs,
    found: int,
) -> int:
    """Append the candidates of the bitmap filter that a publication satisfies; -1 if they do not fit."""
    first, last = candidates.starts[place], candidates.starts[place + 1]
    if len(out.publication) - found < last - first:
        return -1
    for i in range(first, last):
        row = candidates.row[i]
        if list_holds(batch, clusters, scratch, candidates.list_shift + row):
            out.subscription[found] = clusters.subscription[row]
            found += 1
    return found


@inlined
def _remove_duplicates(
    clusters: Clusters, scratch: Scratch, out: Pairs, mark: int, before: int, found: int
) -> int:
    """Keep each subscription of a publication once."""
    several, seen, subscriptions = clusters.several, scratch.seen, out.subscription
    kept = before
    for i in range(before, found):
        subscription = subscriptions[i]
        number = several[subscription]
        if number >= 0:
            if seen[number] == mark:
                continue
            seen[number] = mark
        subscriptions[kept] = subscription
        kept += 1
    return kept
