"""Lowering: the tests of clause blocks, as intervals and sets of codes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from tidings.atoms import Column
from tidings.compiler.plan import ClauseBlock, Compiled, Relation, TestShape
from tidings.kernels import match as kernel
from tidings.matching import access
from tidings.matching.index.arrays import starts_of
from tidings.matching.index.codecs import Codes, ColumnConstants, Lot, code_bounds

Offsets = npt.NDArray[np.int64]
Lots = tuple[Lot, ...]
_INT32 = np.iinfo(np.int32)
_UNIFORM = {
    Relation.EQ: kernel.EQUAL,
    Relation.LT: kernel.AT_MOST,
    Relation.LE: kernel.AT_MOST,
    Relation.GT: kernel.AT_LEAST,
    Relation.GE: kernel.AT_LEAST,
    Relation.BETWEEN: kernel.WITHIN,
}
_ITEMS = {Relation.NE: kernel.OUTSIDE, Relation.IN: kernel.MEMBER}


@dataclass(frozen=True, slots=True)
class LoweredTest:
    """A test over all rows of a block: a code satisfies row i when it is between low[i] and high[i].

    `op` is what a uniform cluster does with it, `item` what a general one does. For `in`, the codes of row i are
    members[offsets[i]:offsets[i + 1]], sorted. `selectivity` estimates how often it holds, from the constants alone.
    """

    column: int
    plain: bool
    op: int
    item: int
    negated: bool
    floor: int
    ceiling: int
    low: Codes
    high: Codes
    selectivity: float
    members: Codes | None = None
    offsets: npt.NDArray[np.int64] | None = None

    def take(self, rows: npt.NDArray[np.int64]) -> LoweredTest:
        """The same test for these rows of the block."""
        members, offsets = self.members, self.offsets
        if members is not None and offsets is not None:
            members, offsets = take_lists(members, offsets, rows)
        return replace(self, low=self.low[rows], high=self.high[rows], members=members, offsets=offsets)


@dataclass(frozen=True, slots=True)
class LoweredBlock:
    """Clauses of one shape: their tests, the key among them taken out, and the subscriptions they belong to."""

    tests: tuple[LoweredTest, ...]
    key: LoweredTest | None
    rows: npt.NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class Constants:
    """The columns some clause looks at, in order, and for each test of each block the lots of its operands."""

    columns: Mapping[Column, ColumnConstants]
    numbers: Mapping[Column, int]
    distinct: Mapping[Column, int]
    lots: Sequence[Sequence[Lots]]


def collect_constants(compiled: Compiled) -> Constants:
    """Bring the constants of all blocks together by column, and number them."""
    columns: dict[Column, ColumnConstants] = {}
    lots: list[list[Lots]] = []
    for block in compiled.blocks:
        lots.append([])
        for test, operands in zip(block.shape, block.operands, strict=True):
            if test.column not in columns:
                columns[test.column] = ColumnConstants(test.column)
            constants = columns[test.column]
            kept = (operands.values, operands.upper)
            lots[-1].append(
                tuple(
                    constants.add(literals, test.kind, test.relation)
                    for literals in kept
                    if literals is not None and test.kind is not None
                )
            )
    for constants in columns.values():
        constants.finish()
    ordered = dict(sorted(columns.items()))
    numbers = {column: number for number, column in enumerate(ordered)}
    return Constants(ordered, numbers, {c: each.distinct for c, each in ordered.items()}, lots)


def lower(block: ClauseBlock, lots: Sequence[Lots], constants: Constants) -> LoweredBlock:
    """A block in codes, with its key chosen."""
    tests = [
        _lower_test(test, operands.offsets, lot, constants, len(block.rows))
        for test, operands, lot in zip(block.shape, block.operands, lots, strict=True)
    ]
    members = {
        i: len(test.members) / max(1, len(block.rows))
        for i, test in enumerate(tests)
        if test.members is not None
    }
    key = access.key_of(block.shape, constants.distinct, members)
    if key is None:
        return LoweredBlock(tuple(tests), None, block.rows)
    chosen = tests.pop(key)
    if chosen.members is None or chosen.offsets is None:
        return LoweredBlock(tuple(tests), chosen, block.rows)
    # An `in` as key: a copy of the clause for each member.
    copies = np.repeat(np.arange(len(block.rows)), np.diff(chosen.offsets))
    copied = tuple(test.take(copies) for test in tests)
    member = replace(
        chosen, plain=True, op=kernel.EQUAL, item=kernel.INSIDE, low=chosen.members, high=chosen.members
    )
    return LoweredBlock(copied, replace(member, members=None, offsets=None), block.rows[copies])


def _lower_test(
    test: TestShape, offsets: Offsets | None, lots: Lots, constants: Constants, rows: int
) -> LoweredTest:
    column = constants.columns[test.column]
    floor, ceiling = code_bounds(test.column, test.kind)
    codes = [column.codes(lot) for lot in lots]
    members: Codes | None = None
    if offsets is not None:
        members, offsets = _member_lists(codes[0], offsets)
    low, high = _interval(test.relation, codes, rows, (floor, ceiling))
    return LoweredTest(
        column=constants.numbers[test.column],
        plain=access.is_plain(test),
        op=_UNIFORM.get(test.relation, kernel.NO_CUT),
        item=_ITEMS.get(test.relation, kernel.INSIDE),
        negated=test.negated,
        floor=floor,
        ceiling=ceiling,
        low=low,
        high=high,
        selectivity=_selectivity(test, column, low, high, floor),
        members=members,
        offsets=offsets,
    )


def _interval(
    relation: Relation, codes: Sequence[Codes], rows: int, ends: tuple[int, int]
) -> tuple[Codes, Codes]:
    """Between which codes a value satisfies each row; for `in`, whose codes are members, it says nothing."""
    if relation == Relation.EXISTS:
        ends = _INT32.min, _INT32.max
    if relation in (Relation.EXISTS, Relation.IN):
        return np.full(rows, ends[0], np.int32), np.full(rows, ends[1], np.int32)
    if relation in (Relation.LT, Relation.LE):
        return np.full(rows, ends[0], np.int32), codes[0] - np.int32(relation == Relation.LT)
    if relation in (Relation.GT, Relation.GE):
        return codes[0] + np.int32(relation == Relation.GT), np.full(rows, ends[1], np.int32)
    return codes[0], codes[-1]


def _selectivity(test: TestShape, column: ColumnConstants, low: Codes, high: Codes, floor: int) -> float:
    """How often the test holds, if values are spread over the codes as evenly as the constants are."""
    if test.relation in (Relation.EQ, Relation.IN) or not len(low):
        return 1.0 / max(1, column.distinct)
    span = column.span(test.kind)
    wide = min(float(high.sum(dtype=np.int64)) / len(high), floor + span)
    wide -= max(float(low.sum(dtype=np.int64)) / len(low), floor)
    return min(1.0, max(0.0, wide / span))


def _member_lists(codes: Codes, offsets: Offsets) -> tuple[Codes, Offsets]:
    """Each row's members as sorted codes, without repetition."""
    owner = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    order = np.lexsort((codes, owner))
    codes, owner = codes[order], owner[order]
    new = np.ones(len(codes), bool)
    new[1:] = (codes[1:] != codes[:-1]) | (owner[1:] != owner[:-1])
    counts = np.bincount(owner[new], minlength=len(offsets) - 1)
    return codes[new], starts_of(counts)


def take_lists(
    items: npt.NDArray[np.int32], offsets: npt.NDArray[np.int64], rows: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int64]]:
    """The lists of these rows, one after the other."""
    index, starts = list_index(offsets, rows)
    return items[index], starts


def list_index(
    offsets: npt.NDArray[np.int64], rows: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Where the items of these rows' lists stand, and where each list begins in that order."""
    counts = offsets[rows + 1] - offsets[rows]
    starts = starts_of(counts)
    index = np.arange(starts[-1]) + np.repeat(offsets[rows] - starts[:-1], counts)
    return index, starts
