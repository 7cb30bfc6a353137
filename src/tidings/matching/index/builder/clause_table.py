"""Clause table: all tests of all clauses as arrays of codes, clause after clause."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from tidings.matching.array_functions import list_index, starts_of
from tidings.matching.index.builder.codecs import BOUNDS, Codes
from tidings.matching.kernels import clusters as kernel
from tidings.values import Kind

Numbers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
Bytes = npt.NDArray[np.uint8]
Shares = npt.NDArray[np.float32]
Doubles = npt.NDArray[np.float64]

ANY_KIND = 7
"""Kind in the form of a test that codes of all kinds can satisfy."""

ODD_FORM = 0
"""Form of a test that is not a comparison with bounds: negations, `in`, `!=`, `exists`."""

MOST_MEMBERS = 16
"""An `in` with more members is not expanded: each member would need a copy of the clause."""

_TEST_FIELDS = ("column", "form", "op", "low", "high", "share")
_CLAUSE_FIELDS = ("subscription", "twig", "signature", "plain")


def make_form(op: int, kind: int) -> int:
    """Return the form of a comparison with bounds: its operation and the kind of values that can satisfy it."""
    return op << 3 | kind


def op_of(form: int) -> int:
    return form >> 3


def form_bounds(form: int) -> tuple[int, int]:
    """Return the first and the last code that can satisfy a test of this form."""
    kind = form & 7
    return (0, kernel.LAST) if kind == ANY_KIND else BOUNDS[Kind(kind)]


@dataclass(frozen=True)
class ClauseTable:
    """Tests of many clauses; those of clause i are starts[i] to starts[i + 1], ordered by column and form.

    A code satisfies a test if it is between `low` and `high`; for MEMBER, if it is in
    set_code[set_start[low]:set_start[low + 1]]. `share` estimates how often a test holds, assuming that
    values are distributed like the constants. `twig` is the number of the twig to check after the tests; -1
    for clauses about events. `signature` is equal for clauses whose tests have the same columns and forms.
    `plain` is set if all tests of a clause are comparisons with bounds.
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
        """The clause of each test."""
        return np.repeat(np.arange(len(self)), np.diff(self.starts))

    @cached_property
    def is_equality(self) -> Flags:
        equal: Flags = (self.form >> 3) == kernel.EQUAL
        return equal

    @cached_property
    def equalities(self) -> Numbers:
        """The number of equalities of each clause."""
        before = np.concatenate(([0], np.cumsum(self.is_equality)))
        counts: Numbers = before[self.starts[1:]] - before[self.starts[:-1]]
        return counts

    @cached_property
    def lengths(self) -> Numbers:
        """The number of tests of each clause."""
        return np.diff(self.starts)

    @cached_property
    def match_probability(self) -> Doubles:
        """The estimated probability that each clause matches, assuming that its tests are independent."""
        before = np.concatenate(([0.0], np.cumsum(np.log(np.maximum(self.share, 1e-9), dtype=np.float64))))
        product: Doubles = before[self.starts[1:]] - before[self.starts[:-1]]
        return np.exp(product)

    @cached_property
    def expected_tests(self) -> Doubles:
        """The expected number of tests of each clause that are evaluated before one fails or all have held."""
        probability = self.match_probability
        mean = probability ** (1.0 / np.maximum(1, self.lengths))
        expected: Doubles = np.where(
            mean < 1.0, (1.0 - probability) / np.maximum(1.0 - mean, 1e-9), self.lengths
        )
        return expected

    def tests_of(self, rows: Numbers) -> tuple[Numbers, Numbers]:
        """Return the tests of these clauses, and where the tests of each clause start among them."""
        return list_index(self.starts, rows)

    def test_matrix(self, rows: Numbers) -> Numbers:
        """Return the tests of these clauses, one clause per row: all must have equally many tests."""
        count = int(self.starts[rows[0] + 1] - self.starts[rows[0]])
        return self.starts[rows][:, None] + np.arange(count)


