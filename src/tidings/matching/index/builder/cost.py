"""Cost model: estimates of matching time by which the segment builder chooses between layouts.

The constants are nanoseconds on one core of a server processor, rounded by hand from measurements of the
layouts on the workloads S, E and H (decision 0010); only their ratios matter. Publications are unknown when a
segment is built. The estimates assume that values are distributed like the constants, and that a publication
has `ATTRIBUTES` attributes.
"""

from __future__ import annotations

from dataclasses import dataclass

VISIT = 12.0
"""Visiting a cluster and finding its bucket."""

SEARCH = 40.0
"""Narrowing a bucket by its cut, in memory that is not in the cache: one cluster of many."""

COMPARE = 0.12
"""Comparing one bound of a row in a column, together with 63 others."""

CHECK = 3.0
"""Evaluating one test of a row that has its own list of tests."""

BITMAP_ROW = 0.03
"""Filtering one row by bitmaps, tiles that are skipped included."""

CANDIDATE = 60.0
"""Checking the list of tests of a row that the bitmaps leave over."""

ATTRIBUTES = 20


@dataclass(frozen=True, slots=True)
class Estimate:
    """Expected work for one publication: rows looked at, and nanoseconds."""

    rows: float
    cost: float


def columns_estimate(rows: int, key: float, cut: float, tests: int) -> Estimate:
    """Estimate rows of one shape in columns; a share `key` of them is in the bucket, of that `cut` remains."""
    looked_at = rows * key * cut
    return Estimate(looked_at, VISIT + looked_at * max(1, tests) * COMPARE)


def lists_estimate(rows: int, key: float, tests: float, present: float = 1.0) -> Estimate:
    """Estimate rows with their own lists of tests; a share `key` is looked at if the attribute is present.

    `tests` is the expected number of tests that are evaluated before one fails.
    """
    looked_at = rows * key * present
    return Estimate(looked_at, VISIT * present + looked_at * max(1.0, tests) * CHECK)


def tiles_estimate(rows: int, matching: float) -> Estimate:
    """Estimate rows in bitmaps; a share `matching` of them satisfies all tests."""
    return Estimate(rows * matching, rows * (BITMAP_ROW + matching * CANDIDATE))


def presence_probability(columns: int) -> float:
    """Return the probability that a publication has a given attribute, by the number of attributes."""
    return min(1.0, ATTRIBUTES / max(1, columns))
