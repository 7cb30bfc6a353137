"""Hiding: linear paths that few clauses ask about get no column of their own.

Random documents' subscriptions name thousands of linear paths, and a value would have to be coded for each that its tag
path matches. So only those that many clauses share are columns. Of a clause's other tests the equalities look at one
column for all of them, the values *anywhere*; the rest is left out. What was hidden is checked with the twig.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from tidings.atoms import Aspect, Column, PublicationKind
from tidings.documents.linear_paths import ANYWHERE
from tidings.matching.compiler.blocks import join_operands, take_operands, twigs_of
from tidings.matching.compiler.plan import (
    ClauseBlock,
    Compiled,
    IrregularClauses,
    IrregularTest,
    Operands,
    Relation,
    TestShape,
)

FEW_PATTERNS = 64
"""So few linear paths are all columns."""

COMMON = 1 / 4
"""Of more, those are that so large a share of the clauses asks about."""

Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class WithoutRareColumns:
    """Compiled subscriptions without rare columns, the linear paths whose values are looked at anywhere, and the twigs
    that have to be checked because of it.
    """

    compiled: Compiled
    patterns: tuple[str, ...]
    unsaid: Flags


def drop_rare_columns(compiled: Compiled) -> WithoutRareColumns:
    """Leave the columns that are worth it."""
    unsaid = np.zeros(len(compiled.twigs), np.bool_)
    rare = _rare(compiled)
    if not rare:
        return WithoutRareColumns(compiled, _anywhere(compiled, ()), unsaid)
    blocks = tuple(_hide_in_block(block, rare, unsaid) for block in compiled.blocks)
    loose = _hide_in_loose(compiled.loose, rare, unsaid)
    hidden = replace(compiled, blocks=blocks, loose=loose)
    return WithoutRareColumns(hidden, _anywhere(hidden, sorted(rare)), unsaid)


def _anywhere(compiled: Compiled, hidden: Sequence[str]) -> tuple[str, ...]:
    """The linear paths whose values count as values anywhere. That a document has any needs only its first element."""
    asked = any(
        test.column.path == ANYWHERE and test.relation is Relation.EXISTS for test, _ in _uses(compiled)
    )
    return (*hidden, *(["/*"] if asked else []))


def _uses(compiled: Compiled) -> Iterable[tuple[TestShape, int]]:
    """Every test of documents and how many clauses have it."""
    for block in compiled.blocks:
        yield from (
            (test, len(block.rows)) for test in block.shape if test.column.of is PublicationKind.DOCUMENT
        )
    yield from (
        (test.shape, len(test.clauses))
        for test in compiled.loose.tests
        if test.shape.column.of is PublicationKind.DOCUMENT
    )


def _rare(compiled: Compiled) -> frozenset[str]:
    counts: Counter[str] = Counter()
    for test, uses in _uses(compiled):
        counts[test.column.path] += uses
    del counts[ANYWHERE]
    if len(counts) <= FEW_PATTERNS:
        return frozenset()
    total = sum(len(block.rows) for block in compiled.blocks) + len(compiled.loose.rows)
    return frozenset(path for path, uses in counts.items() if uses < COMMON * total)


def _is_key(test: TestShape) -> bool:
    return (
        not test.negated
        and test.relation is Relation.EQ
        and test.column.aspect in (Aspect.VALUE, Aspect.NUMBER)
    )


def _elsewhere(test: TestShape) -> TestShape:
    """The same test, of values anywhere."""
    return replace(test, column=Column(ANYWHERE, test.column.aspect, of=PublicationKind.DOCUMENT))


def _hide_in_block(block: ClauseBlock, rare: frozenset[str], unsaid: Flags) -> ClauseBlock:
    """All clauses of a block have the same tests. One that would have none left keeps its first."""
    tests = list(zip(block.shape, block.operands, strict=True))
    is_rare = [test.column.of is PublicationKind.DOCUMENT and test.column.path in rare for test, _ in tests]
    if not any(is_rare):
        return block
    unsaid[block.twigs] = True
    held = [
        (_elsewhere(test) if hide else test, operands)
        for (test, operands), hide in zip(tests, is_rare, strict=True)
        if not hide or _is_key(test)
    ]
    held = held if any(not test.negated for test, _ in held) else _kept(tests)
    shape, operands = zip(*held, strict=True)
    return replace(block, shape=shape, operands=operands)


def _kept(tests: list[tuple[TestShape, Operands]]) -> list[tuple[TestShape, Operands]]:
    return [next(each for each in tests if not each[0].negated)]


def _hide_in_loose(loose: IrregularClauses, rare: frozenset[str], unsaid: Flags) -> IrregularClauses:
    """The same for loose clauses, test by test."""
    twigs, left = twigs_of(loose), np.zeros(len(loose.rows), np.bool_)
    kept: list[IrregularTest] = []
    keys: dict[Aspect, list[IrregularTest]] = {}
    dropped: list[IrregularTest] = []
    for test in loose.tests:
        if not (test.shape.column.of is PublicationKind.DOCUMENT and test.shape.column.path in rare):
            kept.append(test)
        elif _is_key(test.shape):
            keys.setdefault(test.shape.column.aspect, []).append(test)
        else:
            dropped.append(test)
            continue
        left[test.clauses] |= not test.shape.negated
    for test in (*dropped, *(test for held in keys.values() for test in held)):
        unsaid[twigs[test.clauses]] = True
    for held in keys.values():
        kept.extend(_gathered(held))
    for test in dropped:  # a clause with nothing else is reached through the first of these
        bare = np.flatnonzero(~left[test.clauses]) if not test.shape.negated else np.empty(0, np.int64)
        if len(bare):
            clauses = test.clauses[bare]
            kept.append(IrregularTest(test.shape, take_operands(test.operands, bare), clauses))
            left[clauses] = True
    return replace(loose, tests=tuple(kept))


def _gathered(tests: Sequence[IrregularTest]) -> Iterable[IrregularTest]:
    """Equalities of many columns as equalities of one. A clause may have several: the first of each, the second ..."""
    shape, operands = _elsewhere(tests[0].shape), join_operands([test.operands for test in tests])
    clauses = np.concatenate([test.clauses for test in tests])
    order = np.argsort(clauses, kind="stable")
    again = _rank(clauses[order])
    for rank in range(int(again.max()) + 1):
        places = order[again == rank]
        yield IrregularTest(shape, take_operands(operands, places), clauses[places])


def _rank(groups: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """Of sorted numbers, the how-manieth of its kind each is."""
    new = np.flatnonzero(np.concatenate(([True], groups[1:] != groups[:-1])))
    return np.arange(len(groups)) - np.repeat(new, np.diff(np.append(new, len(groups))))
