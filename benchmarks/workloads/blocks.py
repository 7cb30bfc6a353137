"""Subscriptions in columns, for an index: one block if all have one shape, otherwise test by test."""

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
"""More than the number of relations: a test's token is its attribute's number times this, plus the relation."""


def compiled(subscriptions: Subscriptions, first: int) -> Compiled:
    table = _table(len(subscriptions), first)
    columns = subscriptions.columns()
    if columns is None:
        irregular = IrregularClauses(subscriptions.owner, tuple(_irregular_tests(subscriptions)))
        return Compiled(table, (), (), (), irregular)
    shape = tuple(_shape(test.attribute, test.relation) for test in columns)
    operands = tuple(_operands(test.attribute, test.relation, test.low, test.high) for test in columns)
    return Compiled(table, (ClauseBlock(shape, operands, subscriptions.owner),), (), ())


def _irregular_tests(subscriptions: Subscriptions) -> Iterator[IrregularTest]:
    """Yield the tests by attribute and relation. Two tests of one sort in a clause are separate tests."""
    clause = np.repeat(np.arange(subscriptions.clauses, dtype=np.int32), np.diff(subscriptions.starts))
    token = subscriptions.attribute.astype(np.int64) * RELATIONS + subscriptions.relation
    order = np.lexsort((clause, token))
    again = _repetitions(token[order], clause[order])
    for which in range(int(again.max(initial=-1)) + 1):
        repeated = order[again == which]
        for places in np.split(repeated, np.flatnonzero(np.diff(token[repeated])) + 1):
            attribute = subscriptions.attributes[subscriptions.attribute[places[0]]]
            relation = Relation(int(subscriptions.relation[places[0]]))
            operands = _operands(attribute, relation, subscriptions.low[places], subscriptions.high[places])
            yield IrregularTest(_shape(attribute, relation), operands, clause[places])


def _repetitions(token: Integers, clause: Integers) -> Integers:
    """Count for each test the earlier tests of its sort in the same clause; both inputs are sorted."""
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
    """Build the table of ids, subscribers and texts. Texts are empty, as benchmarks do not read them."""
    ids = pc.binary_join_element_wise("s", pc.cast(np.arange(first, first + size), pa.string()), "")
    constant = {"subscriber": "somebody", "language": "predicates", "text": ""}
    columns = {name: pa.repeat(value, size) for name, value in constant.items()}
    return pa.table({"id": ids, **columns})
