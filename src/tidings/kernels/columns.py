"""Rows of uniform clusters: each test is a column of bounds, compared with a code 64 at a time without branches."""

from __future__ import annotations

from typing import Any

import numpy as np

from tidings.kernels.clusters import (
    AT_LEAST,
    AT_MOST,
    EQUAL,
    NO_CUT,
    SEVERAL,
    WITHIN,
    Clusters,
    Found,
    Scratch,
    Span,
)
from tidings.kernels.codes import LAST_CODE
from tidings.kernels.compiled import inlined
from tidings.kernels.encode import Coded
from tidings.kernels.lists import some_code
from tidings.kernels.vectors import LANES, at_least, at_most, compress, equal, ones


@inlined
def check_columns(
    batch: Coded, clusters: Clusters, scratch: Scratch, span: Span, out: Found, found: int
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
    batch: Coded, clusters: Clusters, scratch: Scratch, span: Span, out: Found, found: int
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
