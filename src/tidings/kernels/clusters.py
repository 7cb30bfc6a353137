"""What matching reads and writes: clusters of clauses, a publication's codes, the pairs that were found."""

from __future__ import annotations

from typing import Any, NamedTuple

NO_KEY, DIRECT_KEY, SPARSE_KEY, PAIR_KEY = 0, 1, 2, 3
NO_CUT, AT_LEAST, AT_MOST, EQUAL, WITHIN = 0, 1, 2, 3, 4
UNIFORM, EQUALITIES, GENERAL = 0, 1, 2
INSIDE, OUTSIDE, MEMBER = 0, 1, 2
NEGATED = 4
LAST = (1 << 31) - 1

ABSENT, SEVERAL = -1, -2
"""In place of a code: the publication has no value there, or more than one."""

VISITS = 64
"""So many visits are prepared together."""

ITEM = 4
"""The numbers of a general row's test: column, operation, low, high (or the number of a set)."""


class Clusters(NamedTuple):
    """A segment's clauses. Numbers of columns and clusters are unsigned: of signed ones, Numba asks whenever they are
    used whether they count from the end.

    Arrays named in the singular have an entry per cluster, per test or per row of one.

    visit_start, visit    clusters to look at when a column has a value; `always` are looked at in any case
    key_*                 key column, how its codes lead to buckets, and where those stand in `bucket`
    second_*              the other key column where a pair of codes leads to a bucket
    cut_*                 cut column and operation, the codes it is open to, where its bounds stand in `bound`
    test_*                tests of uniform clusters: column, operation, open codes, where the bounds stand in `bound`
    row_start             first row of a cluster (one entry more than clusters)
    layout, width         how the rows of a cluster stand, and how many equalities each has (EQUALITIES)
    list_start            where the first row stands: in `equality` (EQUALITIES) or in `row_test` (GENERAL)
    equality              rows of EQUALITIES clusters: `width` times a column and a code
    row_test, item        rows of GENERAL clusters: where each one's tests begin, and the tests, ITEM numbers each
    set_start, set_code   the members of tests with MEMBER
    subscription          by row
    several               by subscription: a number for those that have more than one row, else -1; empty if none has
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
    second_column: Any
    second_base: Any
    second_count: Any
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
    layout: Any
    width: Any
    list_start: Any
    equality: Any
    row_test: Any
    item: Any
    set_start: Any
    set_code: Any
    subscription: Any
    several: Any


class Scratch(NamedTuple):
    """Room for one publication.

    code, head, tail             by column: its code (or ABSENT, or SEVERAL), where its codes begin and end in the atoms
    seen                         by number of a subscription with several rows: the publication that matched it last
    cluster, bucket, low, high   visits that are waiting: the number of a bucket, then its rows; there is room for
                                 VISITS and one for each atom of a publication more
    """

    code: Any
    head: Any
    tail: Any
    seen: Any
    cluster: Any
    bucket: Any
    low: Any
    high: Any


class Found(NamedTuple):
    """Pairs, as far as they are filled."""

    publication: Any
    subscription: Any
