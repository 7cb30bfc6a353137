"""Loose clauses, written one after the other: for subscriptions of which hardly two have the same shape."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tidings.compiler.blocks import operands_of
from tidings.compiler.plan import Clause, Loose, LooseTest, TestShape


@dataclass(slots=True)
class _Column:
    """One test: its operands, and the clauses they belong to."""

    operands: list[Any] = field(default_factory=list)
    clauses: array[int] = field(default_factory=lambda: array("i"))


@dataclass(slots=True)
class LooseWriter:
    """Takes clause after clause, and keeps them test by test."""

    _rows: array[int] = field(default_factory=lambda: array("i"))
    _twigs: array[int] = field(default_factory=lambda: array("i"))
    _tests: dict[tuple[TestShape, int], _Column] = field(default_factory=dict)
    _literals: dict[Any, Any] = field(default_factory=dict)

    def add(self, row: int, clause: Clause, twig: int) -> None:
        """A clause of subscription `row`."""
        seen: list[TestShape] = []
        for test in clause:
            column = self._tests.setdefault((test.shape, seen.count(test.shape)), _Column())
            # Many subscriptions name the same few strings: each is held once.
            column.operands.append(self._literals.setdefault(test.operand, test.operand))
            column.clauses.append(len(self._rows))
            seen.append(test.shape)
        self._rows.append(row)
        self._twigs.append(twig)

    def finish(self) -> Loose:
        tests = tuple(
            _test(shape, column.operands, column.clauses) for (shape, _), column in self._tests.items()
        )
        return Loose(np.array(self._rows, np.int32), tests, np.array(self._twigs, np.int32))


def _test(shape: TestShape, operands: Sequence[Any], clauses: array[int]) -> LooseTest:
    return LooseTest(shape, operands_of(shape, operands), np.array(clauses, np.int32))
