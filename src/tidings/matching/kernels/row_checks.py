"""Row checks: the tests that remain once an access path has led to a row."""

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
from tidings.matching.kernels.codes import LAST_CODE, lower_bound
from tidings.matching.kernels.compiled import inlined
from tidings.matching.kernels.encode import Coded
from tidings.matching.kernels.vectors import LANES, at_least, at_most, compress, count_ones, equal

# Rows that are checked one by one, up to the first test that fails.


@inlined
def has_code_between(batch: Coded, scratch: Scratch, column: int, first: int, last: int) -> bool:
    """Return whether some code of a column is between `first` and `last`."""
    code = scratch.code[column]
    if code != SEVERAL:
        return bool(code != ABSENT and first <= code <= last)
    tail = scratch.tail[column]
    place = lower_bound(batch.code, first, scratch.head[column], tail)
    return bool(place < tail and batch.code[place] <= last)


@inlined
def check_equalities(clusters: Clusters, scratch: Scratch, span: Span, out: Pairs, found: int) -> int:
    """Append rows of equalities: `width` pairs of a column and a code."""
    equality, codes, size = clusters.equality, scratch.code, np.uint64(2 * clusters.width[span.cluster])
    at = np.uint64(_first_place(clusters, span, 2 * clusters.width[span.cluster]))
    for row in range(span.low, span.high):
        # Unsigned places: for signed ones Numba checks each time whether they count from the end.
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
    """Append rows of narrow equalities: `width` numbers of a column and a code.

    A shared loop with `check_equalities` would test the layout for each row, and a row takes only a few
    nanoseconds.
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
    """Return the place of the first row of a span, with `size` numbers per row."""
    return int(clusters.list_start[span.cluster] + (span.low - clusters.row_start[span.cluster]) * size)


@inlined
def check_equalities_of_several(
    batch: Coded, clusters: Clusters, scratch: Scratch, span: Span, out: Pairs, found: int
) -> int:
    """Append rows of equalities, narrow or not, of a publication with several codes in some column."""
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
            if has_code_between(batch, scratch, column, code, code):
                left -= 1
        if left == 0:
            out.subscription[found] = clusters.subscription[row]
            found += 1
    return found


@inlined
def pack_narrow(column: Any, code: int, base: int) -> Any:
    """Return a column and its code as one number, or NOT_NARROW."""
    distance = np.int64(code) - np.int64(base)
    if base < 0 or distance < 0 or distance > 0xFFFF:
        return np.uint32(NOT_NARROW)
    return np.uint32(np.int64(column) << 16 | distance)


@inlined
def check_lists(
    batch: Coded, clusters: Clusters, scratch: Scratch, span: Span, out: Pairs, found: int
) -> int:
    """Append rows with test lists of their own, most selective test first."""
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
    """Return the next row, from a row and an atom on, whose second key some atom has; `high` if there is
    none.

    Rows and atoms are both sorted by column and code: each is traversed once. A row without a second key
    always matches.
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
        row = _gallop(batch, clusters, codes, columns, row, high, atom)
    return high, atom


@inlined
def _gallop(
    batch: Coded, clusters: Clusters, codes: int, columns: int, row: int, high: int, atom: int
) -> int:
    """Skip rows before an atom, in doubling steps: all clauses may test for one popular value."""
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
    """Return whether a publication satisfies every test of a list."""
    items = clusters.item
    for at in range(ITEM * clusters.row_test[number], ITEM * clusters.row_test[number + 1], ITEM):
        column, op, low, high = items[at], items[at + 1], items[at + 2], items[at + 3]
        code = scratch.code[column]
        if op == INSIDE and code != SEVERAL:
            if code < low or code > high:  # ABSENT is below every bound
                return False
        elif _some_code_passes(batch, clusters, scratch, column, op & 3, low, high) == (op >= NEGATED):
            return False
    return True


@inlined
def _some_code_passes(
    batch: Coded, clusters: Clusters, scratch: Scratch, column: int, op: int, low: int, high: int
) -> bool:
    """Return whether some code of a column passes a test."""
    if scratch.code[column] == ABSENT:
        return False
    if op == INSIDE:
        return has_code_between(batch, scratch, column, low, high)
    codes, head, tail = batch.code, scratch.head[column], scratch.tail[column]
    if op == OUTSIDE:
        return bool(codes[head] < low or codes[tail - 1] > high)
    members, first, last = clusters.set_code, clusters.set_start[low], clusters.set_start[low + 1]
    if tail - head > last - first:
        for member in range(first, last):
            if has_code_between(batch, scratch, column, members[member], members[member]):
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
    """Append rows of a uniform cluster, whose tests are columns of bounds, compared 64 at a time without branches."""
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
                found += count_ones(mask & np.uint64(0xFFFF))
            mask >>= np.uint64(16)
    return found


@inlined
def _compare(clusters: Clusters, cluster: int, scratch: Scratch, row: int) -> Any:
    """Return which of LANES rows pass, if every column has one code: then each test is one comparison."""
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
    """Append rows where some column has several codes: each test asks whether one of them passes."""
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
            holds = has_code_between(batch, scratch, clusters.cut_column[cluster], first, last)
        for t in range(clusters.test_start[cluster], clusters.test_start[cluster + 1]):
            if not holds:
                break
            first, last = _bounds(
                bound, clusters.test_op[t], clusters.test_low[t] + shift, clusters.test_high[t] + shift
            )
            first, last = max(first, clusters.test_floor[t]), min(last, clusters.test_ceiling[t])
            holds = has_code_between(batch, scratch, clusters.test_column[t], first, last)
        if holds:
            out.subscription[found] = clusters.subscription[row]
            found += 1
    return found


@inlined
def _bounds(bound: Any, op: int, low: int, high: int) -> Any:
    """Return the codes between which a row's test holds; `low` and `high` are the places of its bounds."""
    if op == AT_LEAST:
        return np.int64(bound[low]), np.int64(LAST_CODE)
    if op == AT_MOST:
        return np.int64(0), np.int64(bound[low])
    if op == EQUAL:
        return np.int64(bound[low]), np.int64(bound[low])
    return np.int64(bound[low]), np.int64(bound[high])
