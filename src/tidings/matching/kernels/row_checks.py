"""Rows of uniform clusters: each test is a column of bounds, compared with a code 64 at a time without branches."""

from __future__ import annotations

from typing import Any

import numpy as np

from tidings.matching.kernels.clusters import (
    ABSENT,
    AT_LEAST,
    AT_MOST,
    EQUAL,
    INSIDE,
    ITEM,
    NARROW,
    NEGATED,
    NO_CUT,
    NOT_NARROW,
    OUTSIDE,
    SEVERAL,
    WITHIN,
    Clusters,
    Pairs,
    Scratch,
    Span,
)
from tidings.matching.kernels.codes import LAST_CODE
from tidings.matching.kernels.compiled import inlined
from tidings.matching.kernels.encode import Coded
from tidings.matching.kernels.search import lower_bound
from tidings.matching.kernels.vectors import LANES, at_least, at_most, compress, equal, ones

# Rows that are looked at one by one: each has its own tests, and the first that fails ends it.


@inlined
def some_code(batch: Coded, scratch: Scratch, column: int, first: int, last: int) -> bool:
    """Whether some code of a column lies between `first` and `last`."""
    code = scratch.code[column]
    if code != SEVERAL:
        return bool(code != ABSENT and first <= code <= last)
    tail = scratch.tail[column]
    place = lower_bound(batch.code, first, scratch.head[column], tail)
    return bool(place < tail and batch.code[place] <= last)


@inlined
def check_equalities(clusters: Clusters, scratch: Scratch, span: Span, out: Pairs, found: int) -> int:
    """Rows of equalities: a column and a code, as many times as the cluster is wide."""
    equality, codes, size = clusters.equality, scratch.code, np.uint64(2 * clusters.width[span.cluster])
    at = np.uint64(_first_place(clusters, span, 2 * clusters.width[span.cluster]))
    for row in range(span.low, span.high):
        # Unsigned places: of signed ones, Numba asks each time whether they count from the end.
        place, end = at, at + size
        while place < end and codes[np.uint32(equality[place])] == equality[place + np.uint64(1)]:
            place += np.uint64(2)
        if place == end:
            out.subscription[found] = clusters.subscription[row]
            found += 1
        at = end
    return found


@inlined
def check_narrow(clusters: Clusters, scratch: Scratch, span: Span, out: Pairs, found: int) -> int:
    """Rows of narrow equalities: a column and a code in one number, as many times as the cluster is wide.

    One loop for this and the one above would ask for the layout at each test: they take a few nanoseconds a row.
    """
    narrow, held, size = clusters.narrow, scratch.narrow, np.uint64(clusters.width[span.cluster])
    at = np.uint64(_first_place(clusters, span, clusters.width[span.cluster]))
    for row in range(span.low, span.high):
        place, end = at, at + size
        while place < end and held[narrow[place] >> np.uint32(16)] == narrow[place]:
            place += np.uint64(1)
        if place == end:
            out.subscription[found] = clusters.subscription[row]
            found += 1
        at = end
    return found


@inlined
def _first_place(clusters: Clusters, span: Span, size: int) -> int:
    """Where the first row of a span stands, if rows have so many numbers each."""
    return int(clusters.list_start[span.cluster] + (span.low - clusters.row_start[span.cluster]) * size)


@inlined
def check_fixed_of_several(
    batch: Coded, clusters: Clusters, scratch: Scratch, span: Span, out: Pairs, found: int
) -> int:
    """Rows of equalities, narrow or not, where the publication has several codes in some column."""
    narrow, width = clusters.layout[span.cluster] == NARROW, clusters.width[span.cluster]
    at = _first_place(clusters, span, width if narrow else 2 * width)
    for row in range(span.low, span.high):
        left = width
        for _ in range(width):
            if narrow:
                column = np.int64(clusters.narrow[at] >> np.uint32(16))
                code = np.int64(clusters.narrow_base[column]) + np.int64(
                    clusters.narrow[at] & np.uint32(0xFFFF)
                )
                at += 1
            else:
                column, code = np.int64(clusters.equality[at]), np.int64(clusters.equality[at + 1])
                at += 2
            if some_code(batch, scratch, column, code, code):
                left -= 1
        if left == 0:
            out.subscription[found] = clusters.subscription[row]
            found += 1
    return found


