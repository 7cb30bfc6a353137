"""Clustering: groups clauses of many shapes that have equalities into few clusters.

Each cluster is a visit per publication, so there should be few clusters, and each visit should find few
clauses. A pair of equalities is selective. Pairs are chosen greedily, the one that saves the most first,
until none saves enough to be worth its visit. With five equalities out of ten attributes, about ten of the 45
pairs serve all clauses. If some values are much more frequent than others, more pairs pay off, because a
clause is best found through its rarest values. The remaining clauses are found through their best equality
alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from tidings.matching.array_functions import list_index, starts_of
from tidings.matching.index.builder import cost
from tidings.matching.index.builder.clause_table import (
    ClauseTable,
    Doubles,
    Numbers,
    Shares,
    minimum_of_lists,
)

SAMPLE = 20_000
"""Number of clauses from which the worth of pairs is estimated."""

MOST_PAIRS = 512
MOST_EQUALITIES = 8
"""A clause with more is paired by its most selective ones only: a hundred equalities have thousands of pairs."""

Pair = tuple[int, int]


@dataclass(frozen=True, slots=True)
class ClauseGroup:
    """Clauses found through the same one or two columns, and the tests of each clause on these columns."""

    rows: Numbers
    key: Numbers
    second: Numbers | None = None


def find_best_equality(clauses: ClauseTable, rows: Numbers) -> tuple[ClauseGroup, Numbers]:
    """Find the most selective equality of each clause; return the clauses without equalities, too."""
    tests, starts = clauses.tests_of(rows)
    shares = np.where(clauses.is_equality[tests], clauses.share[tests], np.inf).astype(np.float32)
    least = minimum_of_lists(shares, starts)
    owner = np.repeat(np.arange(len(rows)), np.diff(starts))
    hits = np.flatnonzero((shares == least[owner]) & np.isfinite(shares))
    _, first = np.unique(owner[hits], return_index=True)
    return ClauseGroup(rows[owner[hits[first]]], tests[hits[first]]), rows[np.isinf(least)]


def group_by_equalities(
    clauses: ClauseTable, group: ClauseGroup, derived: Sequence[bool]
) -> Iterator[ClauseGroup]:
    """Group clauses with equalities by the pair of columns, or the one column, through which they are found."""
    if not len(group.rows):
        return
    equalities = _Equalities.of(clauses, group.rows).most_selective()
    pairs, _ = equalities.sample().choose_pairs(len(group.rows))
    pair_of, first, second = equalities.assign(pairs)
    for pair in range(len(pairs)):
        mine = np.flatnonzero(pair_of == pair)
        if len(mine):
            yield ClauseGroup(group.rows[mine], *_order_pair(clauses, first[mine], second[mine], derived))
    alone = np.flatnonzero(pair_of < 0)
    columns = clauses.column[group.key[alone]]
    order = np.argsort(columns, kind="stable")
    for mine in np.split(alone[order], np.flatnonzero(np.diff(columns[order])) + 1) if len(alone) else ():
        yield ClauseGroup(group.rows[mine], group.key[mine])


def estimate_pairs(clauses: ClauseTable, rows: Numbers) -> tuple[int, float]:
    """Estimate the number of pairs for these clauses, and the number of clauses looked at per publication."""
    sample = _Equalities.of(clauses, rows).most_selective().sample()
    pairs, frequency = sample.choose_pairs(len(rows))
    return len(pairs), float(frequency.mean()) * len(rows)


def _order_pair(
    clauses: ClauseTable, first: Numbers, second: Numbers, derived: Sequence[bool]
) -> tuple[Numbers, Numbers]:
    """Put the more selective of two columns first, but a column where values have many codes before any
    other.

    If a pair has no bucket of its own, the second column is found by binary search, which needs a single
    code.
    """
    a, b = int(clauses.column[first[0]]), int(clauses.column[second[0]])
    in_order = (not derived[a], clauses.share[first].mean()) <= (not derived[b], clauses.share[second].mean())
    return (first, second) if in_order else (second, first)


def group_by_best_equality(clauses: ClauseTable, group: ClauseGroup) -> Iterator[ClauseGroup]:
    """Group clauses of documents and graphs by the column of their best equality; the second best is in any
    column.

    Documents and graphs have many values in a column, and each value visits each cluster of that column. So
    there is one cluster per column, and a clause is in the bucket of its own rarest value. If columns were
    ranked as a whole, a paper by some Wang would read the bucket of all Wangs. A clause with only one
    equality has -1 as its second.
    """
    tests, starts = clauses.tests_of(group.rows)
    owner = np.repeat(np.arange(len(group.rows)), np.diff(starts))
    other = clauses.is_equality[tests] & (tests != group.key[owner])
    second = np.full(len(group.rows), -1)
    ranked = np.flatnonzero(other)
    ranked = ranked[np.lexsort((clauses.share[tests[ranked]], owner[ranked]))]
    clause, first = np.unique(owner[ranked], return_index=True)
    second[clause] = tests[ranked[first]]
    columns = clauses.column[group.key]
    for column in np.unique(columns):
        mine = columns == column
        yield ClauseGroup(group.rows[mine], group.key[mine], second[mine])


@dataclass(frozen=True, slots=True)
class _Equalities:
    """The equalities of some clauses, clause after clause, by ascending column."""

    starts: Numbers
    tests: Numbers
    column: Numbers
    share: Shares

    @classmethod
    def of(cls, clauses: ClauseTable, rows: Numbers) -> _Equalities:
        tests, starts = clauses.tests_of(rows)
        mask = clauses.is_equality[tests]
        counts = np.bincount(np.repeat(np.arange(len(rows)), np.diff(starts))[mask], minlength=len(rows))
        selected = tests[mask]
        return cls(
            starts_of(counts), selected, clauses.column[selected].astype(np.int64), clauses.share[selected]
        )

    def take(self, rows: Numbers) -> _Equalities:
        index, starts = list_index(self.starts, rows)
        return _Equalities(starts, self.tests[index], self.column[index], self.share[index])

    def most_selective(self) -> _Equalities:
        """Keep at most MOST_EQUALITIES per clause, the most selective ones."""
        counts = np.diff(self.starts)
        if counts.max(initial=0) <= MOST_EQUALITIES:
            return self
        owner = np.repeat(np.arange(len(counts)), counts)
        ranked = np.lexsort((self.share, owner))
        place = np.arange(len(ranked)) - self.starts[owner]  # clauses keep their order in `ranked`
        selected = np.sort(ranked[place < MOST_EQUALITIES])
        starts = starts_of(np.minimum(counts, MOST_EQUALITIES))
        return _Equalities(starts, self.tests[selected], self.column[selected], self.share[selected])

    def sample(self) -> _Equalities:
        count = len(self.starts) - 1
        if count <= SAMPLE:
            return self
        return self.take(np.random.default_rng(0).choice(count, SAMPLE, replace=False))

    def by_count(self) -> Iterator[tuple[Numbers, Numbers]]:
        """Yield clauses with equally many equalities (two or more), and the positions of these, one row per clause."""
        counts = np.diff(self.starts)
        for count in np.unique(counts[counts > 1]):
            rows = np.flatnonzero(counts == count)
            yield rows, self.starts[rows][:, None] + np.arange(count)

    def choose_pairs(self, total: int) -> tuple[list[Pair], Doubles]:
        """Choose the pairs that are worth a cluster, best first; return how often each clause is then looked
        at, too.

        These clauses are a sample of `total` clauses. `frequency` is how often a clause is looked at through
        its best pair so far or its best equality alone. A pair gains what it takes off that.
        """
        pair, clause, share = self._instances()
        frequency = minimum_of_lists(self.share, self.starts).astype(np.float64)
        if not len(pair):
            return [], frequency
        named, number = np.unique(pair, return_inverse=True)
        starts = starts_of(np.bincount(clause, minlength=len(self.starts) - 1))
        by_pair, ends = np.argsort(number, kind="stable"), starts_of(np.bincount(number))
        gains = np.bincount(number, np.maximum(0.0, frequency[clause] - share), len(named))
        worth, chosen = cost.VISIT / cost.CHECK * (len(self.starts) - 1) / total, list[Pair]()
        while gains.max() > worth and len(chosen) < MOST_PAIRS:
            best = int(np.argmax(gains))
            chosen.append((int(named[best] >> 32), int(named[best] & 0xFFFFFFFF)))
            mine = by_pair[ends[best] : ends[best + 1]]
            mine = mine[share[mine] < frequency[clause[mine]]]
            touched, _ = list_index(starts, np.unique(clause[mine]))
            before = np.maximum(0.0, frequency[clause[touched]] - share[touched])
            np.minimum.at(frequency, clause[mine], share[mine])
            after = np.maximum(0.0, frequency[clause[touched]] - share[touched])
            gains -= np.bincount(number[touched], before - after, len(named))
            gains[best] = 0.0
        return chosen, frequency

    def _instances(self) -> tuple[Numbers, Numbers, Doubles]:
        """Return every pair of equalities of every clause: both columns as one number, the clause, the joint share."""
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

    def assign(self, pairs: Sequence[Pair]) -> tuple[Numbers, Numbers, Numbers]:
        """Return the most selective pair of each clause (-1 for none) and its two tests."""
        count = len(self.starts) - 1
        number, first, second = np.full(count, -1), np.full(count, -1), np.full(count, -1)
        if not pairs:
            return number, first, second
        compact, rank = _ranks(pairs)
        for rows, places in self.by_count():
            columns = compact[np.minimum(self.column[places], len(compact) - 1)]
            least = np.full(len(rows), np.inf)
            for i, j in combinations(range(places.shape[1]), 2):
                pair_rank = rank[columns[:, i], columns[:, j]]
                share = self.share[places[:, i]].astype(np.float64) * self.share[places[:, j]]
                better = (pair_rank < len(pairs)) & (share < least)
                least[better] = share[better]
                number[rows[better]] = pair_rank[better]
                first[rows[better]] = self.tests[places[better, i]]
                second[rows[better]] = self.tests[places[better, j]]
        return number, first, second


def _ranks(pairs: Sequence[Pair]) -> tuple[Numbers, Numbers]:
    """Number the columns in pairs from 1 (0 for all others), and map two such numbers to the position of their pair."""
    named = sorted({column for pair in pairs for column in pair})
    compact = np.zeros(named[-1] + 2, np.int64)
    compact[named] = np.arange(1, len(named) + 1)
    rank = np.full((len(named) + 1, len(named) + 1), len(pairs), np.int64)
    for place, (a, b) in reversed(list(enumerate(pairs))):
        rank[compact[a], compact[b]] = place
    return compact, rank
