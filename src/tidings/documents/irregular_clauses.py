"""Writer of irregular clauses: for subscriptions of which hardly two have the same shape."""

from __future__ import annotations

from array import array
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from tidings.matching.compiler.plan import (
    Clause,
    IrregularClauses,
    IrregularTest,
    Numbers,
    Operands,
    TestShape,
)
from tidings.values import Kind

_CODES = {Kind.STRING: "I", Kind.NUMBER: "d", None: "B"}
"""Array type codes of operands. A string is stored by its number, so that equal strings are stored once."""


class _Columns:
    """The operands of one test with their clauses: a column for its first use in a clause, one for its second, etc."""

    __slots__ = ("_clause", "_columns", "_shape", "_used")

    def __init__(self, shape: TestShape) -> None:
        self._shape = shape
        self._columns: list[tuple[array[Any], array[int]]] = []
        self._clause, self._used = -1, 0

    def put(self, clause: int, operand: float) -> None:
        """Add the operand of a clause; clauses come in ascending order."""
        if clause != self._clause:
            self._clause, self._used = clause, 0
        if self._used == len(self._columns):
            self._columns.append((array(_CODES[self._shape.kind]), array("i")))
        operands, clauses = self._columns[self._used]
        operands.append(operand)
        clauses.append(clause)
        self._used += 1

    def tests(self, strings: pa.Array[Any]) -> list[IrregularTest]:
        return [
            IrregularTest(self._shape, self._operands(operands, strings), np.array(clauses, np.int32))
            for operands, clauses in self._columns
        ]

    def _operands(self, operands: array[Any], strings: pa.Array[Any]) -> Operands:
        if self._shape.kind is None:
            return Operands()
        if self._shape.kind is Kind.STRING:
            return Operands(strings.take(pa.array(np.array(operands, np.uint32))))
        return Operands(Numbers(np.array(operands, np.float64), np.zeros(len(operands), np.int64)))


class IrregularClauseWriter:
    """Collects clauses and stores them test by test. Strings are numbered by `string`."""

    def __init__(self, string: Callable[[str], int]) -> None:
        self._string = string
        self._rows, self._twigs = array("i"), array("i")
        self._tests: dict[TestShape, _Columns] = {}

    def add(self, row: int, clause: Clause, twig: int) -> None:
        """Add a clause of subscription `row`."""
        for test in clause:
            columns = self._tests.get(test.shape)
            if columns is None:
                columns = self._tests[test.shape] = _Columns(test.shape)
            columns.put(len(self._rows), self._code(test.operand))
        self._rows.append(row)
        self._twigs.append(twig)

    def _code(self, operand: object) -> float:
        if isinstance(operand, str):
            return self._string(operand)
        assert operand is None or isinstance(operand, float), "XPath literals are strings and floats"
        return operand or 0

    def finish(self, strings: pa.Array[Any]) -> IrregularClauses:
        """Return the clauses; `strings` are in the order of their numbers."""
        tests = tuple(test for columns in self._tests.values() for test in columns.tests(strings))
        return IrregularClauses(np.array(self._rows, np.int32), tests, np.array(self._twigs, np.int32))
