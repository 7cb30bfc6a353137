"""Lowering: the tests of compiled subscriptions, as intervals and sets of codes in one table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidings.atoms import Aspect, Column, PublicationKind
from tidings.matching.compiler.blocks import twigs_of
from tidings.matching.compiler.plan import Compiled, Operands, Relation, TestShape
from tidings.matching.index import access
from tidings.matching.index.arrays import starts_of
from tidings.matching.index.clause_table import ANY_KIND, ODD_FORM, ClauseTable, Shares, form_of, mark_of
from tidings.matching.index.codecs import Codes, ColumnConstants, Lot, code_bounds
from tidings.matching.kernels import clusters as kernel

Offsets = npt.NDArray[np.int64]
Where = Any
"""Which clauses: a slice for those of a block, numbers for loose ones."""

_OPS = {
    Relation.EQ: kernel.EQUAL,
    Relation.LT: kernel.AT_MOST,
    Relation.LE: kernel.AT_MOST,
    Relation.GT: kernel.AT_LEAST,
    Relation.GE: kernel.AT_LEAST,
    Relation.BETWEEN: kernel.WITHIN,
}
_ITEMS = {Relation.NE: kernel.OUTSIDE, Relation.IN: kernel.MEMBER}


@dataclass(frozen=True, slots=True)
class Source:
    """One test over many clauses, with the lots its operands were put in."""

    shape: TestShape
    operands: Operands
    where: Where
    rows: int
    lots: tuple[Lot, ...]


@dataclass(frozen=True, slots=True)
class Constants:
    """The columns some clause looks at, in order, and every test with the lots of its operands."""

    columns: Mapping[Column, ColumnConstants]
    numbers: Mapping[Column, int]
    blocks: Sequence[Sequence[Source]]
    loose: Sequence[Source]


@dataclass(frozen=True, slots=True)
class LoweredTests:
    """A source in codes. `members` and `offsets` are the sets of an `in`."""

    where: Where
    column: int
    form: int
    op: int
    low: Codes
    high: Codes
    share: float | Shares
    members: Codes | None = None
    offsets: Offsets | None = None


def collect_constants(compiled: Compiled) -> Constants:
    """Bring the constants of all tests together by column, and number them."""
    columns = _Columns(compiled.twigs.strings)
    blocks, first = [], 0
    for block in compiled.blocks:
        where = slice(first, first + len(block.rows))
        tests = zip(block.shape, block.operands, strict=True)
        blocks.append([_source(s, o, where, len(block.rows), columns) for s, o in tests])
        first += len(block.rows)
    loose = [
        _source(t.shape, t.operands, first + t.clauses, len(t.clauses), columns) for t in compiled.loose.tests
    ]
    for constants in columns.values():
        constants.finish()
    ordered = dict(sorted(columns.items()))
    return Constants(ordered, {column: n for n, column in enumerate(ordered)}, blocks, loose)


class _Columns(dict[Column, ColumnConstants]):
    """Columns as they come. Those of documents' values have the strings of all twigs: every test is said there, too."""

    def __init__(self, strings: pa.Array) -> None:
        super().__init__()
        self._strings = strings

    def __missing__(self, column: Column) -> ColumnConstants:
        shared = column.of is PublicationKind.DOCUMENT and column.aspect is Aspect.VALUE
        self[column] = ColumnConstants(column, self._strings if shared else None)
        return self[column]


def _source(shape: TestShape, operands: Operands, where: Where, rows: int, columns: _Columns) -> Source:
    held = columns[shape.column]
    held.equals &= shape.relation in (Relation.EQ, Relation.IN)
    given = (operands.values, operands.upper)
    lots = tuple(
        held.add(literals, shape.kind, shape.relation)
        for literals in given
        if literals is not None and shape.kind is not None
    )
    return Source(shape, operands, where, rows, lots)


def lower(compiled: Compiled, constants: Constants) -> ClauseTable:
    """All clauses in codes."""
    blocks = [sorted(map(_Lower(constants), block), key=_place) for block in constants.blocks]
    loose = sorted(map(_Lower(constants), constants.loose), key=_place)
    subscription = np.concatenate([*(block.rows for block in compiled.blocks), compiled.loose.rows])
    twig = np.concatenate([*map(twigs_of, compiled.blocks), twigs_of(compiled.loose)])
    table = _Table(subscription.astype(np.int32), twig, blocks, loose)
    return table.filled()


