"""Blocks of clauses: clauses of one shape with their operands as columns; packing, joining, selecting, unpacking."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidings.matching.array_functions import list_index, starts_of
from tidings.matching.compiler.plan import (
    NO_TWIGS,
    Clause,
    ClauseBlock,
    Compiled,
    IrregularClauses,
    IrregularTest,
    Literals,
    Numbers,
    Operands,
    Plan,
    Relation,
    Test,
    TestShape,
)
from tidings.values import Instant, Kind, Literal, split_number

Places = npt.NDArray[np.int64]


def pack(plans: Mapping[int, Plan]) -> list[ClauseBlock]:
    """Pack the clauses of plans, by row, into one block for each shape."""
    grouped: dict[tuple[TestShape, ...], list[tuple[int, Clause]]] = {}
    for row, plan in plans.items():
        for clause in plan.clauses:
            grouped.setdefault(tuple(test.shape for test in clause), []).append((row, clause))
    return [_block(shape, members) for shape, members in grouped.items()]


def _block(shape: tuple[TestShape, ...], members: list[tuple[int, Clause]]) -> ClauseBlock:
    columns = [[clause[place].operand for _, clause in members] for place in range(len(shape))]
    operands = tuple(operands_of(test, column) for test, column in zip(shape, columns, strict=True))
    return ClauseBlock(shape, operands, np.array([row for row, _ in members], np.int32))


def operands_of(test: TestShape, column: Sequence[Any]) -> Operands:
    """Return the operands of one test in many clauses, as columns."""
    if test.kind is None:
        return Operands()
    if test.relation is Relation.BETWEEN:
        lows, highs = zip(*column, strict=True)
        return Operands(literal_column(test.kind, lows), literal_column(test.kind, highs))
    if test.relation is Relation.IN:
        flat = [literal for literals in column for literal in literals]
        return Operands(literal_column(test.kind, flat), offsets=starts_of([len(each) for each in column]))
    return Operands(literal_column(test.kind, column))


def literal_column(kind: Kind, literals: Sequence[Any]) -> Literals:
    """Return literals of one kind as a column."""
    if kind is Kind.NUMBER:
        pairs = [split_number(number) for number in literals]
        return Numbers(
            np.array([nearest for nearest, _ in pairs], np.float64),
            np.array([rest for _, rest in pairs], np.int64),
        )
    if kind is Kind.STRING:
        return pa.array([literal.encode() for literal in literals], pa.binary())
    if kind is Kind.INSTANT:
        return np.array([literal.micros for literal in literals], np.int64)
    return np.array(literals, np.bool_)


BLOCK_FROM = 32
"""Fewer clauses of one shape are kept irregular: a million shapes must not become a million blocks."""


def to_irregular(blocks: Iterable[ClauseBlock]) -> tuple[list[ClauseBlock], IrregularClauses]:
    """Return the blocks that are large enough, and the clauses of the others test by test."""
    regular: list[ClauseBlock] = []
    rows: list[Any] = []
    twigs: list[Any] = []
    parts: dict[tuple[TestShape, int], list[tuple[Operands, Any]]] = {}
    count = 0
    for block in blocks:
        if len(block.rows) >= BLOCK_FROM:
            regular.append(block)
            continue
        clauses = np.arange(count, count + len(block.rows), dtype=np.int32)
        seen: Counter[TestShape] = Counter()
        for shape, operands in zip(block.shape, block.operands, strict=True):
            parts.setdefault((shape, seen[shape]), []).append((operands, clauses))
            seen[shape] += 1
        rows.append(block.rows)
        twigs.append(twigs_of(block))
        count += len(block.rows)
    if not rows:
        return regular, IrregularClauses()
    tests = tuple(_join_test(shape, pieces) for (shape, _), pieces in parts.items())
    return regular, IrregularClauses(np.concatenate(rows), tests, np.concatenate(twigs))


def twigs_of(clauses: ClauseBlock | IrregularClauses) -> npt.NDArray[np.int32]:
    """Return the number of each clause's twig; -1 for clauses about events."""
    return clauses.twigs if len(clauses.twigs) else np.full(len(clauses.rows), -1, np.int32)


def join_irregular(parts: Sequence[IrregularClauses]) -> IrregularClauses:
    """Join the irregular clauses of several compilations."""
    parts = [part for part in parts if len(part.rows)]
    if len(parts) == 1:
        return parts[0]
    pieces: dict[tuple[TestShape, int], list[tuple[Operands, Any]]] = {}
    first = 0
    for part in parts:
        seen: dict[TestShape, int] = {}
        for test in part.tests:
            again = seen[test.shape] = seen.get(test.shape, -1) + 1
            pieces.setdefault((test.shape, again), []).append((test.operands, test.clauses + np.int32(first)))
        first += len(part.rows)
    rows = np.concatenate([np.empty(0, np.int32), *(part.rows for part in parts)])
    twigs = np.concatenate([NO_TWIGS, *(twigs_of(part) for part in parts)])
    return IrregularClauses(
        rows, tuple(_join_test(shape, same) for (shape, _), same in pieces.items()), twigs
    )


def take_irregular(irregular: IrregularClauses, mask: npt.NDArray[np.bool_]) -> IrregularClauses:
    """Select irregular clauses, and number them again."""
    numbers = (np.cumsum(mask) - 1).astype(np.int32)
    tests = []
    for test in irregular.tests:
        places = np.flatnonzero(mask[test.clauses])
        if len(places):
            operands = take_operands(test.operands, places)
            tests.append(IrregularTest(test.shape, operands, numbers[test.clauses[places]]))
    return IrregularClauses(irregular.rows[mask], tuple(tests), twigs_of(irregular)[mask])


