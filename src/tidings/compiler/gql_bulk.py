"""Compile very many patterns of graphs: clauses with the same tests, but for their operands, stand together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from tidings.compiler.blocks import operands_of
from tidings.compiler.bulk import Rows
from tidings.compiler.context import Context
from tidings.compiler.gql import compile_gql
from tidings.compiler.plan import Clause, ClauseBlock, Plan, TestShape
from tidings.compiler.twig_words import TwigWriter
from tidings.errors import SubscriptionError
from tidings.schema.event_schema import EventSchema

_Member = tuple[int, int, Clause]
"""A subscription's row, the number of its pattern, its tests."""


@dataclass(frozen=True, slots=True)
class GqlFront:
    """How patterns of graphs are compiled."""

    def compile(self, context: Context) -> Plan:
        return compile_gql(context)

    def compile_rows(
        self, texts: Sequence[str], schema: EventSchema | None, limit: int, twigs: TwigWriter
    ) -> Rows:
        rows = Rows()
        rows.blocks = blocks_of(_plans(texts, limit, rows), twigs)
        return rows


def _plans(texts: Sequence[str], limit: int, into: Rows) -> Iterator[tuple[int, Plan]]:
    """The plans of texts, by row; what is refused goes to the problems."""
    for row, text in enumerate(texts):
        try:
            plan = compile_gql(Context(text, None, limit))
        except SubscriptionError as problem:
            into.problems[row] = problem
        else:
            yield row, plan


def blocks_of(plans: Iterable[tuple[int, Plan]], twigs: TwigWriter) -> list[ClauseBlock]:
    """The clauses of plans, by row, as one block for each shape; their patterns go to `twigs`."""
    grouped: dict[tuple[TestShape, ...], list[_Member]] = {}
    for row, plan in plans:
        for clause, pattern, exact in zip(plan.clauses, plan.twigs, plan.exact, strict=True):
            shape = tuple(test.shape for test in clause)
            grouped.setdefault(shape, []).append((row, twigs.add(pattern, exact), clause))
    return [_block(shape, members) for shape, members in grouped.items()]


def _block(shape: tuple[TestShape, ...], members: Sequence[_Member]) -> ClauseBlock:
    columns = [[clause[place].operand for _, _, clause in members] for place in range(len(shape))]
    operands = tuple(operands_of(test, column) for test, column in zip(shape, columns, strict=True))
    rows, patterns, _ = zip(*members, strict=True)
    return ClauseBlock(shape, operands, np.array(rows, np.int32), np.array(patterns, np.int32))
