"""Reach: how clauses of many different shapes with equalities are brought into few clusters.

Each cluster is a visit per publication, so there should be few, and each visit should find few clauses. A pair of
equalities is selective; the pairs are chosen greedily, the one that serves the most clauses first, until none serves
enough to be worth its visit. (With five equalities out of ten attributes, eight or so of the 45 pairs serve all.) What
is left is reached through its best equality alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import numpy.typing as npt

from tidings.matching.index import cost
from tidings.matching.index.arrays import starts_of
from tidings.matching.index.lowered import Clauses, Numbers, Shares, least_of, list_index

SAMPLE = 20_000
"""So many clauses tell which pairs are worth having."""

Pair = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Reached:
    """Clauses reached through the same one or two columns, and which tests of theirs these are."""

    rows: Numbers
    key: Numbers
    second: Numbers | None = None


def best_equality(clauses: Clauses, rows: Numbers) -> tuple[Reached, Numbers]:
    """Clauses that have an equality, with the most selective one; and those that have none."""
    tests, starts = clauses.tests_of(rows)
    shares = np.where(clauses.is_equality[tests], clauses.share[tests], np.inf).astype(np.float32)
    least = least_of(shares, starts)
    owner = np.repeat(np.arange(len(rows)), np.diff(starts))
    hits = np.flatnonzero((shares == least[owner]) & np.isfinite(shares))
    _, first = np.unique(owner[hits], return_index=True)
    return Reached(rows[owner[hits[first]]], tests[hits[first]]), rows[np.isinf(least)]


def reach(clauses: Clauses, found: Reached, derived: Sequence[bool]) -> Iterator[Reached]:
    """Clauses with equalities by the pair of columns, or the column, that leads to them."""
    if not len(found.rows):
        return
    held = _Equalities.of(clauses, found.rows)
    pairs = held.sampled().chosen_pairs(len(found.rows))
    number, first, second = held.assigned(pairs)
    for which in range(len(pairs)):
        mine = np.flatnonzero(number == which)
        if len(mine):
            yield Reached(found.rows[mine], *_ordered(clauses, first[mine], second[mine], derived))
    alone = np.flatnonzero(number < 0)
    columns = clauses.column[found.key[alone]]
    order = np.argsort(columns, kind="stable")
    for group in np.split(alone[order], np.flatnonzero(np.diff(columns[order])) + 1) if len(alone) else ():
        yield Reached(found.rows[group], found.key[group])


def _ordered(
    clauses: Clauses, first: Numbers, second: Numbers, derived: Sequence[bool]
) -> tuple[Numbers, Numbers]:
    """The more selective of a pair comes first. A column where values have many codes comes before any other.

    If the two do not lead to a bucket directly, the second is sought by a binary search, which needs one code.
    """
    a, b = int(clauses.column[first[0]]), int(clauses.column[second[0]])
    before = (not derived[a], clauses.share[first].mean()) <= (not derived[b], clauses.share[second].mean())
    return (first, second) if before else (second, first)


@dataclass(frozen=True, slots=True)
class _Equalities:
    """The equalities of some clauses: which tests, their columns and shares, clause after clause, columns ascending."""

    starts: Numbers
    tests: Numbers
    column: Numbers
    share: Shares

    @classmethod
    def of(cls, clauses: Clauses, rows: Numbers) -> _Equalities:
        tests, starts = clauses.tests_of(rows)
        mask = clauses.is_equality[tests]
        counts = np.bincount(np.repeat(np.arange(len(rows)), np.diff(starts))[mask], minlength=len(rows))
        kept = tests[mask]
        return cls(starts_of(counts), kept, clauses.column[kept].astype(np.int64), clauses.share[kept])

    def taken(self, rows: Numbers) -> _Equalities:
        index, starts = list_index(self.starts, rows)
        return _Equalities(starts, self.tests[index], self.column[index], self.share[index])

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

    def chosen_pairs(self, total: int) -> list[Pair]:
        """The pairs worth a cluster each, best first; `total` clauses are as these are."""
        pair, clause, weight = self._instances()
        if not len(pair):
            return []
        named, number = np.unique(pair, return_inverse=True)
        order = np.argsort(clause, kind="stable")
        number, clause, weight = number[order], clause[order], weight[order]
        starts = starts_of(np.bincount(clause, minlength=len(self.starts) - 1))
        gains = np.bincount(number, weight, len(named))
        holders = np.argsort(number, kind="stable")
        held = starts_of(np.bincount(number, minlength=len(named)))
        open_, chosen = np.ones(len(self.starts) - 1, bool), []
        worth = cost.VISIT / cost.CHECK * (len(self.starts) - 1) / total
        while gains.max() > worth:
            best = int(np.argmax(gains))
            chosen.append((int(named[best] >> 32), int(named[best] & 0xFFFFFFFF)))
            mine = clause[holders[held[best] : held[best + 1]]]
            mine = np.unique(mine[open_[mine]])
            open_[mine] = False
            gone, _ = list_index(starts, mine)
            gains -= np.bincount(number[gone], weight[gone], len(named))
            gains[best] = 0.0
        return chosen

    def _instances(self) -> tuple[Numbers, Numbers, npt.NDArray[np.float64]]:
        """Every pair of equalities of every clause: the two columns as one number, the clause, what the pair saves.

        A pair saves looking at the clause whenever its better equality holds and the other one does not.
        """
        pairs, clauses, weights = [np.empty(0, np.int64)], [np.empty(0, np.int64)], [np.empty(0)]
        for rows, places in self.by_count():
            for i, j in combinations(range(places.shape[1]), 2):
                a, b = places[:, i], places[:, j]
                pairs.append(self.column[a] << 32 | self.column[b])
                clauses.append(rows)
                shares = self.share[a].astype(np.float64), self.share[b].astype(np.float64)
                weights.append(np.minimum(*shares) * (1.0 - np.maximum(*shares)))
        return np.concatenate(pairs), np.concatenate(clauses), np.concatenate(weights)

    def assigned(self, pairs: Sequence[Pair]) -> tuple[Numbers, Numbers, Numbers]:
        """For each clause the number of the first pair it has (-1 for none) and its two tests."""
        count = len(self.starts) - 1
        number, first, second = np.full(count, -1), np.full(count, -1), np.full(count, -1)
        if not pairs:
            return number, first, second
        compact, rank = _ranks(pairs)
        for rows, places in self.by_count():
            columns = compact[np.minimum(self.column[places], len(compact) - 1)]
            best = np.full(len(rows), len(pairs))
            for i, j in combinations(range(places.shape[1]), 2):
                found = rank[columns[:, i], columns[:, j]]
                better = found < best
                best[better] = found[better]
                first[rows[better]] = self.tests[places[better, i]]
                second[rows[better]] = self.tests[places[better, j]]
            number[rows] = np.where(best < len(pairs), best, -1)
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
