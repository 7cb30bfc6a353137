"""Reach: how clauses of many different shapes with equalities are brought into few clusters.

Each cluster is a visit per publication, so there should be few, and each visit should find few clauses. A pair of
equalities is selective; the pairs are chosen greedily, the one that saves the most first, until none saves enough to
be worth its visit. With five equalities out of ten attributes, ten or so of the 45 pairs serve all. If some values are
much more frequent than others, more pairs pay, for a clause is best reached through its rarest values. What is left is
reached through its best equality alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from tidings.matching.index import cost
from tidings.matching.index.arrays import starts_of
from tidings.matching.index.clause_table import ClauseTable, Doubles, Numbers, Shares, least_of, list_index

SAMPLE = 20_000
"""So many clauses tell which pairs are worth having."""

MOST_PAIRS = 512
MOST_EQUALITIES = 8
"""A clause with more is paired by its best ones only: all pairs of a hundred would be thousands."""

Pair = tuple[int, int]


@dataclass(frozen=True, slots=True)
class ClauseGroup:
    """Clauses reached through the same one or two columns, and which tests of theirs these are."""

    rows: Numbers
    key: Numbers
    second: Numbers | None = None


def best_equality(clauses: ClauseTable, rows: Numbers) -> tuple[ClauseGroup, Numbers]:
    """Clauses that have an equality, with the most selective one; and those that have none."""
    tests, starts = clauses.tests_of(rows)
    shares = np.where(clauses.is_equality[tests], clauses.share[tests], np.inf).astype(np.float32)
    least = least_of(shares, starts)
    owner = np.repeat(np.arange(len(rows)), np.diff(starts))
    hits = np.flatnonzero((shares == least[owner]) & np.isfinite(shares))
    _, first = np.unique(owner[hits], return_index=True)
    return ClauseGroup(rows[owner[hits[first]]], tests[hits[first]]), rows[np.isinf(least)]


def group_by_equalities(
    clauses: ClauseTable, found: ClauseGroup, derived: Sequence[bool]
) -> Iterator[ClauseGroup]:
    """Clauses with equalities by the pair of columns, or the column, that leads to them."""
    if not len(found.rows):
        return
    held = _Equalities.of(clauses, found.rows).best()
    pairs, _ = held.sampled().chosen_pairs(len(found.rows))
    number, first, second = held.assigned(pairs)
    for which in range(len(pairs)):
        mine = np.flatnonzero(number == which)
        if len(mine):
            yield ClauseGroup(found.rows[mine], *_ordered(clauses, first[mine], second[mine], derived))
    alone = np.flatnonzero(number < 0)
    columns = clauses.column[found.key[alone]]
    order = np.argsort(columns, kind="stable")
    for group in np.split(alone[order], np.flatnonzero(np.diff(columns[order])) + 1) if len(alone) else ():
        yield ClauseGroup(found.rows[group], found.key[group])


def estimate_pairs(clauses: ClauseTable, rows: Numbers) -> tuple[int, float]:
    """How many pairs would lead to these clauses, and how many of them would be looked at for a publication."""
    some = _Equalities.of(clauses, rows).best().sampled()
    pairs, held = some.chosen_pairs(len(rows))
    return len(pairs), float(held.mean()) * len(rows)


def _ordered(
    clauses: ClauseTable, first: Numbers, second: Numbers, derived: Sequence[bool]
) -> tuple[Numbers, Numbers]:
    """The more selective of two columns comes first. One where values have many codes comes before any other.

    If the two do not lead to a bucket directly, the second is sought by a binary search, which needs one code.
    """
    a, b = int(clauses.column[first[0]]), int(clauses.column[second[0]])
    before = (not derived[a], clauses.share[first].mean()) <= (not derived[b], clauses.share[second].mean())
    return (first, second) if before else (second, first)


def group_by_best_equality(clauses: ClauseTable, found: ClauseGroup) -> Iterator[ClauseGroup]:
    """Clauses of documents and graphs, by the column of their best equality. The second best is in any column.

    These have many values in a column, each leads to a bucket, and each cluster is a visit for each of them. So there
    is one cluster for each column, and a clause stands in the bucket of its own rarest value: were columns ordered as
    wholes, a paper by some Wang would read the bucket of all Wangs. A clause with one equality has -1 as its second.
    """
    tests, starts = clauses.tests_of(found.rows)
    owner = np.repeat(np.arange(len(found.rows)), np.diff(starts))
    other = clauses.is_equality[tests] & (tests != found.key[owner])
    second = np.full(len(found.rows), -1)
    ranked = np.flatnonzero(other)
    ranked = ranked[np.lexsort((clauses.share[tests[ranked]], owner[ranked]))]
    whose, first = np.unique(owner[ranked], return_index=True)
    second[whose] = tests[ranked[first]]
    columns = clauses.column[found.key]
    for column in np.unique(columns):
        mine = columns == column
        yield ClauseGroup(found.rows[mine], found.key[mine], second[mine])


@dataclass(frozen=True, slots=True)
class _Equalities:
    """The equalities of some clauses: which tests, their columns and shares, clause after clause, columns ascending."""

    starts: Numbers
    tests: Numbers
    column: Numbers
    share: Shares

    @classmethod
    def of(cls, clauses: ClauseTable, rows: Numbers) -> _Equalities:
        tests, starts = clauses.tests_of(rows)
        mask = clauses.is_equality[tests]
        counts = np.bincount(np.repeat(np.arange(len(rows)), np.diff(starts))[mask], minlength=len(rows))
        kept = tests[mask]
        return cls(starts_of(counts), kept, clauses.column[kept].astype(np.int64), clauses.share[kept])

    def taken(self, rows: Numbers) -> _Equalities:
        index, starts = list_index(self.starts, rows)
        return _Equalities(starts, self.tests[index], self.column[index], self.share[index])

    def best(self) -> _Equalities:
        """The same with the most selective equalities of each clause only."""
        counts = np.diff(self.starts)
        if counts.max(initial=0) <= MOST_EQUALITIES:
            return self
        owner = np.repeat(np.arange(len(counts)), counts)
        ranked = np.lexsort((self.share, owner))
        place = np.arange(len(ranked)) - self.starts[owner]  # ranked keeps the clauses where they are
        kept = np.sort(ranked[place < MOST_EQUALITIES])
        starts = starts_of(np.minimum(counts, MOST_EQUALITIES))
        return _Equalities(starts, self.tests[kept], self.column[kept], self.share[kept])

    def sampled(self) -> _Equalities:
        count = len(self.starts) - 1
        if count <= SAMPLE:
            return self
        return self.taken(np.random.default_rng(0).choice(count, SAMPLE, replace=False))

    def by_count(self) -> Iterator[tuple[Numbers, Numbers]]:
        """Clauses with equally many equalities (two or more), and where those stand, a row for each clause."""
        counts = np.diff(self.starts)
        for count in np.unique(counts[counts > 1]):
            rows = np.flatnonzero(counts == count)
            yield rows, self.starts[rows][:, None] + np.arange(count)

    def chosen_pairs(self, total: int) -> tuple[list[Pair], Doubles]:
        """The pairs worth a cluster each, best first; and how often each clause is then looked at.

        `total` clauses are as these are. `held` is how often a clause is looked at, through what was chosen so far or
        its best equality alone. A pair gains what it takes off that.
        """
        pair, clause, share = self._instances()
        held = least_of(self.share, self.starts).astype(np.float64)
        if not len(pair):
            return [], held
        named, number = np.unique(pair, return_inverse=True)
        starts = starts_of(np.bincount(clause, minlength=len(self.starts) - 1))
        by_pair, ends = np.argsort(number, kind="stable"), starts_of(np.bincount(number))
        gains = np.bincount(number, np.maximum(0.0, held[clause] - share), len(named))
        worth, chosen = cost.VISIT / cost.CHECK * (len(self.starts) - 1) / total, list[Pair]()
        while gains.max() > worth and len(chosen) < MOST_PAIRS:
            best = int(np.argmax(gains))
            chosen.append((int(named[best] >> 32), int(named[best] & 0xFFFFFFFF)))
            mine = by_pair[ends[best] : ends[best + 1]]
            mine = mine[share[mine] < held[clause[mine]]]
            touched, _ = list_index(starts, np.unique(clause[mine]))
            before = np.maximum(0.0, held[clause[touched]] - share[touched])
            np.minimum.at(held, clause[mine], share[mine])
            after = np.maximum(0.0, held[clause[touched]] - share[touched])
            gains -= np.bincount(number[touched], before - after, len(named))
            gains[best] = 0.0
        return chosen, held

    def _instances(self) -> tuple[Numbers, Numbers, Doubles]:
        """Every pair of equalities of every clause, by clause: the columns as one number, the clause, both's share."""
        pairs, clauses, shares = [np.empty(0, np.int64)], [np.empty(0, np.int64)], [np.empty(0)]
        for rows, places in self.by_count():
            for i, j in combinations(range(places.shape[1]), 2):
                a, b = places[:, i], places[:, j]
                pairs.append(self.column[a] << 32 | self.column[b])
                clauses.append(rows)
                shares.append(self.share[a].astype(np.float64) * self.share[b])
        pair, clause, share = np.concatenate(pairs), np.concatenate(clauses), np.concatenate(shares)
        order = np.argsort(clause, kind="stable")
        return pair[order], clause[order], share[order]

    def assigned(self, pairs: Sequence[Pair]) -> tuple[Numbers, Numbers, Numbers]:
        """For each clause the number of the pair that holds least often (-1 for none) and its two tests."""
        count = len(self.starts) - 1
        number, first, second = np.full(count, -1), np.full(count, -1), np.full(count, -1)
        if not pairs:
            return number, first, second
        compact, rank = _ranks(pairs)
        for rows, places in self.by_count():
            columns = compact[np.minimum(self.column[places], len(compact) - 1)]
            least = np.full(len(rows), np.inf)
            for i, j in combinations(range(places.shape[1]), 2):
                found = rank[columns[:, i], columns[:, j]]
                share = self.share[places[:, i]].astype(np.float64) * self.share[places[:, j]]
                better = (found < len(pairs)) & (share < least)
                least[better] = share[better]
                number[rows[better]] = found[better]
                first[rows[better]] = self.tests[places[better, i]]
                second[rows[better]] = self.tests[places[better, j]]
        return number, first, second


def _ranks(pairs: Sequence[Pair]) -> tuple[Numbers, Numbers]:
    """For columns a small number each (0 for those in no pair), and for two small numbers the place of their pair."""
    named = sorted({column for pair in pairs for column in pair})
    compact = np.zeros(named[-1] + 2, np.int64)
    compact[named] = np.arange(1, len(named) + 1)
    rank = np.full((len(named) + 1, len(named) + 1), len(pairs), np.int64)
    for place, (a, b) in reversed(list(enumerate(pairs))):
        rank[compact[a], compact[b]] = place
    return compact, rank
