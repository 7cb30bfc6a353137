"""Ways: how each clause is reached and how it is checked, chosen by what it is expected to cost."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from tidings.matching.index import cost
from tidings.matching.index.clause_table import ClauseTable, Flags, Numbers, Shares, least_of
from tidings.matching.index.clustering import (
    ClauseGroup,
    best_equality,
    estimate_pairs,
    group_by_best_equality,
    group_by_equalities,
)
from tidings.matching.index.cost import Estimate
from tidings.matching.kernels import clusters as kernel

UNIFORM_FROM = 64
"""Fewer clauses of one shape are not worth a cluster of their own: each cluster is a visit per publication."""

SPARSE_BELOW = 4.0
"""If key and cut leave fewer clauses than this, comparing them in columns gains nothing: they may stand with others."""

TILES_FROM = 1024
"""Fewer clauses are not worth bitmaps."""

ALIKE_FROM = 256
"""So many clauses with equally many equalities, and nothing else, stand in rows of fixed width."""

UNIFORM, EQUALITIES, GENERAL, TILES = "uniform", "equalities", "general", "tiles"


@dataclass(frozen=True, slots=True)
class AccessPath:
    """A cluster to be: its clauses, and for each of them the test that is its key, its second key, its cut.

    `column` leads to clauses that have none of them. `width` is how many equalities rows of EQUALITIES have. If a way
    `meets`, the second key of a clause may be in any column, and -1 is none.
    """

    layout: str
    rows: Numbers
    estimate: Estimate
    key: Numbers | None = None
    second: Numbers | None = None
    cut: Numbers | None = None
    column: int | None = None
    width: int = 0
    meets: bool = False


def choose_access_paths(clauses: ClauseTable, derived: Sequence[bool]) -> list[AccessPath]:
    """A way for every clause. `derived` says of each column whether a value can have many codes there."""
    ways, rest = _worth_columns(clauses, *_of_one_shape(clauses))
    with_key, without = best_equality(clauses, rest)
    events, others = _divided(clauses, with_key)
    for reached in group_by_equalities(clauses, events, derived):
        ways.extend(_through_key(clauses, reached, cost.present(len(derived))))
    ways.extend(
        _meeting(clauses, reached, cost.present(len(derived)))
        for reached in group_by_best_equality(clauses, others)
    )
    ways.extend(_through_cut(clauses, without, len(derived)))
    return _tiled(clauses, ways)


def _of_one_shape(clauses: ClauseTable) -> tuple[list[AccessPath], Numbers]:
    """Clauses of one shape that are many and worth comparing in columns; and the others."""
    plain = np.flatnonzero(clauses.plain)
    rest = [np.flatnonzero(~clauses.plain)]
    _, shape, counts = np.unique(clauses.signature[plain], return_inverse=True, return_counts=True)
    many = counts[shape] >= UNIFORM_FROM
    rest.append(plain[~many])
    plain, shape = plain[many], shape[many]
    order = np.argsort(shape, kind="stable")
    ways: list[AccessPath] = []
    for rows in np.split(plain[order], np.flatnonzero(np.diff(shape[order])) + 1) if len(plain) else ():
        way = _columns(clauses, rows)
        if way:
            ways.append(way)
        else:
            rest.append(rows)
    return ways, np.concatenate(rest)


def _worth_columns(
    clauses: ClauseTable, ways: Sequence[AccessPath], rest: Numbers
) -> tuple[list[AccessPath], Numbers]:
    """The ways through two equalities only if all of them together are cheaper than pairs that many shapes share.

    Each shape is a visit. Equalities by Zipf's law at ten million subscriptions had 252 shapes, each with enough
    clauses for columns by itself; pairs were thirty times faster.
    """
    contested = [_by_two_equalities(clauses, way) for way in ways]
    doubtful = [way for way, is_one in zip(ways, contested, strict=True) if is_one]
    rows = np.concatenate([np.empty(0, np.int64), *(way.rows for way in doubtful)])
    if not len(rows) or sum(way.estimate.cost + cost.SEARCH for way in doubtful) < _paired(clauses, rows):
        return list(ways), rest
    return [way for way, is_one in zip(ways, contested, strict=True) if not is_one], np.concatenate(
        [rest, rows]
    )


def _by_two_equalities(clauses: ClauseTable, way: AccessPath) -> bool:
    return way.key is not None and way.cut is not None and bool(clauses.is_equality[way.cut[0]])


def _paired(clauses: ClauseTable, rows: Numbers) -> float:
    """What these clauses would cost if they were reached through pairs."""
    pairs, looked_at = estimate_pairs(clauses, rows)
    return max(1, pairs) * cost.VISIT + looked_at * float(clauses.tried[rows].mean()) * cost.CHECK


def _columns(clauses: ClauseTable, rows: Numbers) -> AccessPath | None:
    """Clauses of one shape in columns, if that is worth it."""
    if (clauses.lengths[rows] != clauses.lengths[rows[0]]).any():
        return None
    tests = clauses.matrix(rows)
    same = (clauses.column[tests] == clauses.column[tests[0]]) & (
        clauses.form[tests] == clauses.form[tests[0]]
    )
    if not same.all():  # signatures are sums: two shapes may share one, if hardly ever
        return None
    shares = clauses.share[tests].mean(axis=0)
    is_equality = clauses.is_equality[tests[0]]
    ranked = sorted(range(len(shares)), key=lambda t: (not is_equality[t], shares[t]))
    key = ranked.pop(0) if is_equality[ranked[0]] else None
    cut = ranked[0] if ranked else None
    if key is not None and _is_sparse(len(rows) * float(shares[key]), cut, shares, is_equality):
        return None
    estimate = cost.columns_estimate(
        len(rows),
        float(shares[key]) if key is not None else 1.0,
        float(shares[cut]) if cut is not None else 1.0,
        len(ranked) - 1,
    )
    return AccessPath(
        UNIFORM,
        rows,
        estimate,
        key=tests[:, key] if key is not None else None,
        cut=tests[:, cut] if cut is not None else None,
    )


def _is_sparse(left: float, cut: int | None, shares: Shares, is_equality: Flags) -> bool:
    """Whether so few rows of a bucket are left that comparing them in columns gains nothing."""
    if cut is not None and is_equality[cut]:
        left *= float(shares[cut])
    return left < SPARSE_BELOW


def _through_key(clauses: ClauseTable, reached: ClauseGroup, present: float) -> Iterator[AccessPath]:
    """Clauses reached through the same key columns: rows of fixed width where many are alike, lists for the others."""
    tests = clauses.lengths[reached.rows] - (1 if reached.second is None else 2)
    only = clauses.equalities[reached.rows] == clauses.lengths[reached.rows]
    alike = np.where(only, tests, -1)
    widths, counts = np.unique(alike[only], return_counts=True)
    for width in widths[counts >= ALIKE_FROM]:
        yield _keyed(clauses, reached, alike == width, present, int(width))
    rest = ~np.isin(alike, widths[counts >= ALIKE_FROM])
    if rest.any():
        yield _keyed(clauses, reached, rest, present)


def _divided(clauses: ClauseTable, found: ClauseGroup) -> tuple[ClauseGroup, ClauseGroup]:
    """Clauses about events, and those about documents and graphs, which have many values in a column."""
    other = clauses.twig[found.rows] >= 0
    return ClauseGroup(found.rows[~other], found.key[~other]), ClauseGroup(
        found.rows[other], found.key[other]
    )


def _meeting(clauses: ClauseTable, reached: ClauseGroup, present: float) -> AccessPath:
    """Clauses of documents and graphs: lists, for rows of fixed width would be more clusters."""
    assert reached.second is not None
    share = clauses.share[reached.key].astype(np.float64)
    share *= np.where(reached.second >= 0, clauses.share[reached.second], 1.0)
    estimate = _listed(clauses, reached.rows, float(share.mean()), present)
    return AccessPath(GENERAL, reached.rows, estimate, reached.key, reached.second, meets=True)


def _keyed(
    clauses: ClauseTable, reached: ClauseGroup, mask: Flags, present: float, width: int | None = None
) -> AccessPath:
    rows, key = reached.rows[mask], reached.key[mask]
    second = reached.second[mask] if reached.second is not None else None
    share = clauses.share[key].astype(np.float64)
    if second is not None:
        share = share * clauses.share[second]
    estimate = _listed(clauses, rows, float(share.mean()), present)
    return AccessPath(GENERAL if width is None else EQUALITIES, rows, estimate, key, second, width=width or 0)


def _through_cut(clauses: ClauseTable, rows: Numbers, columns: int) -> Iterator[AccessPath]:
    """Clauses without any equality: reached through their narrowest range, else through some value, else always."""
    if not len(rows):
        return
    tests, starts = clauses.tests_of(rows)
    ranged = clauses.form[tests] > 0
    narrow = np.where(ranged, clauses.share[tests], np.inf).astype(np.float32)
    asking = np.where(ranged, narrow, np.where(clauses.op[tests] < kernel.NEGATED, 2.0, np.inf)).astype(
        np.float32
    )
    least = least_of(asking, starts)
    owner = np.repeat(np.arange(len(rows)), np.diff(starts))
    hits = np.flatnonzero(asking == least[owner])
    _, first = np.unique(owner[hits], return_index=True)
    best = np.full(len(rows), -1)
    best[owner[hits[first]]] = tests[hits[first]]
    present = cost.present(columns)
    with_cut, with_value = np.flatnonzero(least <= 1.0), np.flatnonzero(least == 2.0)
    for group in _groups(clauses.column[best[with_cut]], clauses.form[best[with_cut]]):
        mine = with_cut[group]
        share = float(clauses.share[best[mine]].mean())
        estimate = _listed(clauses, rows[mine], share, present)
        yield AccessPath(GENERAL, rows[mine], estimate, cut=best[mine])
    for group in _groups(clauses.column[best[with_value]]):
        mine = with_value[group]
        estimate = _listed(clauses, rows[mine], 1.0, present)
        yield AccessPath(GENERAL, rows[mine], estimate, column=int(clauses.column[best[mine[0]]]))
    always = np.flatnonzero(np.isinf(least))
    if len(always):
        yield AccessPath(GENERAL, rows[always], _listed(clauses, rows[always], 1.0))


def _groups(*keys: Numbers) -> Iterator[Numbers]:
    """Places whose keys are the same."""
    if not len(keys[0]):
        return
    order = np.lexsort(keys)
    new = np.zeros(len(order) - 1, bool)
    for key in keys:
        new |= np.diff(key[order].astype(np.int64)) != 0
    yield from np.split(order, np.flatnonzero(new) + 1)


def _tiled(clauses: ClauseTable, ways: Sequence[AccessPath]) -> list[AccessPath]:
    """Ways that would look at too many rows give their clauses to bitmaps, all to the same, if those are worth it."""
    costly = [_is_dear(clauses, way) for way in ways]
    pool = [way.rows for way, dear in zip(ways, costly, strict=True) if dear]
    rows = np.concatenate([np.empty(0, np.int64), *pool])
    if len(rows) < TILES_FROM:
        return list(ways)
    kept = [way for way, dear in zip(ways, costly, strict=True) if not dear]
    return [*kept, AccessPath(TILES, rows, _sifted(clauses, rows))]


def _is_dear(clauses: ClauseTable, way: AccessPath) -> bool:
    """Whether bitmaps would be cheaper. Documents have many values in a column, which bitmaps are not made for."""
    events = bool((clauses.twig[way.rows] < 0).all())
    return events and _sifted(clauses, way.rows).cost < way.estimate.cost


def _sifted(clauses: ClauseTable, rows: Numbers) -> Estimate:
    return cost.tiles_estimate(len(rows), float(clauses.matching[rows].mean()))


def _listed(clauses: ClauseTable, rows: Numbers, share: float, present: float = 1.0) -> Estimate:
    return cost.lists_estimate(len(rows), share, float(clauses.tried[rows].mean()), present)
