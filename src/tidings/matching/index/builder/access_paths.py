"""Access paths: how each clause is found and how its tests are stored, chosen by estimated cost.

A clause is found through a *key* (an equality), perhaps a second key, or a *cut* (the bound of a range, by
which the rows of a bucket are sorted). Only then is the rest of its tests checked, so the key should be the
test that holds least often. Statistics decide, never the order of the text.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from tidings.matching.index.builder import cost
from tidings.matching.index.builder.clause_table import ClauseTable, Flags, Numbers, Shares, minimum_of_lists
from tidings.matching.index.builder.clustering import (
    ClauseGroup,
    estimate_pairs,
    find_best_equality,
    group_by_best_equality,
    group_by_equalities,
)
from tidings.matching.index.builder.cost import Estimate
from tidings.matching.kernels import clusters as kernel

UNIFORM_FROM = 64
"""Fewer clauses of one shape get no cluster of their own: each cluster is a visit per publication."""

SPARSE_BELOW = 4.0
"""If key and cut leave fewer clauses than this, columns gain nothing: the clauses may join others."""

TILES_FROM = 1024
"""Fewer clauses are not worth bitmaps."""

ALIKE_FROM = 256
"""At least so many clauses with equally many equalities, and no other tests, get rows of fixed width."""

UNIFORM, EQUALITIES, GENERAL, TILES = "uniform", "equalities", "general", "tiles"


@dataclass(frozen=True, slots=True)
class AccessPath:
    """A future cluster: its clauses, and for each clause the test that is its key, its second key, its cut.

    `column` leads to clauses that have none of these. `width` is the number of equalities per row of
    EQUALITIES. With `any_second`, the second keys of clauses are in different columns, and -1 stands for
    none.
    """

    layout: str
    rows: Numbers
    estimate: Estimate
    key: Numbers | None = None
    second: Numbers | None = None
    cut: Numbers | None = None
    column: int | None = None
    width: int = 0
    any_second: bool = False


def choose_access_paths(clauses: ClauseTable, derived: Sequence[bool]) -> list[AccessPath]:
    """Choose an access path for every clause. `derived` marks columns where one value can have many codes."""
    present = cost.presence_probability(len(derived))
    paths, remaining = _drop_costly_shapes(clauses, *_uniform_paths(clauses))
    with_key, without_key = find_best_equality(clauses, remaining)
    events, others = _split_events(clauses, with_key)
    for group in group_by_equalities(clauses, events, derived):
        paths.extend(_key_paths(clauses, group, present))
    for group in group_by_best_equality(clauses, others):
        paths.append(_any_second_path(clauses, group, present))
    paths.extend(_range_paths(clauses, without_key, present))
    return _move_to_tiles(clauses, paths)


def _uniform_paths(clauses: ClauseTable) -> tuple[list[AccessPath], Numbers]:
    """Find shapes with enough clauses to compare them in columns; return the remaining clauses, too."""
    plain = np.flatnonzero(clauses.plain)
    remaining = [np.flatnonzero(~clauses.plain)]
    _, shape, counts = np.unique(clauses.signature[plain], return_inverse=True, return_counts=True)
    many = counts[shape] >= UNIFORM_FROM
    remaining.append(plain[~many])
    plain, shape = plain[many], shape[many]
    order = np.argsort(shape, kind="stable")
    paths: list[AccessPath] = []
    for rows in np.split(plain[order], np.flatnonzero(np.diff(shape[order])) + 1) if len(plain) else ():
        path = _uniform_path(clauses, rows)
        if path:
            paths.append(path)
        else:
            remaining.append(rows)
    return paths, np.concatenate(remaining)


def _drop_costly_shapes(
    clauses: ClauseTable, paths: Sequence[AccessPath], remaining: Numbers
) -> tuple[list[AccessPath], Numbers]:
    """Keep paths through two equalities only if they cost less together than pairs that many shapes share.

    Each shape is a visit. Equalities by Zipf's law at ten million subscriptions had 252 shapes, each with
    enough clauses for columns by itself; pairs were thirty times faster.
    """
    doubtful = [path for path in paths if _uses_two_equalities(clauses, path)]
    rows = np.concatenate([np.empty(0, np.int64), *(path.rows for path in doubtful)])
    shapes_cost = sum(path.estimate.cost + cost.SEARCH for path in doubtful)
    if not len(rows) or shapes_cost < _pairs_cost(clauses, rows):
        return list(paths), remaining
    cheap = [path for path in paths if not _uses_two_equalities(clauses, path)]
    return cheap, np.concatenate([remaining, rows])


def _uses_two_equalities(clauses: ClauseTable, path: AccessPath) -> bool:
    return path.key is not None and path.cut is not None and bool(clauses.is_equality[path.cut[0]])


def _pairs_cost(clauses: ClauseTable, rows: Numbers) -> float:
    """Estimate the cost of finding these clauses through pairs of equalities."""
    pairs, looked_at = estimate_pairs(clauses, rows)
    return max(1, pairs) * cost.VISIT + looked_at * float(clauses.expected_tests[rows].mean()) * cost.CHECK


def _uniform_path(clauses: ClauseTable, rows: Numbers) -> AccessPath | None:
    """Return the path of clauses of one shape in columns; None if that is not worth it."""
    if (clauses.lengths[rows] != clauses.lengths[rows[0]]).any():
        return None
    tests = clauses.test_matrix(rows)
    same_column = clauses.column[tests] == clauses.column[tests[0]]
    same_form = clauses.form[tests] == clauses.form[tests[0]]
    if not (same_column & same_form).all():  # signatures are sums: two shapes may share one, if hardly ever
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


def _is_sparse(bucket: float, cut: int | None, shares: Shares, is_equality: Flags) -> bool:
    """Whether so few rows of a bucket are left that comparing them in columns gains nothing."""
    if cut is not None and is_equality[cut]:
        bucket *= float(shares[cut])
    return bucket < SPARSE_BELOW


def _key_paths(clauses: ClauseTable, group: ClauseGroup, present: float) -> Iterator[AccessPath]:
    """Yield the paths of clauses with the same key columns: rows of fixed width for those alike, else lists."""
    tests = clauses.lengths[group.rows] - (1 if group.second is None else 2)
    equalities_only = clauses.equalities[group.rows] == clauses.lengths[group.rows]
    width_of = np.where(equalities_only, tests, -1)
    widths, counts = np.unique(width_of[equalities_only], return_counts=True)
    common = widths[counts >= ALIKE_FROM]
    for width in common:
        yield _key_path(clauses, group, width_of == width, present, int(width))
    uncommon = ~np.isin(width_of, common)
    if uncommon.any():
        yield _key_path(clauses, group, uncommon, present)


def _split_events(clauses: ClauseTable, group: ClauseGroup) -> tuple[ClauseGroup, ClauseGroup]:
    """Separate clauses about events from those about documents and graphs, which have many values in a column."""
    other = clauses.twig[group.rows] >= 0
    events = ClauseGroup(group.rows[~other], group.key[~other])
    return events, ClauseGroup(group.rows[other], group.key[other])


def _any_second_path(clauses: ClauseTable, group: ClauseGroup, present: float) -> AccessPath:
    """Return the path of clauses of documents and graphs: lists, as rows of fixed width would need more clusters."""
    assert group.second is not None
    share = clauses.share[group.key].astype(np.float64)
    share *= np.where(group.second >= 0, clauses.share[group.second], 1.0)
    estimate = _estimate_lists(clauses, group.rows, float(share.mean()), present)
    return AccessPath(GENERAL, group.rows, estimate, group.key, group.second, any_second=True)


def _key_path(
    clauses: ClauseTable, group: ClauseGroup, mask: Flags, present: float, width: int | None = None
) -> AccessPath:
    rows, key = group.rows[mask], group.key[mask]
    second = group.second[mask] if group.second is not None else None
    share = clauses.share[key].astype(np.float64)
    if second is not None:
        share = share * clauses.share[second]
    estimate = _estimate_lists(clauses, rows, float(share.mean()), present)
    return AccessPath(GENERAL if width is None else EQUALITIES, rows, estimate, key, second, width=width or 0)


def _range_paths(clauses: ClauseTable, rows: Numbers, present: float) -> Iterator[AccessPath]:
    """Yield the paths of clauses without equalities: by their narrowest range, else by any value, else always."""
    if not len(rows):
        return
    tests, starts = clauses.tests_of(rows)
    is_range = clauses.form[tests] > 0
    range_rank = np.where(is_range, clauses.share[tests], np.inf).astype(np.float32)
    value_rank = np.where(clauses.op[tests] < kernel.NEGATED, 2.0, np.inf)
    rank = np.where(is_range, range_rank, value_rank).astype(np.float32)
    least = minimum_of_lists(rank, starts)
    owner = np.repeat(np.arange(len(rows)), np.diff(starts))
    hits = np.flatnonzero(rank == least[owner])
    _, first = np.unique(owner[hits], return_index=True)
    best = np.full(len(rows), -1)
    best[owner[hits[first]]] = tests[hits[first]]
    with_cut, with_value = np.flatnonzero(least <= 1.0), np.flatnonzero(least == 2.0)
    for group in _group_equal(clauses.column[best[with_cut]], clauses.form[best[with_cut]]):
        mine = with_cut[group]
        share = float(clauses.share[best[mine]].mean())
        estimate = _estimate_lists(clauses, rows[mine], share, present)
        yield AccessPath(GENERAL, rows[mine], estimate, cut=best[mine])
    for group in _group_equal(clauses.column[best[with_value]]):
        mine = with_value[group]
        estimate = _estimate_lists(clauses, rows[mine], 1.0, present)
        yield AccessPath(GENERAL, rows[mine], estimate, column=int(clauses.column[best[mine[0]]]))
    always = np.flatnonzero(np.isinf(least))
    if len(always):
        yield AccessPath(GENERAL, rows[always], _estimate_lists(clauses, rows[always], 1.0))


def _group_equal(*keys: Numbers) -> Iterator[Numbers]:
    """Yield the positions whose keys are equal, group by group."""
    if not len(keys[0]):
        return
    order = np.lexsort(keys)
    new = np.zeros(len(order) - 1, bool)
    for key in keys:
        new |= np.diff(key[order].astype(np.int64)) != 0
    yield from np.split(order, np.flatnonzero(new) + 1)


def _move_to_tiles(clauses: ClauseTable, paths: Sequence[AccessPath]) -> list[AccessPath]:
    """Move the clauses of paths that look at too many rows into bitmap tiles, if there are enough of them."""
    costly = [_is_cheaper_in_tiles(clauses, path) for path in paths]
    pool = [path.rows for path, move in zip(paths, costly, strict=True) if move]
    rows = np.concatenate([np.empty(0, np.int64), *pool])
    if len(rows) < TILES_FROM:
        return list(paths)
    cheap = [path for path, move in zip(paths, costly, strict=True) if not move]
    return [*cheap, AccessPath(TILES, rows, _estimate_tiles(clauses, rows))]


def _is_cheaper_in_tiles(clauses: ClauseTable, path: AccessPath) -> bool:
    """Compare costs; bitmaps do not support the many values per column of documents."""
    events = bool((clauses.twig[path.rows] < 0).all())
    return events and _estimate_tiles(clauses, path.rows).cost < path.estimate.cost


def _estimate_tiles(clauses: ClauseTable, rows: Numbers) -> Estimate:
    return cost.tiles_estimate(len(rows), float(clauses.match_probability[rows].mean()))


def _estimate_lists(clauses: ClauseTable, rows: Numbers, share: float, present: float = 1.0) -> Estimate:
    return cost.lists_estimate(len(rows), share, float(clauses.expected_tests[rows].mean()), present)
