"""Lowering: turns the tests of compiled subscriptions into intervals and sets of codes in one clause table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidings.atoms import Aspect, AtomShape, Column
from tidings.matching.array_functions import starts_of
from tidings.matching.compiler.blocks import twigs_of
from tidings.matching.compiler.plan import Compiled, Operands, Relation, TestShape
from tidings.matching.index.builder.clause_table import (
    ANY_KIND,
    ODD_FORM,
    ClauseTable,
    Shares,
    hash_test,
    make_form,
)
from tidings.matching.index.builder.codecs import Codes, ColumnConstants, Lot, code_bounds
from tidings.matching.kernels import clusters as kernel

Offsets = npt.NDArray[np.int64]
ClauseSelection = Any
"""Selection of clauses: a slice for those of a block, numbers for irregular ones."""

_BOUND_OPS = {
    Relation.EQ: kernel.EQUAL,
    Relation.LT: kernel.AT_MOST,
    Relation.LE: kernel.AT_MOST,
    Relation.GT: kernel.AT_LEAST,
    Relation.GE: kernel.AT_LEAST,
    Relation.BETWEEN: kernel.WITHIN,
}
_ITEM_OPS = {Relation.NE: kernel.OUTSIDE, Relation.IN: kernel.MEMBER}


@dataclass(frozen=True, slots=True)
class TestSource:
    """One test of many clauses, with the lots that hold its operands."""

    shape: TestShape
    operands: Operands
    where: ClauseSelection
    rows: int
    lots: tuple[Lot, ...]


@dataclass(frozen=True, slots=True)
class Constants:
    """The columns that clauses test, in order, and every test with the lots of its operands."""

    columns: Mapping[Column, ColumnConstants]
    numbers: Mapping[Column, int]
    blocks: Sequence[Sequence[TestSource]]
    irregular: Sequence[TestSource]


@dataclass(frozen=True, slots=True)
class LoweredTests:
    """A test source in codes. `members` and `offsets` are the sets of an `in`."""

    where: ClauseSelection
    column: int
    form: int
    op: int
    low: Codes
    high: Codes
    share: float | Shares
    members: Codes | None = None
    offsets: Offsets | None = None


def collect_constants(compiled: Compiled) -> Constants:
    """Collect the constants of all tests by column, and code them."""
    columns = _Columns(compiled.twigs.strings)
    blocks, first = [], 0
    for block in compiled.blocks:
        where = slice(first, first + len(block.rows))
        tests = zip(block.shape, block.operands, strict=True)
        blocks.append([_add_source(s, o, where, len(block.rows), columns) for s, o in tests])
        first += len(block.rows)
    irregular = [
        _add_source(test.shape, test.operands, first + test.clauses, len(test.clauses), columns)
        for test in compiled.irregular.tests
    ]
    for constants in columns.values():
        constants.finish()
    ordered = dict(sorted(columns.items()))
    return Constants(ordered, {column: n for n, column in enumerate(ordered)}, blocks, irregular)


class _Columns(dict[Column, ColumnConstants]):
    """Constants by column. Value columns of documents share the strings of all twigs, which repeat every test."""

    def __init__(self, strings: pa.Array) -> None:
        super().__init__()
        self._strings = strings

    def __missing__(self, column: Column) -> ColumnConstants:
        shared = column.shape is AtomShape.TREE and column.aspect is Aspect.VALUE
        self[column] = ColumnConstants(column, self._strings if shared else None)
        return self[column]


def _add_source(
    shape: TestShape, operands: Operands, where: ClauseSelection, rows: int, columns: _Columns
) -> TestSource:
    constants = columns[shape.column]
    constants.equals &= shape.relation in (Relation.EQ, Relation.IN)
    lots = tuple(
        constants.add(literals, shape.kind, shape.relation)
        for literals in (operands.values, operands.upper)
        if literals is not None and shape.kind is not None
    )
    return TestSource(shape, operands, where, rows, lots)


def lower_clauses(compiled: Compiled, constants: Constants) -> ClauseTable:
    """Write the tests of all clauses into one table of codes."""
    blocks = [_lower_all(block, constants) for block in constants.blocks]
    irregular = _lower_all(constants.irregular, constants)
    subscription = np.concatenate([*(block.rows for block in compiled.blocks), compiled.irregular.rows])
    twig = np.concatenate([*map(twigs_of, compiled.blocks), twigs_of(compiled.irregular)])
    return _TableBuilder(subscription.astype(np.int32), twig, blocks, irregular).build()


def _lower_all(sources: Sequence[TestSource], constants: Constants) -> list[LoweredTests]:
    tests = [_lower(source, constants) for source in sources]
    return sorted(tests, key=lambda test: (test.column, test.form, test.op))


def _lower(source: TestSource, constants: Constants) -> LoweredTests:
    shape = source.shape
    column = constants.columns[shape.column]
    bounds = code_bounds(shape.column, shape.kind)
    codes = [column.codes(lot) for lot in source.lots]
    members, offsets = None, source.operands.offsets
    if offsets is not None:
        members, offsets = _member_lists(codes[0], offsets)
    low, high = _interval(shape.relation, codes, source.rows, bounds)
    return LoweredTests(
        source.where,
        constants.numbers[shape.column],
        _form(shape),
        _ITEM_OPS.get(shape.relation, kernel.INSIDE) + kernel.NEGATED * shape.negated,
        low,
        high,
        _share(shape, column, codes, (low, high), bounds[0]),
        members,
        offsets,
    )


def _form(shape: TestShape) -> int:
    if shape.negated or shape.relation not in _BOUND_OPS:
        return ODD_FORM
    op = _BOUND_OPS[shape.relation]
    one_sided = op in (kernel.AT_LEAST, kernel.AT_MOST) and shape.column.aspect <= Aspect.INSTANT
    # Two bounds exclude other kinds by themselves; one bound does not: no string is at most a number.
    return make_form(op, int(shape.kind) if one_sided and shape.kind is not None else ANY_KIND)


def _interval(
    relation: Relation, codes: Sequence[Codes], rows: int, bounds: tuple[int, int]
) -> tuple[Codes, Codes]:
    """Return the codes between which a value satisfies each row; for `in`, the interval is not used."""
    if relation == Relation.EXISTS:
        bounds = 0, kernel.LAST
    if relation in (Relation.EXISTS, Relation.IN):
        return np.full(rows, bounds[0], np.int32), np.full(rows, bounds[1], np.int32)
    if relation in (Relation.LT, Relation.LE):
        return np.full(rows, bounds[0], np.int32), codes[0] - np.int32(relation == Relation.LT)
    if relation in (Relation.GT, Relation.GE):
        return codes[0] + np.int32(relation == Relation.GT), np.full(rows, bounds[1], np.int32)
    return codes[0], codes[-1]


def _share(
    shape: TestShape,
    column: ColumnConstants,
    codes: Sequence[Codes],
    interval: tuple[Codes, Codes],
    floor: int,
) -> float | Shares:
    """Estimate how often the test holds in each row, assuming that values are distributed like the constants."""
    if shape.negated or shape.relation in (Relation.NE, Relation.EXISTS):
        return 1.0
    low, high = interval
    if not len(low):
        return 1.0
    if shape.relation is Relation.EQ:
        return column.frequency(codes[0])
    if shape.relation is Relation.IN:
        return 1.0 / max(1, column.distinct)
    span = column.span(shape.kind)
    width = min(float(high.sum(dtype=np.int64)) / len(high), floor + span)
    width -= max(float(low.sum(dtype=np.int64)) / len(low), floor)
    return min(1.0, max(0.0, width / span))


def _member_lists(codes: Codes, offsets: Offsets) -> tuple[Codes, Offsets]:
    """Sort the members of each row, and remove duplicates."""
    owner = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    order = np.lexsort((codes, owner))
    codes, owner = codes[order], owner[order]
    new = np.ones(len(codes), bool)
    new[1:] = (codes[1:] != codes[:-1]) | (owner[1:] != owner[:-1])
    counts = np.bincount(owner[new], minlength=len(offsets) - 1)
    return codes[new], starts_of(counts)


class _TableBuilder:
    """Fills the clause table test by test."""

    def __init__(
        self,
        subscription: npt.NDArray[np.int32],
        twig: npt.NDArray[np.int32],
        blocks: Sequence[Sequence[LoweredTests]],
        irregular: Sequence[LoweredTests],
    ) -> None:
        self._subscription, self._twig, self._blocks, self._irregular = subscription, twig, blocks, irregular
        count = len(subscription)
        counts = np.zeros(count, np.int64)
        for test in (*(test for block in blocks for test in block), *irregular):
            counts[test.where] += 1
        self._starts = starts_of(counts)
        size = int(self._starts[-1])
        self._column, self._share = np.empty(size, np.int32), np.empty(size, np.float32)
        self._form, self._op = np.empty(size, np.uint8), np.empty(size, np.uint8)
        self._low, self._high = np.empty(size, np.int32), np.empty(size, np.int32)
        self._signature, self._plain = np.zeros(count, np.uint64), counts > 0
        self._sets: list[Codes] = []
        self._set_sizes: list[npt.NDArray[np.int64]] = []
        self._set_count = 0

    def build(self) -> ClauseTable:
        for block in self._blocks:
            for place, test in enumerate(block):
                # The tests of a block are a matrix: a strided view is much cheaper to fill than scattered places.
                first = int(self._starts[test.where.start]) + place
                last = int(self._starts[test.where.stop])
                self._put(test, slice(first, last, len(block)))
        following = self._starts[:-1].copy()
        for test in self._irregular:
            self._put(test, following[test.where])
            following[test.where] += 1
        set_start = starts_of(np.concatenate(self._set_sizes)) if self._set_sizes else np.zeros(1, np.int64)
        set_code = np.concatenate(self._sets) if self._sets else np.empty(0, np.int32)
        return ClauseTable(
            self._subscription, self._twig, self._starts, self._column, self._form, self._op, self._low, self._high,
            self._share, set_start, set_code, self._signature, self._plain,
        )  # fmt: skip

    def _put(self, test: LoweredTests, places: Any) -> None:
        self._column[places], self._form[places] = test.column, test.form
        self._op[places], self._share[places] = test.op, test.share
        self._low[places], self._high[places] = test.low, test.high
        self._signature[test.where] += hash_test(test.column, test.form)
        self._plain[test.where] &= test.form != ODD_FORM
        if test.members is None or test.offsets is None:
            return
        sizes = np.diff(test.offsets)
        self._low[places] = self._set_count + np.arange(len(sizes))
        self._share[places] = np.minimum(1.0, test.share * sizes)
        self._sets.append(test.members)
        self._set_sizes.append(sizes)
        self._set_count += len(sizes)