def expand_in(clauses: ClauseTable) -> ClauseTable:
    """Copy clauses once per member of an `in`, if that is the best way to find them.

    `symbol in ('A', 'B') and ...` is best found as two clauses, one for each symbol.
    """
    chosen = _tests_to_expand(clauses)
    if not len(chosen):
        return clauses
    owner, sets = clauses.owner[chosen], clauses.low[chosen].astype(np.int64)
    sizes = np.diff(clauses.set_start)[sets]
    copies = np.ones(len(clauses), np.int64)
    copies[owner] = sizes
    copied = _take_clauses(clauses, np.repeat(np.arange(len(clauses)), copies))
    copy, _ = list_index(starts_of(copies), owner)
    places = copied.starts[copy] + np.repeat(chosen - clauses.starts[owner], sizes)
    members, _ = list_index(clauses.set_start, sets)
    copied.low[places] = copied.high[places] = clauses.set_code[members]
    copied.op[places], copied.form[places] = kernel.INSIDE, make_form(kernel.EQUAL, ANY_KIND)
    copied.share[places] /= np.repeat(sizes, sizes)
    return _sort_tests(copied)


def _tests_to_expand(clauses: ClauseTable) -> Numbers:
    """Return each `in` with few members that holds less often than every equality of its clause."""
    is_set = clauses.op == kernel.MEMBER
    if not is_set.any():
        return np.empty(0, np.int64)
    small = np.zeros(len(is_set), bool)
    small[is_set] = np.diff(clauses.set_start)[clauses.low[is_set]] <= MOST_MEMBERS
    shares = np.where(clauses.is_equality | small, clauses.share, np.inf).astype(np.float32)
    least = minimum_of_lists(shares, clauses.starts)
    equality_shares = np.where(clauses.is_equality, shares, np.inf).astype(np.float32)
    least_equality = minimum_of_lists(equality_shares, clauses.starts)
    owner = clauses.owner
    best = np.flatnonzero(small & (shares == least[owner]) & (least < least_equality)[owner])
    _, first = np.unique(owner[best], return_index=True)
    return best[first]


def _take_clauses(clauses: ClauseTable, rows: Numbers) -> ClauseTable:
    tests, starts = clauses.tests_of(rows)
    by_test = {name: getattr(clauses, name)[tests] for name in _TEST_FIELDS}
    by_clause = {name: getattr(clauses, name)[rows] for name in _CLAUSE_FIELDS}
    return replace(clauses, starts=starts, **by_test, **by_clause)


def _sort_tests(clauses: ClauseTable) -> ClauseTable:
    """Restore the order of the tests of each clause, and compute the signatures again."""
    owner = clauses.owner
    order = np.lexsort((clauses.op, clauses.form, clauses.column, owner))
    by_test = {name: getattr(clauses, name)[order] for name in _TEST_FIELDS}
    signature = np.zeros(len(clauses), np.uint64)
    np.add.at(signature, owner, hash_test(by_test["column"], by_test["form"]))
    odd = np.bincount(owner, weights=by_test["form"] == ODD_FORM, minlength=len(clauses))
    return replace(clauses, **by_test, signature=signature, plain=(odd == 0) & (np.diff(clauses.starts) > 0))


def hash_test(column: Any, form: Any) -> Any:
    """Hash a column and a form to 64 bits, so that sums of hashes tell sets of tests apart.

    The steps are MurmurHash3's finalizer. Sums can collide: code that groups clauses by signature compares
    them.
    """
    with np.errstate(over="ignore"):
        bits = np.asarray(column).astype(np.uint64) << np.uint64(8) | np.asarray(form).astype(np.uint64)
        bits = bits + np.uint64(0x9E3779B97F4A7C15)
        for factor in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53):
            bits = (bits ^ bits >> np.uint64(33)) * np.uint64(factor)
        return bits ^ bits >> np.uint64(33)


def minimum_of_lists(values: Shares, starts: Numbers) -> Shares:
    """Return the minimum of each list; infinity for an empty one."""
    least = np.full(len(starts) - 1, np.inf, np.float32)
    filled = np.flatnonzero(np.diff(starts))
    if len(filled):
        least[filled] = np.minimum.reduceat(values, starts[filled])
    return least
