"""Lowering: the tests of clause blocks, as intervals and sets of codes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tidings.atoms import Column
from tidings.compiler.plan import ClauseBlock, Compiled, Operands, Relation, TestShape
from tidings.kernels import match as kernel
from tidings.matching import access
from tidings.matching.index.codecs import Codes, ColumnConstants, code_bounds
from tidings.values import Kind

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
        return LoweredTest(
            self.column,
            self.plain,
            self.op,
            self.item,
            self.negated,
            self.floor,
            self.ceiling,
            self.low[rows],
            self.high[rows],
            self.selectivity,
            members,
            offsets,
        )


@dataclass(frozen=True, slots=True)
class LoweredBlock:
    """Clauses of one shape: their tests, the key among them taken out, and the subscriptions they belong to."""

    tests: tuple[LoweredTest, ...]
    key_column: int
    key: Codes
    rows: npt.NDArray[np.int32]


def collect_constants(compiled: Compiled) -> dict[Column, ColumnConstants]:
    """The constants of every column that some clause looks at, sorted and ready to be asked for codes."""
    columns: dict[Column, ColumnConstants] = {}
    for block in compiled.blocks:
        for test, operands in zip(block.shape, block.operands, strict=True):
            constants = columns.setdefault(test.column, ColumnConstants(test.column))
            for literals in (operands.values, operands.upper):
                if literals is not None and test.kind is not None:
                    constants.add(literals, test.kind, test.relation)
    for constants in columns.values():
        constants.finish()
    return dict(sorted(columns.items()))


def lower(block: ClauseBlock, columns: Mapping[Column, ColumnConstants]) -> LoweredBlock:
    """A block in codes, with its key chosen."""
    numbers = {column: i for i, column in enumerate(columns)}
    tests = [
        _lower_test(test, operands, columns[test.column], numbers[test.column], len(block.rows))
        for test, operands in zip(block.shape, block.operands, strict=True)
    ]
    distinct = {column: constants.distinct for column, constants in columns.items()}
    members = {
        i: len(test.members) / max(1, len(block.rows))
        for i, test in enumerate(tests)
        if test.members is not None
    }
    key = access.key_of(block.shape, distinct, members)
    if key is None:
        return LoweredBlock(tuple(tests), -1, np.empty(0, np.int32), block.rows)
    chosen = tests.pop(key)
    if chosen.members is None or chosen.offsets is None:
        return LoweredBlock(tuple(tests), chosen.column, chosen.low, block.rows)
    # An `in` as key: a copy of the clause for each member.
    copies = np.repeat(np.arange(len(block.rows)), np.diff(chosen.offsets))
    copied = tuple(test.take(copies) for test in tests)
    return LoweredBlock(copied, chosen.column, chosen.members, block.rows[copies])


def _lower_test(
    test: TestShape, operands: Operands, constants: ColumnConstants, column: int, rows: int
) -> LoweredTest:
    floor, ceiling = code_bounds(test.column, test.kind)
    op = _UNIFORM.get(test.relation, kernel.NO_CUT)
    item = _ITEMS.get(test.relation, kernel.INSIDE)
    low, high = np.full(rows, floor, np.int32), np.full(rows, ceiling, np.int32)
    members = offsets = None
    if test.relation == Relation.EXISTS:
        low, high = np.full(rows, _INT32.min, np.int32), np.full(rows, _INT32.max, np.int32)
    elif test.relation == Relation.IN:
        members, offsets = _member_lists(operands, constants, test.kind)
    else:
        low, high = _interval(test, operands, constants, low, high)
    span = max(1.0, 2.0 * constants.distinct)
    width = 1.0 / max(1, constants.distinct)
    if test.relation not in (Relation.EQ, Relation.IN) and rows:
        wide = np.minimum(high.astype(np.float64), floor + span) - np.maximum(low, floor)
        width = float(np.clip(wide.mean() / span, 0.0, 1.0))
    plain = access.is_plain(test)
    return LoweredTest(
        column, plain, op, item, test.negated, floor, ceiling, low, high, width, members, offsets
    )


def _interval(
    test: TestShape, operands: Operands, constants: ColumnConstants, low: Codes, high: Codes
) -> tuple[Codes, Codes]:
    if test.kind is None or operands.values is None:
        raise ValueError(f"a test with {test.relation.name} needs an operand")
    codes = constants.codes(operands.values, test.kind)
    if test.relation in (Relation.EQ, Relation.NE):
        return codes, codes
    if test.relation in (Relation.LT, Relation.LE):
        return low, codes - np.int32(test.relation == Relation.LT)
    if test.relation in (Relation.GT, Relation.GE):
        return codes + np.int32(test.relation == Relation.GT), high
    if operands.upper is None:
        raise ValueError("BETWEEN needs an upper operand")
    return codes, constants.codes(operands.upper, test.kind)


def _member_lists(
    operands: Operands, constants: ColumnConstants, kind: Kind | None
) -> tuple[Codes, npt.NDArray[np.int64]]:
    """Each row's members as sorted codes, without repetition."""
    if operands.offsets is None or operands.values is None or kind is None:
        raise ValueError("IN needs lists of operands")
    codes = constants.codes(operands.values, kind)
    owner = np.repeat(np.arange(len(operands.offsets) - 1), np.diff(operands.offsets))
    order = np.lexsort((codes, owner))
    codes, owner = codes[order], owner[order]
    new = np.ones(len(codes), bool)
    new[1:] = (codes[1:] != codes[:-1]) | (owner[1:] != owner[:-1])
    counts = np.bincount(owner[new], minlength=len(operands.offsets) - 1)
    return codes[new], np.concatenate(([0], np.cumsum(counts))).astype(np.int64)


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
    starts = np.concatenate(([0], np.cumsum(counts))).astype(np.int64)
    index = np.arange(starts[-1]) + np.repeat(offsets[rows] - starts[:-1], counts)
    return index, starts