@inlined
def narrowed(column: Any, code: int, base: int) -> Any:
    """A column and its code in one number, or NOT_NARROW."""
    distance = np.int64(code) - np.int64(base)
    if base < 0 or distance < 0 or distance > 0xFFFF:
        return np.uint32(NOT_NARROW)
    return np.uint32(np.int64(column) << 16 | distance)


@inlined
def check_lists(
    batch: Coded, clusters: Clusters, scratch: Scratch, span: Span, out: Pairs, found: int
) -> int:
    """Rows with lists of tests of their own, most selective first."""
    shift = clusters.list_start[span.cluster] - clusters.row_start[span.cluster]
    for row in range(span.low, span.high):
        if list_holds(batch, clusters, scratch, shift + row):
            out.subscription[found] = clusters.subscription[row]
            found += 1
    return found


@inlined
def next_merge_match(
    batch: Coded, clusters: Clusters, cluster: int, row: int, high: int, atom: int, last: int
) -> Any:
    """The next row that one of a publication's atoms meets, from a row and an atom on; `high` if there is none.

    Rows and atoms stand in the order of columns and codes: both are walked through once. A row without a column is met.
    """
    codes = clusters.cut_low[cluster] - clusters.row_start[cluster]
    columns = clusters.cut_high[cluster] - clusters.row_start[cluster]
    while row < high:
        column = clusters.bound[np.uint64(columns + row)]
        if column < 0:
            return row, atom
        code = clusters.bound[np.uint64(codes + row)]
        while atom < last and _is_before(batch, atom, column, code):
            atom += 1
        if atom == last:
            return high, atom
        if batch.column[np.uint64(atom)] == np.uint32(column) and batch.code[np.uint64(atom)] == code:
            return row, atom
        row = _skip(batch, clusters, codes, columns, row, high, atom)
    return high, atom


@inlined
def _skip(batch: Coded, clusters: Clusters, codes: int, columns: int, row: int, high: int, atom: int) -> int:
    """Past rows that come before an atom, in longer and longer steps: all clauses may ask for one popular value."""
    step, row = 1, row + 1
    while row + step < high and _is_behind(batch, clusters, codes, columns, row + step, atom):
        row += step
        step += step
    return row


@inlined
def _is_behind(batch: Coded, clusters: Clusters, codes: int, columns: int, row: int, atom: int) -> bool:
    held, column = np.int64(batch.column[np.uint64(atom)]), clusters.bound[np.uint64(columns + row)]
    code = clusters.bound[np.uint64(codes + row)]
    return bool(column < held or (column == held and code < batch.code[np.uint64(atom)]))


@inlined
def _is_before(batch: Coded, atom: int, column: int, code: int) -> bool:
    held = np.int64(batch.column[np.uint64(atom)])
    return bool(held < column or (held == column and batch.code[np.uint64(atom)] < code))


@inlined
def list_holds(batch: Coded, clusters: Clusters, scratch: Scratch, number: int) -> bool:
    """Whether a publication satisfies every test of a list."""
    items = clusters.item
    for at in range(ITEM * clusters.row_test[number], ITEM * clusters.row_test[number + 1], ITEM):
        column, op, low, high = items[at], items[at + 1], items[at + 2], items[at + 3]
        code = scratch.code[column]
        if op == INSIDE and code != SEVERAL:
            if code < low or code > high:  # ABSENT is below every bound
                return False
        elif _some(batch, clusters, scratch, column, op & 3, low, high) == (op >= NEGATED):
            return False
    return True


@inlined
def _some(
    batch: Coded, clusters: Clusters, scratch: Scratch, column: int, op: int, low: int, high: int
) -> bool:
    """Whether some code of a column stands as a test asks."""
    if scratch.code[column] == ABSENT:
        return False
    if op == INSIDE:
        return some_code(batch, scratch, column, low, high)
    codes, head, tail = batch.code, scratch.head[column], scratch.tail[column]
    if op == OUTSIDE:
        return bool(codes[head] < low or codes[tail - 1] > high)
    members, first, last = clusters.set_code, clusters.set_start[low], clusters.set_start[low + 1]
    if tail - head > last - first:
        for member in range(first, last):  # noqa: SIM110 - Numba has no generators here
            if some_code(batch, scratch, column, members[member], members[member]):
                return True
        return False
    for atom in range(head, tail):
        place = lower_bound(members, codes[atom], first, last)
        if place < last and members[place] == codes[atom]:
            return True
    return False


