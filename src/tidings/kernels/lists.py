"""Rows that are looked at one by one: each has its own tests, and the first that fails ends it."""

from __future__ import annotations

from typing import Any

import numpy as np

from tidings.kernels.clusters import (
    ABSENT,
    INSIDE,
    ITEM,
    NEGATED,
    NOT_NARROW,
    OUTSIDE,
    SEVERAL,
    Clusters,
    Found,
    Scratch,
)
from tidings.kernels.compiled import inlined
from tidings.kernels.encode import Coded
from tidings.kernels.search import lower_bound


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
def check_equalities(
    batch: Coded,
    clusters: Clusters,
    scratch: Scratch,
    cluster: int,
    low: int,
    high: int,
    out: Found,
    found: int,
) -> int:
    """Rows of equalities: a column and a code, as many times as the cluster is wide."""
    equality, codes, size = clusters.equality, scratch.code, np.uint64(2 * clusters.width[cluster])
    at = np.uint64(
        clusters.list_start[cluster] + (low - clusters.row_start[cluster]) * 2 * clusters.width[cluster]
    )
    for row in range(low, high):
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
def check_equalities_of_several(
    batch: Coded,
    clusters: Clusters,
    scratch: Scratch,
    cluster: int,
    low: int,
    high: int,
    out: Found,
    found: int,
) -> int:
    """The same where the publication has several codes in some column."""
    equality, size = clusters.equality, 2 * clusters.width[cluster]
    at = clusters.list_start[cluster] + (low - clusters.row_start[cluster]) * size
    for row in range(low, high):
        place, end = at, at + size
        while place < end and some_code(
            batch, scratch, equality[place], equality[place + 1], equality[place + 1]
        ):
            place += 2
        if place == end:
            out.subscription[found] = clusters.subscription[row]
            found += 1
        at = end
    return found


@inlined
def narrowed(column: Any, code: int, base: int) -> Any:
    """A column and its code in one number, or NOT_NARROW."""
    distance = np.int64(code) - np.int64(base)
    if base < 0 or distance < 0 or distance > 0xFFFF:
        return np.uint32(NOT_NARROW)
    return np.uint32(np.int64(column) << 16 | distance)


@inlined
def check_narrow(
    clusters: Clusters, scratch: Scratch, cluster: int, low: int, high: int, out: Found, found: int
) -> int:
    """Rows of narrow equalities: a column and a code in one number, as many times as the cluster is wide."""
    narrow, held, size = clusters.narrow, scratch.narrow, np.uint64(clusters.width[cluster])
    at = np.uint64(
        clusters.list_start[cluster] + (low - clusters.row_start[cluster]) * clusters.width[cluster]
    )
    for row in range(low, high):
        place, end = at, at + size
        while place < end and held[narrow[place] >> np.uint32(16)] == narrow[place]:
            place += np.uint64(1)
        if place == end:
            out.subscription[found] = clusters.subscription[row]
            found += 1
        at = end
    return found


@inlined
def check_narrow_of_several(
    batch: Coded,
    clusters: Clusters,
    scratch: Scratch,
    cluster: int,
    low: int,
    high: int,
    out: Found,
    found: int,
) -> int:
    """The same where the publication has several codes in some column."""
    size = clusters.width[cluster]
    at = clusters.list_start[cluster] + (low - clusters.row_start[cluster]) * size
    for row in range(low, high):
        place, end = at, at + size
        while place < end:
            column = clusters.narrow[place] >> np.uint32(16)
            code = np.int64(clusters.narrow_base[column]) + np.int64(
                clusters.narrow[place] & np.uint32(0xFFFF)
            )
            if not some_code(batch, scratch, column, code, code):
                break
            place += 1
        if place == end:
            out.subscription[found] = clusters.subscription[row]
            found += 1
        at = end
    return found


@inlined
def check_lists(
    batch: Coded,
    clusters: Clusters,
    scratch: Scratch,
    cluster: int,
    low: int,
    high: int,
    out: Found,
    found: int,
) -> int:
    """Rows with lists of tests of their own, most selective first."""
    shift = clusters.list_start[cluster] - clusters.row_start[cluster]
    for row in range(low, high):
        if list_holds(batch, clusters, scratch, shift + row):
            out.subscription[found] = clusters.subscription[row]
            found += 1
    return found


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
