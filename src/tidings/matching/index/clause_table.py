"""Clauses as the builder sees them: all tests of all clauses in one table of codes, clause after clause."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from tidings.matching.index.arrays import starts_of
from tidings.matching.index.codecs import BOUNDS, Codes
from tidings.matching.kernels import clusters as kernel
from tidings.values import Kind

Numbers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
Bytes = npt.NDArray[np.uint8]
Shares = npt.NDArray[np.float32]
Doubles = npt.NDArray[np.float64]

ANY_KIND = 7
"""In a form: the test is open to codes of all kinds."""

ODD_FORM = 0
"""The form of a test that cannot be a column of bounds: negations, `in`, `!=`, `exists`."""


def form_of(op: int, kind: int) -> int:
    """A test that is a comparison with bounds: what is compared, and which kind of values can satisfy it."""
    return op << 3 | kind


def op_of(form: int) -> int:
    return form >> 3


def open_codes(form: int) -> tuple[int, int]:
    """The first and the last code that can satisfy a test of a form."""
    kind = form & 7
    return (0, kernel.LAST) if kind == ANY_KIND else BOUNDS[Kind(kind)]


@dataclass(frozen=True)
class ClauseTable:
    """The tests of clause i are starts[i] to starts[i + 1], in the order of their columns and forms.

    A code satisfies a test when it is between `low` and `high`; for MEMBER, when it is among
    set_code[set_start[low]:set_start[low + 1]]. `share` estimates how often a test holds, from the constants alone:
    values are thought to be spread as they are.
    `twig` is the number of the twig to be checked after the tests; -1 for clauses about events.
    `signature` is the same for clauses whose tests have the same columns and forms, and `plain` says that all of them
    are comparisons with bounds.
    """

    subscription: npt.NDArray[np.int32]
    twig: npt.NDArray[np.int32]
    starts: Numbers
    column: npt.NDArray[np.int32]
    form: Bytes
    op: Bytes
    low: Codes
    high: Codes
    share: Shares
    set_start: Numbers
    set_code: Codes
    signature: npt.NDArray[np.uint64]
    plain: Flags

    def __len__(self) -> int:
        return len(self.subscription)

    @cached_property
    def owner(self) -> Numbers:
        """By test, the clause it belongs to."""
        return np.repeat(np.arange(len(self)), np.diff(self.starts))

    @cached_property
    def is_equality(self) -> Flags:
        equal: Flags = (self.form >> 3) == kernel.EQUAL
        return equal

    @cached_property
    def equalities(self) -> Numbers:
        """How many equalities each clause has."""
        before = np.concatenate(([0], np.cumsum(self.is_equality)))
        counts: Numbers = before[self.starts[1:]] - before[self.starts[:-1]]
        return counts

    @cached_property
    def lengths(self) -> Numbers:
        """How many tests each clause has."""
        return np.diff(self.starts)

    @cached_property
    def matching(self) -> Doubles:
        """How likely each clause is to match, if its tests have nothing to do with each other."""
        before = np.concatenate(([0.0], np.cumsum(np.log(np.maximum(self.share, 1e-9), dtype=np.float64))))
        together: Doubles = before[self.starts[1:]] - before[self.starts[:-1]]
        return np.exp(together)

    @cached_property
    def tried(self) -> Doubles:
        """How many of a clause's tests are tried before one fails or all have held."""
        mean = self.matching ** (1.0 / np.maximum(1, self.lengths))
        tried: Doubles = np.where(
            mean < 1.0, (1.0 - self.matching) / np.maximum(1.0 - mean, 1e-9), self.lengths
        )
        return tried

    def tests_of(self, rows: Numbers) -> tuple[Numbers, Numbers]:
        """Where the tests of these clauses stand, and where each clause's begin in that order."""
        return list_index(self.starts, rows)

    def matrix(self, rows: Numbers) -> Numbers:
        """Where the tests of these clauses stand, a row each: they must have equally many."""
        count = int(self.starts[rows[0] + 1] - self.starts[rows[0]])
        return self.starts[rows][:, None] + np.arange(count)


def mark_of(column: Any, form: Any) -> Any:
    """64 bits for a column and a form, spread so that sums of marks tell sets of tests apart.

    (The finishing steps of MurmurHash3.) A sum alone is not trusted: whoever groups clauses by signature compares them.
    """
    with np.errstate(over="ignore"):
        mark = np.asarray(column).astype(np.uint64) << np.uint64(8) | np.asarray(form).astype(np.uint64)
        mark = mark + np.uint64(0x9E3779B97F4A7C15)
        for factor in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53):
            mark = (mark ^ mark >> np.uint64(33)) * np.uint64(factor)
        return mark ^ mark >> np.uint64(33)


def least_of(values: Shares, starts: Numbers) -> Shares:
    """The least value of each list; infinite for an empty one."""
    least = np.full(len(starts) - 1, np.inf, np.float32)
    filled = np.flatnonzero(np.diff(starts))
    if len(filled):
        least[filled] = np.minimum.reduceat(values, starts[filled])
    return least


def list_index(offsets: Numbers, rows: Numbers) -> tuple[Numbers, Numbers]:
    """Where the items of these rows' lists stand, and where each list begins in that order."""
    counts = offsets[rows + 1] - offsets[rows]
    starts = starts_of(counts)
    index = np.arange(starts[-1]) + np.repeat(offsets[rows] - starts[:-1], counts)
    return index, starts