@inlined
def check_columns(
    batch: Coded, clusters: Clusters, scratch: Scratch, span: Span, out: Pairs, found: int
) -> int:
    """Rows of a uniform cluster: its tests are columns of bounds."""
    cluster, low, high = span
    cut = clusters.cut_op[cluster]
    simple = cut == NO_CUT or scratch.code[clusters.cut_column[cluster]] != SEVERAL
    for t in range(clusters.test_start[cluster], clusters.test_start[cluster + 1]):
        code = scratch.code[clusters.test_column[t]]
        if code == SEVERAL:
            simple = False
        elif code < clusters.test_floor[t] or code > clusters.test_ceiling[t]:  # ABSENT is below every floor
            return found
    if not simple:
        return _check_several(batch, clusters, scratch, span, out, found)
    if cut != WITHIN and clusters.test_start[cluster] == clusters.test_start[cluster + 1]:
        for row in range(low, high):
            out.subscription[found + row - low] = clusters.subscription[row]
        return found + high - low
    for row in range(low, high, LANES):
        mask = _compare(clusters, cluster, scratch, row)
        if high - row < LANES:
            mask &= (np.uint64(1) << np.uint64(high - row)) - np.uint64(1)
        for at in range(row, row + LANES, 16):
            if mask & np.uint64(0xFFFF):
                compress(clusters.subscription, at, mask, out.subscription, found)
                found += ones(mask & np.uint64(0xFFFF))
            mask >>= np.uint64(16)
    return found


@inlined
def _compare(clusters: Clusters, cluster: int, scratch: Scratch, row: int) -> Any:
    """Which of the LANES rows from one on pass: every column has one code, so a test is a comparison."""
    bound, shift = clusters.bound, row - clusters.row_start[cluster]
    mask = np.uint64(0xFFFFFFFFFFFFFFFF)
    if clusters.cut_op[cluster] == WITHIN:
        code = scratch.code[clusters.cut_column[cluster]]
        mask = at_least(bound, clusters.cut_high[cluster] + shift, code)
    for t in range(clusters.test_start[cluster], clusters.test_start[cluster + 1]):
        code, op = scratch.code[clusters.test_column[t]], clusters.test_op[t]
        at = clusters.test_low[t] + shift
        if op == AT_MOST:
            mask &= at_least(bound, at, code)
        elif op == EQUAL:
            mask &= equal(bound, at, code)
        else:
            mask &= at_most(bound, at, code)
            if op == WITHIN:
                mask &= at_least(bound, clusters.test_high[t] + shift, code)
    return mask


@inlined
def _check_several(
    batch: Coded, clusters: Clusters, scratch: Scratch, span: Span, out: Pairs, found: int
) -> int:
    """Some column has several codes: each test of a row asks whether one of them satisfies it."""
    cluster, low, high = span
    cut, bound = clusters.cut_op[cluster], clusters.bound
    for row in range(low, high):
        shift = row - clusters.row_start[cluster]
        holds = True
        if cut != NO_CUT:
            first, last = _bounds(
                bound, cut, clusters.cut_low[cluster] + shift, clusters.cut_high[cluster] + shift
            )
            first, last = max(first, clusters.cut_floor[cluster]), min(last, clusters.cut_ceiling[cluster])
            holds = some_code(batch, scratch, clusters.cut_column[cluster], first, last)
        for t in range(clusters.test_start[cluster], clusters.test_start[cluster + 1]):
            if not holds:
                break
            first, last = _bounds(
                bound, clusters.test_op[t], clusters.test_low[t] + shift, clusters.test_high[t] + shift
            )
            first, last = max(first, clusters.test_floor[t]), min(last, clusters.test_ceiling[t])
            holds = some_code(batch, scratch, clusters.test_column[t], first, last)
        if holds:
            out.subscription[found] = clusters.subscription[row]
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
