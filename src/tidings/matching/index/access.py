"""Access: the one test through which a clause is reached.

The rest of a clause is verified only after its access test held, so it should be the test that holds least often. An
equality beats a range, and among equalities the column with the most different constants wins: a value picks one of
many buckets. Statistics decide, never the order of the text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from tidings.atoms import Aspect, Column, PublicationKind
from tidings.documents.linear_paths import ANYWHERE
from tidings.graphs.gql.gql_tree import show_term
from tidings.graphs.keys import ANY
from tidings.graphs.model import iri
from tidings.matching.compiler.plan import Plan, Relation, TestShape
from tidings.matching.index.arrays import starts_of
from tidings.matching.index.clause_table import (
    ANY_KIND,
    ODD_FORM,
    ClauseTable,
    Numbers,
    form_of,
    least_of,
    list_index,
    mark_of,
)
from tidings.matching.kernels import clusters as kernel

MANY_MEMBERS = 16
"""An `in` with more members on average is no key: each member would need a copy of the clause."""

_RANGES = (Relation.BETWEEN, Relation.LT, Relation.LE, Relation.GT, Relation.GE)


def key_of(
    shape: Sequence[TestShape], distinct: Mapping[Column, int], members: Mapping[int, float]
) -> int | None:
    """The number of the test that serves as key, or None: the best equality, or `in` with few members.

    `distinct` has the number of different constants of each column, `members` the mean size of each test's list.
    """
    choices = [
        (members.get(i, 1.0) / max(1, distinct.get(test.column, 1)), i)
        for i, test in enumerate(shape)
        if not test.negated
        and (
            test.relation == Relation.EQ
            or (test.relation == Relation.IN and members.get(i, 1.0) <= MANY_MEMBERS)
        )
    ]
    return min(choices)[1] if choices else None


def reached_through(plan: Plan, distinct: Mapping[Column, int] | None = None) -> str:
    """The path, or paths, through which a plan's clauses are reached, for people to read: as the index chooses them."""
    paths: list[str] = []
    for clause in plan.clauses:
        path = _path([test.shape for test in clause], distinct or {})
        if path not in paths:
            paths.append(path)
    return ", ".join(paths)


def _path(shape: Sequence[TestShape], distinct: Mapping[Column, int]) -> str:
    key = key_of(shape, distinct, {})
    if key is not None:
        return _shown(shape[key].column)
    asking = [test for test in shape if not test.negated]
    ranges = [test.column for test in asking if test.relation in _RANGES]
    present = [test.column for test in asking]  # `exists`, `!=` and long lists need some value there
    return _shown(min(ranges or present)) if present else "every publication"


def _shown(column: Column) -> str:
    """A path as people write it; of graphs, the property whose edges are looked at."""
    if column.of is not PublicationKind.GRAPH:
        return column.path
    property = column.path.partition(" ")[2]
    return "edges of all properties" if property == ANY else show_term(iri(property))


def is_plain(test: TestShape) -> bool:
    """Whether a test can stand in a uniform cluster: a comparison that some value must satisfy."""
    return not test.negated and (test.relation == Relation.EQ or test.relation in _RANGES)


def is_derived(column: Column) -> bool:
    """Whether a publication may well have many codes here: text patterns, order aspects, all values of a document."""
    derived = Aspect.INSTANT < column.aspect < Aspect.NUMBER
    return derived or column.path == ANYWHERE


# Spreading: `symbol in ('A', 'B') and ...` is best reached as two clauses, one for each symbol.


def expand_in(clauses: ClauseTable) -> ClauseTable:
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


def _best_members(clauses: ClauseTable) -> Numbers:
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


def _taken(clauses: ClauseTable, rows: Numbers) -> ClauseTable:
    tests, starts = clauses.tests_of(rows)
    named = {name: getattr(clauses, name)[tests] for name in ("column", "form", "op", "low", "high", "share")}
    by_clause = {
        name: getattr(clauses, name)[rows] for name in ("subscription", "twig", "signature", "plain")
    }
    return replace(clauses, starts=starts, **named, **by_clause)


def _described(clauses: ClauseTable) -> ClauseTable:
    """The same clauses with their tests in order and their signatures computed anew."""
    owner = clauses.owner
    order = np.lexsort((clauses.op, clauses.form, clauses.column, owner))
    named = {name: getattr(clauses, name)[order] for name in ("column", "form", "op", "low", "high", "share")}
    signature = np.zeros(len(clauses), np.uint64)
    np.add.at(signature, owner, mark_of(named["column"], named["form"]))
    odd = np.bincount(owner, weights=named["form"] == ODD_FORM, minlength=len(clauses))
    return replace(clauses, **named, signature=signature, plain=(odd == 0) & (np.diff(clauses.starts) > 0))
