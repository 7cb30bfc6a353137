"""Bulk compilation of graph patterns: they become numbers one by one, and words and tests all together.

Most texts are composed of words that other texts share (`gql_composer`); the rest is parsed. A few texts are compiled
one by one: arrays have a fixed cost, and subscriptions also come one at a time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tidings.errors import SubscriptionError, TextWarning
from tidings.graphs.gql import gql_parser
from tidings.graphs.gql.gql_tree import Pattern
from tidings.graphs.gql_compiler import compile_gql, plan_of
from tidings.graphs.gql_composer import Composer
from tidings.graphs.gql_warnings import warn_about_graphs
from tidings.graphs.pattern_numbers import PatternNumbers
from tidings.graphs.pattern_words import encode_pattern
from tidings.matching.compiler.blocks import operands_of
from tidings.matching.compiler.language import CompiledRows, Context, Knowledge, Language, first_warnings
from tidings.matching.compiler.plan import Clause, ClauseBlock, Plan, TestShape, TwigWriter

_Member = tuple[int, int, Clause]
"""A subscription's row, the number of its pattern, its tests."""

COMPOSED_FROM = 8
"""Fewer texts are compiled one by one."""


@dataclass(frozen=True, slots=True)
class GqlLanguage(Language):
    """GQL and SPARQL patterns, as the compiler uses them."""

    def compile(self, context: Context) -> Plan:
        return compile_gql(context)

    def compile_rows(
        self, texts: Sequence[str], schema: object, limit: int, twigs: TwigWriter
    ) -> CompiledRows:
        rows = CompiledRows()
        numbers, parsed = PatternNumbers(twigs), dict[int, Pattern]()
        composer = Composer(numbers) if len(texts) >= COMPOSED_FROM else None
        for row, text in enumerate(texts):
            if composer is not None and composer.add(row, text):
                continue
            try:
                pattern = gql_parser.parse(text)
            except SubscriptionError as problem:
                rows.problems[row] = problem.with_traceback(None)
                continue
            if composer is None or not numbers.add(row, pattern):
                parsed[row] = pattern
        rows.blocks = blocks_of(parsed, twigs)
        rows.irregular = numbers.finish(twigs.all_strings())
        return rows

    def warnings(self, context: Context, knowledge: Knowledge | None = None) -> tuple[TextWarning, ...]:
        return () if knowledge is None else first_warnings(warn_about_graphs(context, knowledge))


def blocks_of(patterns: Mapping[int, Pattern], twigs: TwigWriter) -> list[ClauseBlock]:
    """Make one block per shape from the clauses of patterns, by row; the patterns go to `twigs`."""
    grouped: dict[tuple[TestShape, ...], list[_Member]] = {}
    for row, pattern in patterns.items():
        plan = plan_of(pattern)
        for clause, twig, exact in zip(plan.clauses, plan.twigs, plan.exact, strict=True):
            shape = tuple(test.shape for test in clause)
            grouped.setdefault(shape, []).append(
                (row, twigs.add(encode_pattern(twig, twigs.string), exact), clause)
            )
    return [_block(shape, members) for shape, members in grouped.items()]


def _block(shape: tuple[TestShape, ...], members: Sequence[_Member]) -> ClauseBlock:
    columns = [[clause[place].operand for _, _, clause in members] for place in range(len(shape))]
    operands = tuple(operands_of(test, column) for test, column in zip(shape, columns, strict=True))
    rows, patterns, _ = zip(*members, strict=True)
    return ClauseBlock(shape, operands, np.array(rows, np.int32), np.array(patterns, np.int32))
