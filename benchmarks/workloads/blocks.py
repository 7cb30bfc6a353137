"""Subscriptions in columns, as an index takes them: one block of clauses for each shape.

There may be nearly as many shapes as clauses, so what is done for all tests at once is done in NumPy, and what is left
for a block and a test is cutting slices.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.workloads.events import Integers, starts_of
from tidings.atoms import Column
from tidings.compiler.plan import ClauseBlock, Compiled, Literals, Numbers, Operands, Relation, TestShape

if TYPE_CHECKING:
    from benchmarks.workloads.forms import Subscriptions

RELATIONS = 16
"""More than there are relations: attribute number times this, plus the relation, tells tests apart."""


def compiled(subscriptions: Subscriptions, first: int) -> Compiled:
    with _no_collection():
        blocks = tuple(_Blocks(subscriptions).all())
    return Compiled(_table(len(subscriptions), first), blocks, (), ())


class _Group(NamedTuple):
    """Clauses in the order of their shapes: those of group g are `order[bounds[g]:bounds[g + 1]]`."""

    order: npt.NDArray[np.int32]
    bounds: Integers


class _Blocks:
    def __init__(self, asked: Subscriptions) -> None:
        self._asked = asked
        self._tokens = asked.attribute.astype(np.int64) * RELATIONS + asked.relation
        self._shapes: dict[int, TestShape] = {}
        self._names: dict[int, pa.Array] = {}
        self._rest: dict[int, Integers] = {}

    def all(self) -> Iterator[ClauseBlock]:
        """The blocks. Their operands are slices of a few long arrays, test after test of each block."""
        order, bounds = _grouped(self._tokens, self._asked.starts)
        places = _by_test(self._asked.starts, order, bounds)
        low, high = (each[places].astype(np.float64) for each in (self._asked.low, self._asked.high))
        tests = np.diff(self._asked.starts)[order[bounds[:-1]]].tolist()
        rows, edges, tokens = self._asked.owner[order], bounds.tolist(), self._tokens[places].tolist()
        at = 0
        for begin, end, count in zip(edges, edges[1:], tests, strict=False):
            size = end - begin
            here = tokens[at : at + count * size : size]
            operands = []
            for token in here:
                operands.append(self._operands(token, low, high, at, at + size))
                at += size
            yield ClauseBlock(tuple(map(self._shape, here)), tuple(operands), rows[begin:end])

    def _shape(self, token: int) -> TestShape:
        found = self._shapes.get(token)
        if found is None:
            attribute = self._asked.attributes[token // RELATIONS]
            found = TestShape(Column(attribute.name), Relation(token % RELATIONS), attribute.kind)
            self._shapes[token] = found
        return found

    def _operands(self, token: int, low: object, high: object, begin: int, end: int) -> Operands:
        values = self._literals(token, low[begin:end])  # type: ignore[index]
        if token % RELATIONS != Relation.BETWEEN:
            return Operands(values)
        return Operands(values, self._literals(token, high[begin:end]))  # type: ignore[index]

    def _literals(self, token: int, values: npt.NDArray[np.float64]) -> Literals:
        names = self._asked.attributes[token // RELATIONS].names
        if not names:
            return Numbers(values, self._nothing(len(values)))
        if token not in self._names:
            self._names[token] = pa.array([name.encode() for name in names], pa.binary())
        return self._names[token].take(pa.array(values.astype(np.int64)))

    def _nothing(self, size: int) -> Integers:
        """What whole numbers leave over when they are taken as doubles."""
        if size not in self._rest:
            self._rest[size] = np.zeros(size, np.int64)
        return self._rest[size]


def _grouped(tokens: Integers, starts: Integers) -> _Group:
    """Clauses of the same tests in the same order come together, found by a hash that is checked afterwards."""
    lengths = np.diff(starts)
    if not lengths.all():
        raise ValueError("a clause without tests has no shape")
    place = np.arange(len(tokens)) - np.repeat(starts[:-1], lengths)
    hashes = np.add.reduceat(_mixed(_mixed(tokens.view(np.uint64)) + place.view(np.uint64)), starts[:-1])
    order = np.argsort(hashes, kind="stable").astype(np.int32)
    new = np.flatnonzero(np.diff(hashes[order], prepend=~hashes[order[:1]])) if len(order) else order
    bounds = np.append(new, len(order)).astype(np.int64)
    leader = order[bounds[:-1]]
    _check(tokens, starts, order, np.repeat(leader, np.diff(bounds)))
    return _Group(order, bounds)


def _mixed(numbers: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """The finisher of splitmix64: each bit of the number changes about half of the result's."""
    mixed = numbers * np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    return mixed ^ (mixed >> np.uint64(27))


def _check(
    tokens: Integers, starts: Integers, order: npt.NDArray[np.int32], like: npt.NDArray[np.int32]
) -> None:
    """Every clause of a group has the tests of the group's first one."""
    lengths = np.diff(starts)
    same = np.array_equal(lengths[order], lengths[like])
    if not same or not np.array_equal(tokens[_runs(starts, order)], tokens[_runs(starts, like)]):
        raise ValueError("two shapes have the same hash: another multiplier is needed")


def _runs(starts: Integers, clauses: npt.NDArray[np.int32]) -> Integers:
    """The places of these clauses' tests, clause after clause."""
    lengths = np.diff(starts)[clauses]
    begins = starts_of(lengths)
    return np.arange(begins[-1]) + np.repeat(starts[clauses] - begins[:-1], lengths)


def _by_test(starts: Integers, order: npt.NDArray[np.int32], bounds: Integers) -> Integers:
    """The places of all tests, group by group, in a group test by test: columns without gaps.

    Test j of row i of a group with k rows stands at j * k + i of the group.
    """
    lengths, sizes = np.diff(starts)[order], np.diff(bounds)
    group = np.repeat(np.arange(len(sizes)), sizes)
    base = starts_of(lengths)[bounds[:-1]]
    row = np.arange(len(order)) - bounds[group]
    number = np.arange(int(lengths.sum())) - np.repeat(starts_of(lengths)[:-1], lengths)
    target = np.repeat(base[group] + row, lengths) + number * np.repeat(sizes[group], lengths)
    places = np.empty(len(target), np.int64)
    places[target] = _runs(starts, order)
    return places


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
