"""Data structures of matching: clusters of clauses, the codes of a publication, the pairs found."""

from __future__ import annotations

from typing import Any, NamedTuple

from tidings.matching.kernels.compiled import I32, I64, U8, U32

NO_KEY, DIRECT_KEY, SPARSE_KEY, PAIR_KEY = 0, 1, 2, 3
NO_CUT, AT_LEAST, AT_MOST, EQUAL, WITHIN = 0, 1, 2, 3, 4
UNIFORM, EQUALITIES, GENERAL, NARROW, MERGE = 0, 1, 2, 3, 4
INSIDE, OUTSIDE, MEMBER = 0, 1, 2
NEGATED = 4
LAST = (1 << 31) - 1

ABSENT, SEVERAL = -1, -2
"""Instead of a code: the publication has no value in the column, or more than one."""

NOT_NARROW = (1 << 32) - 1
"""Instead of a column and a code in one number."""

VISITS = 64
"""Cluster visits that are prepared together."""

ITEM = 4
"""Numbers per test of a general row: column, operation, low, high (or the number of a set)."""


class Clusters(NamedTuple):
    """The clauses of a segment.

    Arrays named in the singular have an entry per cluster, per test or per row. Numbers of columns and
    clusters are unsigned: for signed indexes Numba checks at each use whether they count from the end.

    visit_start, visit    clusters to visit when a column has a value; `always` are visited in any case
    key_*                 key column, how its codes lead to buckets, and where those begin in `bucket`
    second_*              the other key column, where a pair of codes leads to a bucket
    cut_*                 cut column and operation, the codes it accepts, where its bounds begin in `bound`; for
                          MERGE clusters, where the second keys of rows begin: codes, and columns (-1, for
                          none, comes first)
    test_*                tests of uniform clusters: column, operation, accepted codes, start of the bounds
    row_start             first row of a cluster (one entry more than clusters)
    layout, width         layout of a cluster's rows, and the number of equalities of each (EQUALITIES, NARROW)
    list_start            place of the first row: in `equality`, `narrow` or `row_test` (GENERAL, MERGE)
    equality              rows of EQUALITIES clusters: `width` pairs of a column and a code
    narrow, narrow_base   rows of NARROW clusters: `width` numbers of a 16-bit column and a 16-bit code, which
                          counts from the base of its column
    row_test, item        rows of GENERAL and MERGE clusters: where their tests begin, and the tests
    set_start, set_code   the members of tests with MEMBER
    subscription          by row
    several               by subscription: a number if it has more than one row, else -1; empty if none has
    """

    visit_start: I64
    visit: U32
    always: U32
    key_column: U32
    key_mode: U8
    key_base: I32
    key_start: I64
    key_count: I64
    sparse_start: I64
    sparse_key: I32
    second_column: U32
    second_base: I32
    second_count: I64
    bucket: I32
    cut_column: U32
    cut_op: U8
    cut_floor: I32
    cut_ceiling: I32
    cut_low: I64
    cut_high: I64
    test_start: I64
    test_column: U32
    test_op: U8
    test_floor: I32
    test_ceiling: I32
    test_low: I64
    test_high: I64
    bound: I32
    row_start: I64
    layout: U8
    width: I32
    list_start: I64
    equality: I32
    narrow: U32
    narrow_base: I32
    row_test: I32
    item: I32
    set_start: I64
    set_code: I32
    subscription: I32
    several: I32


class Scratch(NamedTuple):
    """Working memory for one publication.

    code, head, tail             by column: its code (or ABSENT, or SEVERAL), the range of its codes
    narrow                       by column: column and code as in NARROW clusters, or NOT_NARROW
    seen                         by number of a subscription with several rows: the publication that matched it last
    cluster, bucket, low, high   waiting visits: the number of a bucket, then its rows; room for VISITS and
                                 one more for each atom of a publication
    """

    code: I32
    head: I64
    tail: I64
    narrow: U32
    seen: I64
    cluster: U32
    bucket: I64
    low: I64
    high: I64


class Pairs(NamedTuple):
    """Pairs of publication and subscription, filled from the start."""

    publication: Any
    subscription: Any


class Span(NamedTuple):
    """Rows of a cluster: `low` up to but excluding `high`."""

    cluster: Any
    low: Any
    high: Any
