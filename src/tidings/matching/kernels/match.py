"""Coded atoms meet clusters of clauses; what comes out is pairs of publication and subscription.

A cluster is reached through its key (an equality, or a pair of them: the codes lead to a bucket of rows) or, without
one, through its cut. Within a bucket, rows are sorted by the cut's bound, and a binary search leaves only rows whose
cut holds. The other tests of a *uniform* cluster are columns of bounds (see `columns`); rows of the other clusters have
tests of their own (see `lists`). Clauses that nothing leads to are sifted through
bitmaps first (see `sift`); what is left of them is checked here.
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
from tidings.matching.kernels.compiled import inlined, reading
from tidings.matching.kernels.encode import Coded
from tidings.matching.kernels.row_checks import (
    check_columns,
    check_equalities,
    check_fixed_of_several,
    check_lists,
    check_narrow,
    list_holds,
    narrowed,
    next_merge_match,
)
from tidings.matching.kernels.search import lower_bound, upper_bound
from tidings.matching.kernels.vectors import prefetch

LINE, MOST_LINES = 16, 4
"""Numbers in a line of the processor's cache, and how many lines of a bucket are asked for ahead."""

AHEAD = 4
"""How many publications ahead atoms are asked for."""

NO_ROWS, ALL_ROWS = -2, -1
"""In place of a bucket's number."""


@reading
def match(
    batch: Coded,
    order: Any,
    clusters: Clusters,
    sifted: FilteredCandidates,
    scratch: Scratch,
    tick: int,
    out: Pairs,
    begin: int,
) -> Any:
    """Match publications in this order, from place `begin` on.

    The answer is the place of the first that did not fit into `out`, and how many pairs were found. In `scratch.seen`,
    publication i is tick + i.
    """
    found = 0
    for place in range(begin, len(order)):
        before, row = found, order[place]
        _prefetch_atoms(batch, order, place)
        several = _scatter(batch, clusters, scratch, row)
        found = _match_one(batch, row, clusters, scratch, several, out, found)
        if found >= 0 and len(sifted.row):
            found = _check_sifted(batch, clusters, sifted, scratch, place, out, found)
        _clear(batch, scratch, row)
        if found < 0:
            return place, before
        if len(clusters.several):
            found = _once(clusters, scratch, out, tick + row, before, found)
        for i in range(before, found):
            out.publication[i] = row
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
def _prefetch_atoms(batch: Coded, order: Any, place: int) -> None:
    """Ask for what publications further on will need: the order jumps about in the batch."""
    if place + 2 * AHEAD < len(order):
        prefetch(batch.starts, order[place + 2 * AHEAD])
        start = batch.starts[order[place + AHEAD]]
        prefetch(batch.column, start)
        prefetch(batch.code, start)


@inlined
def _scatter(batch: Coded, clusters: Clusters, scratch: Scratch, row: int) -> bool:
    """Put a publication's codes where their columns are looked up. Those of one column stand together, in order.

    The answer is whether some column has several.
    """
    columns, codes, several, narrow = batch.column, batch.code, False, len(clusters.narrow_base) > 0
    for atom in range(batch.starts[row], batch.starts[row + 1]):
        column = columns[atom]
        if scratch.code[column] == ABSENT:
            scratch.code[column] = codes[atom]
            scratch.head[column] = atom
            if narrow:
                scratch.narrow[column] = narrowed(column, codes[atom], clusters.narrow_base[column])
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
    """Add the rows of all clusters that a publication satisfies; -1 if they do not fit.

    First all buckets are sought, then all are read, then their rows: what one step asks the memory for is under way
    for all clusters at once when the next step needs it.
    """
    atom, end, always, visit, last_visit = batch.starts[row], batch.starts[row + 1], 0, 0, 0
    if atom < end:
        visit, last_visit = _visits(batch, clusters, atom)
    # Rows are checked in one place of this loop: the code for that is long, and compiled in wherever it is called.
    while True:
        waiting = 0
        while atom < end and waiting <= VISITS:
            if visit < last_visit:
                waiting = _seek(batch, clusters, scratch, atom, clusters.visit[visit], waiting)
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
    """Where the clusters that an atom leads to stand in `visit`."""
    column = batch.column[atom]
    return clusters.visit_start[column], clusters.visit_start[column + 1]


