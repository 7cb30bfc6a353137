"""Access: the one test through which a clause is reached.

The rest of a clause is verified only after its access test held, so it should be the test that holds least often. An
equality beats a range, and among equalities the column with the most different constants wins: a value picks one of
many buckets. Statistics decide, never the order of the text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tidings.atoms import Aspect, Column, Of
from tidings.compiler.linear import ANYWHERE
from tidings.compiler.plan import Plan, Relation, TestShape
from tidings.graph_keys import ANY
from tidings.graphs import iri
from tidings.languages.gql_shown import show_term

MANY_MEMBERS = 16
"""An `in` with more members on average is no key: each member would need a copy of the clause."""

_RANGES = (Relation.BETWEEN, Relation.LT, Relation.LE, Relation.GT, Relation.GE)


def key_of(
    shape: Sequence[TestShape], distinct: Mapping[Column, int], members: Mapping[int, float]
) -> int | None:
    """The number of the test that serves as key, or None: the best equality, or `in` with few members.

    `distinct` has the number of different constants of each column, `members` the mean size of each test's list.
    """
    choices = [
        (members.get(i, 1.0) / max(1, distinct.get(test.column, 1)), i)
        for i, test in enumerate(shape)
        if not test.negated
        and (
            test.relation == Relation.EQ
            or (test.relation == Relation.IN and members.get(i, 1.0) <= MANY_MEMBERS)
        )
    ]
    return min(choices)[1] if choices else None


def reached_through(plan: Plan, distinct: Mapping[Column, int] | None = None) -> str:
    """The path, or paths, through which a plan's clauses are reached, for people to read: as the index chooses them."""
    paths: list[str] = []
    for clause in plan.clauses:
        path = _path([test.shape for test in clause], distinct or {})
        if path not in paths:
            paths.append(path)
    return ", ".join(paths)


def _path(shape: Sequence[TestShape], distinct: Mapping[Column, int]) -> str:
    key = key_of(shape, distinct, {})
    if key is not None:
        return _shown(shape[key].column)
    asking = [test for test in shape if not test.negated]
    ranges = [test.column for test in asking if test.relation in _RANGES]
    present = [test.column for test in asking]  # `exists`, `!=` and long lists need some value there
    return _shown(min(ranges or present)) if present else "every publication"


def _shown(column: Column) -> str:
    """A path as people write it; of graphs, the property whose edges are looked at."""
    if column.of is not Of.GRAPH:
        return column.path
    property = column.path.partition(" ")[2]
    return "edges of all properties" if property == ANY else show_term(iri(property))


def is_plain(test: TestShape) -> bool:
    """Whether a test can stand in a uniform cluster: a comparison that some value must satisfy."""
    return not test.negated and (test.relation == Relation.EQ or test.relation in _RANGES)


def is_derived(column: Column) -> bool:
    """Whether a publication may well have many codes here: text patterns, order aspects, all values of a document."""
    derived = Aspect.INSTANT < column.aspect < Aspect.NUMBER
    return derived or column.path == ANYWHERE
