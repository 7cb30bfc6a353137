"""Workloads as columns: tests of subscriptions and values of events, as flat arrays of integers.

Everything is generated from a seed in NumPy, so that millions of subscriptions are ready in seconds and every engine
gets the same ones in the form that suits it: compiled blocks, plans, texts, columns for a join.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.workloads.blocks import compiled
from benchmarks.workloads.events import Attribute, Events
from benchmarks.workloads.runs import Integers, starts_of
from tidings.atoms import Column
from tidings.matching.compiler.plan import Compiled, Operand, Plan, Relation, Test, TestShape
from tidings.values import Kind

CHUNK = 100_000
SIGNS = {Relation.EQ: "=", Relation.LT: "<", Relation.LE: "<=", Relation.GT: ">", Relation.GE: ">="}


@dataclass(frozen=True)
class TestColumn:
    """One test of subscriptions that all have the same shape; `high` differs from `low` for BETWEEN only."""

    __test__ = False

    attribute: Attribute
    relation: Relation
    low: Integers
    high: Integers


@dataclass(frozen=True)
class Subscriptions:
    """Clauses one after another, each a run of tests, each owned by one of `size` subscriptions.

    The tests of clause c are `starts[c]:starts[c + 1]`. Test t holds when the event's value of
    `attributes[attribute[t]]` has the `relation[t]` to `low[t]` (BETWEEN: is within `low[t]` and `high[t]`).
    A subscription matches when all tests of one of its clauses hold; `owner` never decreases.
    """

    attributes: tuple[Attribute, ...]
    starts: Integers
    attribute: npt.NDArray[np.int32]
    relation: npt.NDArray[np.int8]
    low: Integers
    high: Integers
    owner: npt.NDArray[np.int32]
    size: int

    def __len__(self) -> int:
        return self.size

    @property
    def clauses(self) -> int:
        return len(self.owner)

    def part(self, rows: slice) -> Subscriptions:
        """Return the subscriptions of a slice, renumbered from 0."""
        first, last, step = rows.indices(self.size)
        if step != 1:
            raise ValueError(f"a part is a run of subscriptions, not every {step}th")
        last = max(first, last)
        begin, end = np.searchsorted(self.owner, (first, last)).tolist()
        starts = self.starts[begin : end + 1]
        tests = slice(int(starts[0]), int(starts[-1]))
        return replace(
            self,
            starts=starts - starts[0],
            attribute=self.attribute[tests],
            relation=self.relation[tests],
            low=self.low[tests],
            high=self.high[tests],
            owner=self.owner[begin:end] - np.int32(first),
            size=last - first,
        )

    def compiled(self, first: int = 0) -> Compiled:
        """Compile for an index, with ids `s<number>`, counted from `first`."""
        return compiled(self, first)

    def columns(self) -> tuple[TestColumn, ...] | None:
        """Return the tests as columns over all subscriptions, if all have one clause of one shape."""
        lengths = np.diff(self.starts)
        if self.clauses != self.size or not self.size or (lengths != lengths[0]).any():
            return None
        rows = self.size, int(lengths[0])
        attribute, relation = self.attribute.reshape(rows), self.relation.reshape(rows)
        low, high = self.low.reshape(rows), self.high.reshape(rows)
        if (attribute != attribute[0]).any() or (relation != relation[0]).any():
            return None
        return tuple(
            TestColumn(
                self.attributes[attribute[0, at]], Relation(int(relation[0, at])), low[:, at], high[:, at]
            )
            for at in range(attribute.shape[1])
        )

    def plans(self) -> Iterator[tuple[str, Plan]]:
        """Yield plans one by one, for the algorithms in plain Python."""
        for row, clauses in enumerate(self._by_subscription()):
            yield f"s{row}", Plan(tuple(tuple(_test(*test) for test in clause) for clause in clauses))

    def texts(self) -> Iterator[str]:
        """Yield texts in the predicate language."""
        for clauses in self._by_subscription():
            texts = [" and ".join([_text(*test) for test in clause]) for clause in clauses]
            yield texts[0] if len(texts) == 1 else " or ".join(f"({text})" for text in texts)

    def _by_subscription(self) -> Iterator[list[list[tuple[Attribute, int, int, int]]]]:
        """Yield the clauses of each subscription, with their tests. Columns are read a chunk at a time."""
        for first in range(0, self.size, CHUNK):
            part = self.part(slice(first, first + CHUNK))
            columns = (part.relation.tolist(), part.low.tolist(), part.high.tolist())
            attributes = [self.attributes[at] for at in part.attribute.tolist()]
            tests = list(zip(attributes, *columns, strict=True))
            clauses = [tests[begin:end] for begin, end in pairwise(part.starts.tolist())]
            bounds = np.searchsorted(part.owner, np.arange(part.size + 1)).tolist()
            for begin, end in pairwise(bounds):
                yield clauses[begin:end]


def _test(attribute: Attribute, relation: int, low: int, high: int) -> Test:
    shape, value = _shape(attribute.name, attribute.kind, relation), attribute.value(low)
    operand: Operand = (value, attribute.value(high)) if relation == Relation.BETWEEN else value
    return Test(shape, operand)


@cache
def _shape(name: str, kind: Kind, relation: int) -> TestShape:
    return TestShape(Column(name), Relation(relation), kind)


def _text(attribute: Attribute, relation: int, low: int, high: int) -> str:
    if relation == Relation.BETWEEN:
        return f"{attribute.name} between {attribute.literal(low)} and {attribute.literal(high)}"
    return f"{attribute.name} {SIGNS[Relation(relation)]} {attribute.literal(low)}"


def conjunctions(
    attributes: tuple[Attribute, ...],
    lengths: Any,
    attribute: npt.ArrayLike,
    relation: npt.ArrayLike,
    low: npt.ArrayLike,
    high: npt.ArrayLike | None = None,
) -> Subscriptions:
    """Build subscriptions of one clause each, `lengths[i]` tests in clause i; tests are flattened row by row."""
    lower = np.ascontiguousarray(low, np.int64).ravel()
    return Subscriptions(
        attributes,
        starts_of(lengths),
        np.ascontiguousarray(attribute, np.int32).ravel(),
        np.ascontiguousarray(relation, np.int8).ravel(),
        lower,
        lower if high is None else np.ascontiguousarray(high, np.int64).ravel(),
        np.arange(len(lengths), dtype=np.int32),
        len(lengths),
    )


@dataclass(frozen=True)
class Workload:
    name: str
    subscriptions: Subscriptions
    events: Events
