"""Subscriptions in columns, as an index takes them: one block of clauses for each shape.

There may be nearly as many shapes as clauses, so what is done for all tests at once is done in NumPy. What is left for
a block of several clauses is cutting slices; for a block of one, looking up operands that are made once for all tests
that are the same.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from itertools import islice, pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.workloads.grouping import Groups, by_test, same_row, same_shape
from benchmarks.workloads.runs import Integers, places
from tidings.atoms import Column
from tidings.compiler.plan import ClauseBlock, Compiled, Numbers, Operands, Relation, TestShape

if TYPE_CHECKING:
    from benchmarks.workloads.forms import Subscriptions

RELATIONS = 16
"""More than there are relations: a test's token is its attribute's number times this, plus the relation."""

Doubles = npt.NDArray[np.float64]


def compiled(subscriptions: Subscriptions, first: int) -> Compiled:
    tokens = subscriptions.attribute.astype(np.int64) * RELATIONS + subscriptions.relation
    groups = same_shape(tokens, subscriptions.starts)
    alone = groups.sizes == 1
    with _no_collection():
        single = _single(subscriptions, tokens, groups.only(alone))
        blocks = (*single, *_several(subscriptions, tokens, groups.only(~alone)))
    return Compiled(_table(len(subscriptions), first), blocks, (), ())


def _single(asked: Subscriptions, tokens: Integers, groups: Groups) -> Iterator[ClauseBlock]:
    """Blocks of one clause each."""
    if not len(groups.order):
        return
    tests = places(asked.starts, groups.order)
    number, shapes, operands = _distinct(asked, tokens, tests)
    owners = asked.owner[groups.order]
    lengths = np.diff(asked.starts)[groups.order].tolist()
    numbers = iter(number.tolist())
    for row, length in enumerate(lengths):
        mine = list(islice(numbers, length))
        yield ClauseBlock(
            tuple([shapes[test] for test in mine]),
            tuple([operands[test] for test in mine]),
            owners[row : row + 1],
        )


def _distinct(
    asked: Subscriptions, tokens: Integers, tests: Integers
) -> tuple[npt.NDArray[np.int32], list[TestShape], list[Operands]]:
    """For each test its number among the different ones, and those ones' shapes and operands."""
    columns = tokens[tests], asked.low[tests], asked.high[tests]
    same = same_row(columns)
    number = np.empty(len(tests), np.int32)
    number[same.order] = np.repeat(np.arange(len(same.sizes), dtype=np.int32), same.sizes)
    kinds = _Kinds(asked)
    token, low, high = (column[same.leaders] for column in columns)
    found = list(map(kinds.__getitem__, token.tolist()))
    values = low.astype(np.float64), high.astype(np.float64)
    operands = [_operands([kind], *values, at, 1)[0] for at, kind in enumerate(found)]
    return number, [kind.shape for kind in found], operands


def _several(asked: Subscriptions, tokens: Integers, groups: Groups) -> Iterator[ClauseBlock]:
    """Blocks of several clauses: their operands are slices of two long arrays."""
    rows, leaders, kinds = asked.owner[groups.order], groups.leaders, _Kinds(asked)
    tests = np.diff(asked.starts)[leaders].tolist()
    shapes = iter(tokens[places(asked.starts, leaders)].tolist())
    columns = by_test(asked.starts, groups)
    low, high = (each[columns].astype(np.float64) for each in (asked.low, asked.high))
    at = 0
    for (begin, end), count in zip(pairwise(groups.bounds.tolist()), tests, strict=True):
        mine = [kinds[token] for token in islice(shapes, count)]
        operands = _operands(mine, low, high, at, end - begin)
        at += count * (end - begin)
        yield ClauseBlock(tuple([kind.shape for kind in mine]), operands, rows[begin:end])


class _Kind(NamedTuple):
    """What all tests of a token have in common."""

    shape: TestShape
    between: bool
    names: pa.Array | None


class _Kinds(dict[int, _Kind]):
    """Kinds by token, made when they are first asked for."""

    def __init__(self, asked: Subscriptions) -> None:
        self._attributes = asked.attributes

    def __missing__(self, token: int) -> _Kind:
        attribute = self._attributes[token // RELATIONS]
        shape = TestShape(Column(attribute.name), Relation(token % RELATIONS), attribute.kind)
        names = pa.array([name.encode() for name in attribute.names], pa.binary())
        self[token] = _Kind(shape, shape.relation is Relation.BETWEEN, names if attribute.names else None)
        return self[token]


def _operands(kinds: list[_Kind], low: Doubles, high: Doubles, at: int, size: int) -> tuple[Operands, ...]:
    """The operands of a block's tests. Written without a call for each: there may be millions."""
    operands, nothing = [], _nothing(size)
    for kind in kinds:
        end = at + size
        if kind.names is not None:
            operands.append(_texts(kind.names, low[at:end], high[at:end] if kind.between else None))
        elif kind.between:
            operands.append(Operands(Numbers(low[at:end], nothing), Numbers(high[at:end], nothing)))
        else:
            operands.append(Operands(Numbers(low[at:end], nothing)))
        at = end
    return tuple(operands)


def _texts(names: pa.Array, low: Doubles, high: Doubles | None) -> Operands:
    upper = None if high is None else names.take(pa.array(high.astype(np.int64)))
    return Operands(names.take(pa.array(low.astype(np.int64))), upper)


@cache
def _nothing(size: int) -> Integers:
    """What whole numbers leave over when they are taken as doubles."""
    return np.zeros(size, np.int64)


def _table(size: int, first: int) -> pa.Table:
    """Ids, subscribers and texts as a table. A text nobody reads in a benchmark is left empty."""
    ids = pc.binary_join_element_wise("s", pc.cast(np.arange(first, first + size), pa.string()), "")
    constant = {"subscriber": "somebody", "language": "predicates", "text": ""}
    columns = {name: pa.repeat(value, size) for name, value in constant.items()}
    return pa.table({"id": ids, **columns})


@contextmanager
def _no_collection() -> Iterator[None]:
    """Millions of small objects and no cycle among them: looking for one again and again doubles the time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
