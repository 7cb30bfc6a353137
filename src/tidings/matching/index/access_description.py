"""Short description of how the index finds the clauses of a plan, shown when a subscription is checked."""

from __future__ import annotations

from collections.abc import Sequence

from tidings.atoms import AtomShape, Column
from tidings.graphs.gql.gql_tree import show_term
from tidings.graphs.keys import ANY
from tidings.graphs.model import iri
from tidings.matching.compiler.plan import Plan, Relation, TestShape

_RANGES = (Relation.BETWEEN, Relation.LT, Relation.LE, Relation.GT, Relation.GE)


def describe_access(plan: Plan) -> str:
    """Name the path through which each clause of a plan is found, in the order of preference of the index.

    The index knows how selective each column is and may prefer another equality of the same clause.
    """
    paths = (_access_path([test.shape for test in clause]) for clause in plan.clauses)
    return ", ".join(dict.fromkeys(paths))


def _access_path(clause: Sequence[TestShape]) -> str:
    positive = [test for test in clause if not test.negated]
    equalities = [test.column for test in positive if test.relation in (Relation.EQ, Relation.IN)]
    if equalities:
        return _show_column(equalities[0])
    ranges = [test.column for test in positive if test.relation in _RANGES]
    present = [test.column for test in positive]  # `exists` and `!=` need the attribute to be present
    return _show_column(min(ranges or present)) if present else "every publication"


def _show_column(column: Column) -> str:
    """Return a path as users write it; for graphs, the property whose edges are tested."""
    if column.shape is not AtomShape.EDGES:
        return column.path
    property = column.path.partition(" ")[2]
    return "edges of all properties" if property == ANY else show_term(iri(property))
