"""Rare columns: linear paths that few clauses test get no column of their own.

Subscriptions to varied documents name thousands of linear paths, and a value would be coded once for each
linear path that its tag path matches. So only linear paths that many clauses share become columns. Of the
other tests of a clause, equalities test one common column, the values *anywhere* in the document; the rest is
dropped. The twig of the clause is then checked, which repeats all its tests.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from tidings.atoms import Aspect, AtomShape, Column
from tidings.documents.linear_paths import ANYWHERE
from tidings.matching.compiler.blocks import join_operands, take_operands, twigs_of
from tidings.matching.compiler.plan import (
    ClauseBlock,
    Compiled,
    IrregularClauses,
    IrregularTest,
    Relation,
    TestShape,
)

FEW_PATTERNS = 64
"""Up to this number of linear paths, all of them are columns."""

COMMON = 1 / 4
"""If there are more, those are columns that at least this share of the clauses tests."""

Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class WithoutRareColumns:
    """Compiled subscriptions without rare columns.

    `patterns` are the linear paths whose values count as values anywhere, `must_check` marks the twigs that
    have to be checked because tests were dropped or moved.
    """

    compiled: Compiled
    patterns: tuple[str, ...]
    must_check: Flags


def drop_rare_columns(compiled: Compiled) -> WithoutRareColumns:
    """Keep only the columns that many clauses test."""
    must_check = np.zeros(len(compiled.twigs), np.bool_)
    rare = _find_rare_paths(compiled)
    if not rare:
        return WithoutRareColumns(compiled, _anywhere_patterns(compiled, ()), must_check)
    blocks = tuple(_reduce_block(block, rare, must_check) for block in compiled.blocks)
    irregular = _reduce_irregular(compiled.irregular, rare, must_check)
    reduced = replace(compiled, blocks=blocks, irregular=irregular)
    return WithoutRareColumns(reduced, _anywhere_patterns(reduced, sorted(rare)), must_check)


def _anywhere_patterns(compiled: Compiled, hidden: Sequence[str]) -> tuple[str, ...]:
    """Return the linear paths whose values count as values anywhere; `exists` needs only the root element."""
    tests_existence = any(
        test.column.path == ANYWHERE and test.relation is Relation.EXISTS for test, _ in _uses(compiled)
    )
    return (*hidden, *(["/*"] if tests_existence else []))


def _uses(compiled: Compiled) -> Iterable[tuple[TestShape, int]]:
    """Yield every test of documents with the number of clauses that have it."""
    for block in compiled.blocks:
        yield from ((test, len(block.rows)) for test in block.shape if test.column.shape is AtomShape.TREE)
    yield from (
        (test.shape, len(test.clauses))
        for test in compiled.irregular.tests
        if test.shape.column.shape is AtomShape.TREE
    )


def _find_rare_paths(compiled: Compiled) -> frozenset[str]:
    counts: Counter[str] = Counter()
    for test, uses in _uses(compiled):
        counts[test.column.path] += uses
    del counts[ANYWHERE]
    if len(counts) <= FEW_PATTERNS:
        return frozenset()
    total = sum(len(block.rows) for block in compiled.blocks) + len(compiled.irregular.rows)
    return frozenset(path for path, uses in counts.items() if uses < COMMON * total)


def _is_key(test: TestShape) -> bool:
    return (
        not test.negated
        and test.relation is Relation.EQ
        and test.column.aspect in (Aspect.VALUE, Aspect.NUMBER)
    )


def _move_anywhere(test: TestShape) -> TestShape:
    """Return the same test of the values anywhere."""
    return replace(test, column=Column(ANYWHERE, test.column.aspect, shape=AtomShape.TREE))


def _reduce_block(block: ClauseBlock, rare: frozenset[str], must_check: Flags) -> ClauseBlock:
    """Drop or move the rare tests of a block. A block without any positive test left keeps its first one."""
    tests = list(zip(block.shape, block.operands, strict=True))
    is_rare = [test.column.shape is AtomShape.TREE and test.column.path in rare for test, _ in tests]
    if not any(is_rare):
        return block
    must_check[block.twigs] = True
    checked = [
        (_move_anywhere(test) if hide else test, operands)
        for (test, operands), hide in zip(tests, is_rare, strict=True)
        if not hide or _is_key(test)
    ]
    if all(test.negated for test, _ in checked):
        checked = [next(entry for entry in tests if not entry[0].negated)]
    shape, operands = zip(*checked, strict=True)
    return replace(block, shape=shape, operands=operands)


def _reduce_irregular(
    irregular: IrregularClauses, rare: frozenset[str], must_check: Flags
) -> IrregularClauses:
    """Drop or move the rare tests of irregular clauses."""
    twigs, left = twigs_of(irregular), np.zeros(len(irregular.rows), np.bool_)
    checked: list[IrregularTest] = []
    keys: dict[Aspect, list[IrregularTest]] = {}
    dropped: list[IrregularTest] = []
    for test in irregular.tests:
        if not (test.shape.column.shape is AtomShape.TREE and test.shape.column.path in rare):
            checked.append(test)
        elif _is_key(test.shape):
            keys.setdefault(test.shape.column.aspect, []).append(test)
        else:
            dropped.append(test)
            continue
        left[test.clauses] |= not test.shape.negated
    for test in (*dropped, *(test for equalities in keys.values() for test in equalities)):
        must_check[twigs[test.clauses]] = True
    for equalities in keys.values():
        checked.extend(_gather_equalities(equalities))
    for test in dropped:  # a clause without any other positive test keeps the first of these
        bare = np.flatnonzero(~left[test.clauses]) if not test.shape.negated else np.empty(0, np.int64)
        if len(bare):
            clauses = test.clauses[bare]
            checked.append(IrregularTest(test.shape, take_operands(test.operands, bare), clauses))
            left[clauses] = True
    return replace(irregular, tests=tuple(checked))


def _gather_equalities(tests: Sequence[IrregularTest]) -> Iterable[IrregularTest]:
    """Merge equalities of many columns into tests of one column: the first of each clause, the second ..."""
    shape, operands = _move_anywhere(tests[0].shape), join_operands([test.operands for test in tests])
    clauses = np.concatenate([test.clauses for test in tests])
    order = np.argsort(clauses, kind="stable")
    ranks = _rank(clauses[order])
    for rank in range(int(ranks.max()) + 1):
        places = order[ranks == rank]
        yield IrregularTest(shape, take_operands(operands, places), clauses[places])


def _rank(groups: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """Return how often each of these sorted numbers has occurred before."""
    new = np.flatnonzero(np.concatenate(([True], groups[1:] != groups[:-1])))
    return np.arange(len(groups)) - np.repeat(new, np.diff(np.append(new, len(groups))))