@inlined
def _seek(batch: Coded, clusters: Clusters, scratch: Scratch, atom: int, cluster: int, waiting: int) -> int:
    """Note the bucket of a cluster that an atom leads to, if there is one; how many visits are waiting."""
    mode, code, number = clusters.key_mode[cluster], batch.code[atom], np.int64(NO_ROWS)
    if mode == PAIR_KEY:
        return _seek_pairs(batch, clusters, scratch, atom, cluster, waiting)
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
def _seek_pairs(
    batch: Coded, clusters: Clusters, scratch: Scratch, atom: int, cluster: int, waiting: int
) -> int:
    """Two codes lead to a bucket. A publication may have several in the second column, too."""
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
    """Visit the clusters that are waiting; -1 if what is found does not fit."""
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
    """Add the rows that a publication's other values meet and whose lists hold; -1 if they do not fit.

    Which rows are met is found first, for all clusters that are waiting: their lists stand anywhere. Until their lists
    are read, `out` has the numbers of their lists and rows in it.
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
    """Ask for rows of so many numbers each."""
    at = clusters.list_start[cluster] + (low - clusters.row_start[cluster]) * size
    for line in range(at, at + min(MOST_LINES * LINE, (high - low) * size), LINE):
        prefetch(array, line)


@inlined
def _prefetch_bounds(clusters: Clusters, cluster: int, low: int, high: int) -> None:
    """Ask for the bounds of rows that are met, and for their columns."""
    shift, columns = clusters.cut_low[cluster] - clusters.row_start[cluster], clusters.cut_high[cluster]
    for row in range(low, min(high, low + MOST_LINES * LINE), LINE):
        prefetch(clusters.bound, shift + row)
        prefetch(clusters.bound, columns - clusters.row_start[cluster] + row)


@inlined
def _prefetch_lists(clusters: Clusters, cluster: int, low: int, high: int) -> None:
    """Ask for the tests of the first rows of lists."""
    shift = clusters.list_start[cluster] - clusters.row_start[cluster]
    for row in range(low, min(high, low + MOST_LINES)):
        prefetch(clusters.item, ITEM * np.int64(clusters.row_test[shift + row]))


@inlined
def _visit(
    batch: Coded, clusters: Clusters, scratch: Scratch, span: Span, several: bool, out: Pairs, found: int
) -> int:
    """Add those of a bucket's rows that a publication satisfies; -1 if they do not fit."""
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
        return check_fixed_of_several(batch, clusters, scratch, left, out, found)
    if layout == NARROW:
        return check_narrow(clusters, scratch, left, out, found)
    return check_equalities(clusters, scratch, left, out, found)


@inlined
def _direct_place(code: int, base: int, count: int) -> int:
    """Which of `count` constants from `base` on a code is; -1 if it is none of them."""
    place = code - base
    if place < 0 or place & 1 or (place >> 1) >= count:
        return -1
    return place >> 1


@inlined
def _cut(clusters: Clusters, cluster: int, code: int, low: int, high: int) -> Any:
    """Of rows sorted by their cut's bound, those whose cut holds (for WITHIN: whose lower bound does)."""
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
def _check_sifted(
    batch: Coded,
    clusters: Clusters,
    sifted: FilteredCandidates,
    scratch: Scratch,
    place: int,
    out: Pairs,
    found: int,
) -> int:
    """Rows the bitmaps left over for a publication; -1 if they do not fit."""
    first, last = sifted.starts[place], sifted.starts[place + 1]
    if len(out.publication) - found < last - first:
        return -1
    for i in range(first, last):
        row = sifted.row[i]
        if list_holds(batch, clusters, scratch, sifted.list_shift + row):
            out.subscription[found] = clusters.subscription[row]
            found += 1
    return found


@inlined
def _once(clusters: Clusters, scratch: Scratch, out: Pairs, mark: int, before: int, found: int) -> int:
    """Leave each subscription of a publication once."""
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
