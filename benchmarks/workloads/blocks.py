"""Subscriptions in columns, as an index takes them: one block where all have one shape, else test by test."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.workloads.events import Attribute
from benchmarks.workloads.runs import Integers
from tidings.atoms import Column
from tidings.matching.compiler.plan import (
    ClauseBlock,
    Compiled,
    IrregularClauses,
    IrregularTest,
    Numbers,
    Operands,
    Relation,
    TestShape,
)

if TYPE_CHECKING:
    from benchmarks.workloads.forms import Subscriptions

RELATIONS = 16
"""More than there are relations: a test's token is its attribute's number times this, plus the relation."""


def compiled(subscriptions: Subscriptions, first: int) -> Compiled:
    table = _table(len(subscriptions), first)
    columns = subscriptions.columns()
    if columns is None:
        irregular = IrregularClauses(subscriptions.owner, tuple(_irregular_tests(subscriptions)))
        return Compiled(table, (), (), (), irregular)
    shape = tuple(_shape(test.attribute, test.relation) for test in columns)
    operands = tuple(_operands(test.attribute, test.relation, test.low, test.high) for test in columns)
    return Compiled(table, (ClauseBlock(shape, operands, subscriptions.owner),), (), ())


def _irregular_tests(asked: Subscriptions) -> Iterator[IrregularTest]:
    """The tests of each attribute and relation. What a clause has twice of a sort is two tests."""
    clause = np.repeat(np.arange(asked.clauses, dtype=np.int32), np.diff(asked.starts))
    token = asked.attribute.astype(np.int64) * RELATIONS + asked.relation
    order = np.lexsort((clause, token))
    again = _repetitions(token[order], clause[order])
    for which in range(int(again.max(initial=-1)) + 1):
        mine = order[again == which]
        for places in np.split(mine, np.flatnonzero(np.diff(token[mine])) + 1):
            attribute = asked.attributes[asked.attribute[places[0]]]
            relation = Relation(int(asked.relation[places[0]]))
            operands = _operands(attribute, relation, asked.low[places], asked.high[places])
            yield IrregularTest(_shape(attribute, relation), operands, clause[places])


def _repetitions(token: Integers, clause: Integers) -> Integers:
    """How often each test's sort came before in the same clause; both are sorted."""
    new = np.ones(len(token), bool)
    new[1:] = (np.diff(token) != 0) | (np.diff(clause) != 0)
    place = np.arange(len(token))
    return place - np.maximum.accumulate(np.where(new, place, 0))


def _shape(attribute: Attribute, relation: Relation) -> TestShape:
    return TestShape(Column(attribute.name), relation, attribute.kind)


def _operands(attribute: Attribute, relation: Relation, low: Integers, high: Integers) -> Operands:
    between = relation is Relation.BETWEEN
    if attribute.names:
        names = pa.array([name.encode() for name in attribute.names], pa.binary())
        return Operands(names.take(pa.array(low)), names.take(pa.array(high)) if between else None)
    return Operands(_numbers(low), _numbers(high) if between else None)


def _numbers(values: Integers) -> Numbers:
    return Numbers(values.astype(np.float64), np.zeros(len(values), np.int64))


def _table(size: int, first: int) -> pa.Table:
    """Ids, subscribers and texts as a table. A text nobody reads in a benchmark is left empty."""
    ids = pc.binary_join_element_wise("s", pc.cast(np.arange(first, first + size), pa.string()), "")
    constant = {"subscriber": "somebody", "language": "predicates", "text": ""}
    columns = {name: pa.repeat(value, size) for name, value in constant.items()}
    return pa.table({"id": ids, **columns})