def _place(test: LoweredTests) -> tuple[int, int, int]:
    return test.column, test.form, test.op


class _Lower:
    """Lowers one source after another."""

    def __init__(self, constants: Constants) -> None:
        self._constants = constants

    def __call__(self, source: Source) -> LoweredTests:
        shape = source.shape
        column = self._constants.columns[shape.column]
        ends = code_bounds(shape.column, shape.kind)
        codes = [column.codes(lot) for lot in source.lots]
        members, offsets = None, source.operands.offsets
        if offsets is not None:
            members, offsets = _member_lists(codes[0], offsets)
        low, high = _interval(shape.relation, codes, source.rows, ends)
        return LoweredTests(
            source.where,
            self._constants.numbers[shape.column],
            _form(shape),
            _ITEMS.get(shape.relation, kernel.INSIDE) + kernel.NEGATED * shape.negated,
            low,
            high,
            _share(shape, column, codes, (low, high), ends[0]),
            members,
            offsets,
        )


def _form(shape: TestShape) -> int:
    if not access.is_plain(shape):
        return ODD_FORM
    op = _OPS[shape.relation]
    one_sided = op in (kernel.AT_LEAST, kernel.AT_MOST) and shape.column.aspect <= Aspect.INSTANT
    # Two bounds keep other kinds out by themselves, one does not: no string is at most a number.
    return form_of(op, int(shape.kind) if one_sided and shape.kind is not None else ANY_KIND)


def _interval(
    relation: Relation, codes: Sequence[Codes], rows: int, ends: tuple[int, int]
) -> tuple[Codes, Codes]:
    """Between which codes a value satisfies each row; for `in`, whose codes are members, it says nothing."""
    if relation == Relation.EXISTS:
        ends = 0, kernel.LAST
    if relation in (Relation.EXISTS, Relation.IN):
        return np.full(rows, ends[0], np.int32), np.full(rows, ends[1], np.int32)
    if relation in (Relation.LT, Relation.LE):
        return np.full(rows, ends[0], np.int32), codes[0] - np.int32(relation == Relation.LT)
    if relation in (Relation.GT, Relation.GE):
        return codes[0] + np.int32(relation == Relation.GT), np.full(rows, ends[1], np.int32)
    return codes[0], codes[-1]


def _share(
    shape: TestShape,
    column: ColumnConstants,
    codes: Sequence[Codes],
    interval: tuple[Codes, Codes],
    floor: int,
) -> float | Shares:
    """How often the test holds in each row, if values are spread as the constants are."""
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


class _Table:
    """The table of all tests, filled test by test."""

    def __init__(
        self,
        subscription: npt.NDArray[np.int32],
        twig: npt.NDArray[np.int32],
        blocks: Sequence[Sequence[LoweredTests]],
        loose: Sequence[LoweredTests],
    ) -> None:
        self._subscription, self._twig, self._blocks, self._loose = subscription, twig, blocks, loose
        count = len(subscription)
        counts = np.zeros(count, np.int64)
        for test in self._all():
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

    def _all(self) -> list[LoweredTests]:
        return [test for block in self._blocks for test in block] + list(self._loose)

    def filled(self) -> ClauseTable:
        for block in self._blocks:
            for place, test in enumerate(block):
                # A block's tests stand as a matrix: a strided view is much cheaper to fill than scattered places.
                first = int(self._starts[test.where.start]) + place
                last = int(self._starts[test.where.stop])
                self._put(test, slice(first, last, len(block)))
        following = self._starts[:-1].copy()
        for test in self._loose:
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
        self._signature[test.where] += mark_of(test.column, test.form)
        self._plain[test.where] &= test.form != ODD_FORM
        if test.members is None or test.offsets is None:
            return
        sizes = np.diff(test.offsets)
        self._low[places] = self._set_count + np.arange(len(sizes))
        self._share[places] = np.minimum(1.0, test.share * sizes)
        self._sets.append(test.members)
        self._set_sizes.append(sizes)
        self._set_count += len(sizes)
