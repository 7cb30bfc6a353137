"""What matching is expected to cost: the figures by which the builder chooses between layouts.

Nanoseconds on one core of a server processor, rounded by hand from how long the layouts took for S, E and H when they
were written (decision 0010); only their ratios matter.
What a publication looks like is not known when a segment is built. Its values are thought to be spread as the constants
are, and it is thought to have `ATTRIBUTES` attributes.
"""

from __future__ import annotations

from dataclasses import dataclass

VISIT = 12.0
"""Coming to a cluster and finding its bucket."""

SEARCH = 40.0
"""Narrowing a bucket by its cut, in memory that was not touched lately: one cluster of many."""

COMPARE = 0.12
"""A row's bound in a column, compared together with 63 others."""

CHECK = 3.0
"""A test of a row that has a list of its own."""

SIFT = 0.03
"""A row in bitmaps, tiles that are passed by included."""

CANDIDATE = 60.0
"""A row that bitmaps leave over, checked by its list."""

ATTRIBUTES = 20


@dataclass(frozen=True, slots=True)
class Estimate:
    """For one publication: how many rows are looked at, and nanoseconds."""

    rows: float
    cost: float


def columns_estimate(rows: int, key: float, cut: float, tests: int) -> Estimate:
    """Rows of one shape in columns: those of a bucket (a share `key`), cut to a share `cut`."""
    looked_at = rows * key * cut
    return Estimate(looked_at, VISIT + looked_at * max(1, tests) * COMPARE)


def lists_estimate(rows: int, key: float, tried: float, present: float = 1.0) -> Estimate:
    """Rows with tests of their own, of which a share `key` is looked at if the publication has the attribute.

    `tried` is how many tests of a row are tried before one fails.
    """
    looked_at = rows * key * present
    return Estimate(looked_at, VISIT * present + looked_at * max(1.0, tried) * CHECK)


def tiles_estimate(rows: int, matching: float) -> Estimate:
    """Rows in bitmaps, of which a share `matching` satisfies all tests."""
    return Estimate(rows * matching, rows * (SIFT + matching * CANDIDATE))


def present(columns: int) -> float:
    """How likely a publication is thought to have one of so many attributes."""
    return min(1.0, ATTRIBUTES / max(1, columns))
