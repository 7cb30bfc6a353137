"""Lower a tree in clauses to a plan: tests of columns against operands."""

from __future__ import annotations

from tidings.atoms import Aspect, Column
from tidings.events.operators import Relation
from tidings.events.rewrites import clauses_of, comparison_of
from tidings.events.schema.domains import Domain
from tidings.events.tree import Comparison, Not, Tree, comparisons
from tidings.matching.compiler.plan import Clause, Plan, Test, TestShape
from tidings.values import Kind


def lower(tree: Tree) -> Plan:
    """The plan of a tree in clauses."""
    return Plan(tuple(_clause(parts) for parts in clauses_of(tree)), domains_of(tree))


def domains_of(tree: Tree) -> tuple[Domain, ...]:
    """The domains whose order the tree speaks of, each once."""
    orders = {each.order.name: each.order for each in comparisons(tree) if isinstance(each.order, Domain)}
    return tuple(orders.values())


def _clause(parts: tuple[Tree, ...]) -> Clause:
    return tuple(_test(part) for part in parts)


def _test(part: Tree) -> Test:
    return Test(shape_of(part), comparison_of(part).given)


def shape_of(part: Tree) -> TestShape:
    """What a part of a clause looks at, without its operand."""
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