def _join_test(shape: TestShape, parts: Sequence[tuple[Operands, Any]]) -> IrregularTest:
    operands, clauses = zip(*parts, strict=True)
    return IrregularTest(shape, join_operands(operands), np.concatenate(clauses))


def merge(blocks: Iterable[ClauseBlock]) -> list[ClauseBlock]:
    """Merge blocks of the same shape."""
    grouped: dict[tuple[TestShape, ...], list[ClauseBlock]] = {}
    for block in blocks:
        grouped.setdefault(block.shape, []).append(block)
    return [same[0] if len(same) == 1 else _join_blocks(same) for same in grouped.values()]


def _join_blocks(blocks: list[ClauseBlock]) -> ClauseBlock:
    columns = zip(*(block.operands for block in blocks), strict=True)
    rows = np.concatenate([block.rows for block in blocks])
    twigs = np.concatenate([twigs_of(block) for block in blocks])
    return ClauseBlock(blocks[0].shape, tuple(join_operands(column) for column in columns), rows, twigs)


def join_operands(column: Sequence[Operands]) -> Operands:
    """Join the operands of the same test in several lots of clauses."""
    return Operands(
        join_literals([each.values for each in column]),
        join_literals([each.upper for each in column]),
        _join_offsets([each.offsets for each in column if each.offsets is not None]),
    )


def join_literals(parts: Sequence[Any]) -> Any:
    """Concatenate columns of one kind."""
    if parts[0] is None:
        return None
    if isinstance(parts[0], Numbers):
        nearest, remainder = zip(*((part.nearest, part.rest) for part in parts), strict=True)
        return Numbers(np.concatenate(nearest), np.concatenate(remainder))
    return pa.concat_arrays(parts) if isinstance(parts[0], pa.Array) else np.concatenate(parts)


def _join_offsets(parts: Sequence[Any]) -> Any:
    if not parts:
        return None
    starts = np.cumsum([0, *(part[-1] for part in parts[:-1])])
    moved = [part[1:] + start for part, start in zip(parts, starts, strict=True)]
    return np.concatenate([[0], *moved]).astype(np.int64)


def take(block: ClauseBlock, places: Places) -> ClauseBlock:
    """Select the clauses at these places of a block."""
    operands = tuple(take_operands(each, places) for each in block.operands)
    return ClauseBlock(
        block.shape, operands, block.rows[places], block.twigs[places] if len(block.twigs) else NO_TWIGS
    )


def take_operands(operands: Operands, places: Places) -> Operands:
    """Select the operands of the clauses at these places."""
    if operands.offsets is not None and operands.values is not None:
        inside, offsets = list_index(operands.offsets, places)
        return Operands(take_literals(operands.values, inside), offsets=offsets)
    values, upper = (
        None if each is None else take_literals(each, places) for each in (operands.values, operands.upper)
    )
    return Operands(values, upper)


def take_literals(column: Literals, places: Places) -> Literals:
    """Select the literals at these places of a column."""
    if isinstance(column, Numbers):
        return Numbers(column.nearest[places], column.rest[places])
    return column.take(pa.array(places)) if isinstance(column, pa.Array) else column[places]


def unpack(compiled: Compiled) -> list[Plan]:
    """Return the plan of each accepted subscription, by row: the readable form of a bulk compilation."""
    clauses: list[list[Clause]] = [[] for _ in range(compiled.subscriptions.num_rows)]
    for block in compiled.blocks:
        columns = [_values(test, each) for test, each in zip(block.shape, block.operands, strict=True)]
        for i, row in enumerate(block.rows):
            tests = zip(block.shape, columns, strict=True)
            clauses[row].append(tuple(Test(shape, column[i] if column else None) for shape, column in tests))
    for row, clause in zip(compiled.irregular.rows, unpack_irregular(compiled.irregular), strict=True):
        clauses[row].append(clause)
    return [Plan(tuple(parts), compiled.domains) for parts in clauses]


def unpack_irregular(irregular: IrregularClauses) -> list[Clause]:
    """Return irregular clauses in readable form."""
    clauses: list[list[Test]] = [[] for _ in irregular.rows]
    for test in irregular.tests:
        column = _values(test.shape, test.operands)
        for i, clause in enumerate(test.clauses):
            clauses[clause].append(Test(test.shape, column[i] if column else None))
    return [tuple(tests) for tests in clauses]


def _values(test: TestShape, operands: Operands) -> list[Any]:
    if operands.values is None or test.kind is None:
        return []
    values = _literals(test.kind, operands.values)
    if operands.upper is not None:
        return list(zip(values, _literals(test.kind, operands.upper), strict=True))
    if operands.offsets is None:
        return values
    bounds = operands.offsets.tolist()
    return [tuple(values[low:high]) for low, high in pairwise(bounds)]


def _literals(kind: Kind, column: Any) -> list[Literal]:
    if kind is Kind.NUMBER:
        pairs = zip(column.nearest.tolist(), column.rest.tolist(), strict=True)
        return [int(nearest) + rest if rest else nearest for nearest, rest in pairs]
    if kind is Kind.STRING:
        return [value.decode() for value in column.to_pylist()]
    return [Instant(value) for value in column.tolist()] if kind is Kind.INSTANT else column.tolist()
