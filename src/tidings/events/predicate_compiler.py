"""Compilation of a predicate text to its plan. Reading `REWRITES` is reading the compiler."""

from __future__ import annotations

from collections.abc import Callable

from tidings.atoms import Aspect, Column
from tidings.events.check import check
from tidings.events.contradictions import drop_contradictions, refuse_impossible
from tidings.events.predicates import parse
from tidings.events.rewrites import (
    clauses_of,
    comparison_of,
    distribute,
    drop_repeated,
    drop_subsumed,
    push_not_down,
)
from tidings.events.schema.domains import Domain
from tidings.events.schema.event_schema import EventSchema
from tidings.events.tree import Comparison, Not, Tree, comparisons
from tidings.matching.compiler.language import Context
from tidings.matching.compiler.plan import Clause, Plan, Relation, Test, TestShape
from tidings.values import Kind

REWRITES: tuple[Callable[[Tree, Context], Tree], ...] = (
    push_not_down,
    distribute,
    drop_repeated,
    drop_contradictions,
    drop_subsumed,
    refuse_impossible,
)
"""The rewrites that turn a checked tree into clauses, in this order."""


def compile_predicates(context: Context) -> Plan:
    """Compile one text."""
    return lower(to_clauses(understand(context), context))


def parse_and_check(text: str, schema: EventSchema | None = None) -> Tree:
    """Parse a text and check it against the schema; operators and literals of the tree are resolved."""
    return understand(Context(text, schema))


def understand(context: Context) -> Tree:
    """Parse and check the text of a context."""
    return check(parse(context.text, context.schema), context)


def to_clauses(tree: Tree, context: Context) -> Tree:
    """Rewrite a checked tree as a disjunction of conjunctions."""
    for rewrite in REWRITES:
        tree = rewrite(tree, context)
    return tree


def lower(tree: Tree) -> Plan:
    """Make the plan of a tree in clauses: tests of columns against operands."""
    return Plan(tuple(_clause(parts) for parts in clauses_of(tree)), domains_of(tree))


def domains_of(tree: Tree) -> tuple[Domain, ...]:
    """Return the domains whose order the tree uses, each once."""
    orders = {leaf.order.name: leaf.order for leaf in comparisons(tree) if isinstance(leaf.order, Domain)}
    return tuple(orders.values())


def _clause(parts: tuple[Tree, ...]) -> Clause:
    return tuple(_test(part) for part in parts)


def _test(part: Tree) -> Test:
    return Test(shape_of(part), comparison_of(part).given)


def shape_of(part: Tree) -> TestShape:
    """Return the test of one part of a clause, without its operand."""
    comparison = comparison_of(part)
    column, relation = _column(comparison)
    return TestShape(column, relation, comparison.kind, negated=isinstance(part, Not))


def _column(comparison: Comparison) -> tuple[Column, Relation]:
    operator, order = comparison.operator, comparison.order
    if order is not None and operator.ordered is not None:
        return Column(comparison.path, operator.ordered.aspect, order.name), Relation.EQ
    if comparison.kind is Kind.INSTANT:
        return Column(comparison.path, Aspect.INSTANT), operator.relation
    return Column(comparison.path, operator.aspect), operator.relation
