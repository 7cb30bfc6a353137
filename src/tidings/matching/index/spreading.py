"""Spreading: `symbol in ('A', 'B') and ...` is best reached as two clauses, one for each symbol."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tidings.kernels import clusters as kernel
from tidings.matching.access import MANY_MEMBERS
from tidings.matching.index.arrays import starts_of
from tidings.matching.index.lowered import (
    ANY_KIND,
    ODD_FORM,
    Clauses,
    Numbers,
    form_of,
    least_of,
    list_index,
    mark_of,
)


def spread_members(clauses: Clauses) -> Clauses:
    """A clause best reached through an `in` with few members becomes one clause for each member."""
    chosen = _best_members(clauses)
    if not len(chosen):
        return clauses
    owner, sets = clauses.owner[chosen], clauses.low[chosen].astype(np.int64)
    sizes = np.diff(clauses.set_start)[sets]
    copies = np.ones(len(clauses), np.int64)
    copies[owner] = sizes
    copied = _taken(clauses, np.repeat(np.arange(len(clauses)), copies))
    which, _ = list_index(starts_of(copies), owner)
    places = copied.starts[which] + np.repeat(chosen - clauses.starts[owner], sizes)
    members, _ = list_index(clauses.set_start, sets)
    copied.low[places] = copied.high[places] = clauses.set_code[members]
    copied.op[places], copied.form[places] = kernel.INSIDE, form_of(kernel.EQUAL, ANY_KIND)
    copied.share[places] /= np.repeat(sizes, sizes)
    return _described(copied)


def _best_members(clauses: Clauses) -> Numbers:
    """The tests to spread: an `in` with few members that holds less often than any equality of its clause."""
    is_set = clauses.op == kernel.MEMBER
    if not is_set.any():
        return np.empty(0, np.int64)
    small = np.zeros(len(is_set), bool)
    small[is_set] = np.diff(clauses.set_start)[clauses.low[is_set]] <= MANY_MEMBERS
    shares = np.where(clauses.is_equality | small, clauses.share, np.inf).astype(np.float32)
    least = least_of(shares, clauses.starts)
    at_equality = least_of(np.where(clauses.is_equality, shares, np.inf).astype(np.float32), clauses.starts)
    owner = clauses.owner
    best = np.flatnonzero(small & (shares == least[owner]) & (least < at_equality)[owner])
    _, first = np.unique(owner[best], return_index=True)
    return best[first]


def _taken(clauses: Clauses, rows: Numbers) -> Clauses:
    tests, starts = clauses.tests_of(rows)
    named = {name: getattr(clauses, name)[tests] for name in ("column", "form", "op", "low", "high", "share")}
    by_clause = {
        name: getattr(clauses, name)[rows] for name in ("subscription", "twig", "signature", "plain")
    }
    return replace(clauses, starts=starts, **named, **by_clause)


def _described(clauses: Clauses) -> Clauses:
    """The same clauses with their tests in order and their signatures computed anew."""
    owner = clauses.owner
    order = np.lexsort((clauses.op, clauses.form, clauses.column, owner))
    named = {name: getattr(clauses, name)[order] for name in ("column", "form", "op", "low", "high", "share")}
    signature = np.zeros(len(clauses), np.uint64)
    np.add.at(signature, owner, mark_of(named["column"], named["form"]))
    odd = np.bincount(owner, weights=named["form"] == ODD_FORM, minlength=len(clauses))
    return replace(clauses, **named, signature=signature, plain=(odd == 0) & (np.diff(clauses.starts) > 0))
