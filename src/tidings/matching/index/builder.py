"""Building a segment: compiled subscriptions in, arrays for the kernels out.

Three steps: collect the constants of every column, lower each block to codes and choose its key, lay the clauses out
in clusters. Clauses of one shape that are many stand in a uniform cluster, column by column; the others share a
general cluster with all that have the same key column.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tidings.atoms import Column
from tidings.compiler.plan import Compiled
from tidings.kernels import match as kernel
from tidings.kernels.encode import Codecs
from tidings.kernels.match import Clusters
from tidings.matching.access import is_derived
from tidings.matching.index.codecs import build_codecs
from tidings.matching.index.layout import Layout, best_cut, merge_tests
from tidings.matching.index.lowering import LoweredBlock, collect_constants, lower
from tidings.matching.index.reach import reach_groups

UNIFORM_FROM = 64
"""Fewer clauses of one shape are not worth a cluster of their own: each cluster is a visit per publication."""

SPARSE_BELOW = 4.0
"""If key and cut leave fewer clauses than this, comparing them in tiles gains nothing: they may stand with others."""

Signature = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class Built:
    """A segment's content: what the kernels read, and what its columns are called."""

    columns: tuple[Column, ...]
    codecs: Codecs
    clusters: Clusters


def build(compiled: Compiled) -> Built:
    """Lay compiled subscriptions out as a segment."""
    constants = collect_constants(compiled)
    columns = tuple(constants.columns)
    blocks = [
        lower(block, lots, constants)
        for block, lots in zip(compiled.blocks, constants.lots, strict=True)
        if len(block.rows)
    ]
    codecs = build_codecs(list(constants.columns.values()), {d.name: d for d in compiled.domains})
    uniform, mixed = _divide(blocks)
    layout = Layout(len(columns))
    for block in uniform:
        layout.add_uniform(block)
    for group in reach_groups(mixed, [is_derived(column) for column in columns]):
        layout.add_general(group)
    return Built(columns, codecs, layout.finish(compiled.subscriptions.num_rows))


def _divide(blocks: Sequence[LoweredBlock]) -> tuple[list[LoweredBlock], list[LoweredBlock]]:
    """Blocks that get uniform clusters, those of one shape merged, and blocks that share general ones."""
    groups: dict[Signature, list[LoweredBlock]] = defaultdict(list)
    mixed = [block for block in blocks if not _is_plain(block)]
    for block in blocks:
        if _is_plain(block):
            groups[_signature(block)].append(block)
    uniform: list[LoweredBlock] = []
    for group in groups.values():
        if sum(len(block.rows) for block in group) < UNIFORM_FROM:
            mixed.extend(group)
            continue
        merged = _merge(group)
        (mixed if _is_sparse(merged) else uniform).append(merged)
    return uniform, mixed


def _is_plain(block: LoweredBlock) -> bool:
    return all(test.plain for test in block.tests) and bool(block.key or block.tests)


def _is_sparse(block: LoweredBlock) -> bool:
    """Whether hardly any clauses are left in a bucket after the cut."""
    if block.key is None:
        return False
    cut = best_cut(block.tests)
    left = len(block.rows) * block.key.selectivity
    return left * (cut.selectivity if cut and cut.op == kernel.EQUAL else 1.0) < SPARSE_BELOW


def _signature(block: LoweredBlock) -> Signature:
    """What blocks of one uniform cluster have in common."""
    tests = sorted((t.column, t.op, t.floor, t.ceiling) for t in block.tests)
    return (block.key.column if block.key else -1, *tests)


def _merge(group: Sequence[LoweredBlock]) -> LoweredBlock:
    """Blocks of one signature as one, their tests in one order."""
    if len(group) == 1:
        return group[0]
    ordered = [sorted(b.tests, key=lambda t: (t.column, t.op, t.floor, t.ceiling)) for b in group]
    tests = tuple(merge_tests(same) for same in zip(*ordered, strict=True))
    keys = [block.key for block in group if block.key]
    return LoweredBlock(tests, merge_tests(keys) if keys else None, np.concatenate([b.rows for b in group]))
