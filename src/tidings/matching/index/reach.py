"""Reach: how clauses of many different shapes are brought into few clusters.

Each cluster is a visit per publication, so there should be few, and each visit should find few clauses. A pair of
equalities is selective; the pairs are chosen greedily, the one that serves the most clauses first, until every clause
with two equalities has one. (With five equalities out of ten attributes, eight or so of the 45 pairs serve all.)
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations

from tidings.kernels import match as kernel
from tidings.matching.index.layout import Group, best_cut
from tidings.matching.index.lowering import LoweredBlock, LoweredTest

Pair = tuple[int, int]


def reach_groups(blocks: Sequence[LoweredBlock], derived: Sequence[bool]) -> list[Group]:
    """Blocks by how they are reached. `derived` says of each column whether a value can have many codes there."""
    pairs = _cover([_pairs(block, derived) for block in blocks], [len(block.rows) for block in blocks])
    groups: dict[tuple[int, ...], list[LoweredBlock]] = defaultdict(list)
    for block, pair in zip(blocks, pairs, strict=True):
        groups[_way(block, pair)].append(_rekeyed(block, pair[0]) if pair else block)
    return [_group(way, group) for way, group in groups.items()]


def _equalities(block: LoweredBlock) -> list[LoweredTest]:
    held = [block.key] if block.key else []
    return held + [test for test in block.tests if test.plain and test.op == kernel.EQUAL]


def _pairs(block: LoweredBlock, derived: Sequence[bool]) -> set[Pair]:
    """The pairs of columns through which a block could be reached.

    The first leads to buckets, so it is the more selective one. A column where values have many codes can be nothing
    else: the second is sought by a binary search, which needs one code.
    """
    if block.key is None:
        return set()
    tests = {test.column: test for test in _equalities(block)}
    selective = sorted(tests, key=lambda column: (not derived[column], tests[column].selectivity, column))
    return {(a, b) for a, b in combinations(selective, 2) if not derived[b]}


def _cover(possible: Sequence[set[Pair]], rows: Sequence[int]) -> list[Pair | None]:
    """A pair for each block that has any: few different pairs in all."""
    chosen: list[Pair | None] = [None] * len(possible)
    holders: dict[Pair, list[int]] = defaultdict(list)
    weight: dict[Pair, int] = defaultdict(int)
    for number, pairs in enumerate(possible):
        for pair in pairs:
            holders[pair].append(number)
            weight[pair] += rows[number]
    while weight:
        best = max(weight, key=lambda pair: (weight[pair], pair))
        for number in holders[best]:
            if chosen[number] is None:
                chosen[number] = best
                for pair in possible[number]:
                    weight[pair] -= rows[number]
        weight = {pair: left for pair, left in weight.items() if left > 0}
    return chosen


def _rekeyed(block: LoweredBlock, column: int) -> LoweredBlock:
    """The same block, reached through its equality on this column."""
    if block.key is None or block.key.column == column:
        return block
    key = next(test for test in _equalities(block) if test.column == column)
    return replace(block, key=key, tests=(block.key, *(test for test in block.tests if test is not key)))


def _way(block: LoweredBlock, pair: Pair | None) -> tuple[int, ...]:
    if pair:
        return (0, *pair)
    if block.key:
        return (1, block.key.column)
    cut = best_cut(block.tests)
    if cut:
        return (2, cut.column, cut.op, cut.floor, cut.ceiling)
    return (3, *(test.column for test in block.tests if not test.negated))[:2]


def _group(way: tuple[int, ...], blocks: list[LoweredBlock]) -> Group:
    keys = [block.key for block in blocks if block.key]
    if way[0] == 0:
        return Group(blocks, keys, [_cut_on(block, way[2]) for block in blocks])
    if way[0] == 2:
        return Group(blocks, cuts=[cut for block in blocks if (cut := best_cut(block.tests))])
    return Group(blocks, keys, column=way[1] if len(way) > 1 else None)


def _cut_on(block: LoweredBlock, column: int) -> LoweredTest:
    tests = (test for test in block.tests if test.plain and test.op == kernel.EQUAL)
    return next(test for test in tests if test.column == column)
