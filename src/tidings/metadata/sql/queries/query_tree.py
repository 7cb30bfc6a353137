"""The tree of a normal rule: a node for each variable with its own tests, an edge for all comparisons of two.

Validation guarantees that it is a tree.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from tidings.metadata.resources import Ref
from tidings.metadata.rules.atomic import order_predicates
from tidings.metadata.rules.normal_form import (
    JoinPredicate,
    build_adjacency,
    class_of,
    is_path,
    list_predicates,
)
from tidings.metadata.rules.syntax import Constant, Operator, Path, Rule
from tidings.metadata.schema.model import Schema
from tidings.metadata.sql.resource_rows import REFERENCE_KIND, ComparableValue, to_comparable

FLIPPED_SQL_OPERATORS = {
    "=": "=",
    "!=": "!=",
    "<": ">",
    ">": "<",
    "<=": ">=",
    ">=": "<=",
    "contains": "within",
    "within": "contains",
}


@dataclass(frozen=True, slots=True)
class ConstantTest:
    """A comparison of a property, or of the resource itself (None), with a constant."""

    property: str | None
    operator: Operator
    constant: ComparableValue


@dataclass(frozen=True, slots=True)
class ComparedProperty:
    """A compared property of a variable with its kind; None for a path, whose values have their kinds."""

    property: str | None
    kind: int | None


@dataclass(frozen=True, slots=True)
class VariableComparison:
    """A comparison of two resources, or of one with itself: `own` `operator` `others`."""

    own: ComparedProperty
    operator: str
    others: ComparedProperty

    def flip(self) -> VariableComparison:
        return VariableComparison(self.others, FLIPPED_SQL_OPERATORS[self.operator], self.own)


@dataclass(frozen=True, slots=True)
class QueryEdge(VariableComparison):
    """All comparisons of two variables, with further ones in `also`. An equality comes first, if there is one."""

    other: str
    also: tuple[VariableComparison, ...] = ()

    @property
    def by_value(self) -> bool:
        """Whether partners are found by an equal value. Paths have no index."""
        return self.operator == "=" and not self.by_path

    @property
    def by_path(self) -> bool:
        return is_path(self.own.property) or is_path(self.others.property)

    def reversed(self, variable: str) -> QueryEdge:
        """Return the same edge from the other variable."""
        also = tuple(each.flip() for each in self.also)
        return QueryEdge(self.others, FLIPPED_SQL_OPERATORS[self.operator], self.own, variable, also)


@dataclass(frozen=True, slots=True)
class QueryNode:
    variable: str
    rule: str | None
    """The rule whose results it ranges over, if it is not a class."""

    classes: tuple[str, ...]
    tests: tuple[ConstantTest, ...]
    self_comparisons: tuple[VariableComparison, ...]
    """Comparisons of two of its own properties."""

    edges: tuple[QueryEdge, ...]


QueryTree = Mapping[str, QueryNode]


def build_query_tree(normal: Rule, schema: Schema, types: Mapping[str, str]) -> QueryTree:
    classes = {searched.variable: class_of(searched.extension, schema, types) for searched in normal.searched}
    compared = build_adjacency(normal)
    return {
        searched.variable: QueryNode(
            searched.variable,
            None if searched.extension in schema.classes else searched.extension,
            tuple(sorted(schema.at_or_below(classes[searched.variable]))),
            tuple(_list_tests(normal, searched.variable, classes[searched.variable], schema)),
            tuple(
                _build_comparison(predicate, searched.variable, searched.variable, schema, classes)
                for predicate in compared[searched.variable].get(searched.variable, ())
            ),
            tuple(
                _build_edge(predicate, searched.variable, other, schema, classes)
                for other, predicate in compared[searched.variable].items()
                if other != searched.variable
            ),
        )
        for searched in normal.searched
    }


def _build_edge(
    predicates: Iterable[JoinPredicate], variable: str, other: str, schema: Schema, classes: Mapping[str, str]
) -> QueryEdge:
    first, *also = (
        _build_comparison(predicate, variable, other, schema, classes)
        for predicate in order_predicates(predicates, classes[variable], schema)
    )
    return QueryEdge(first.own, first.operator, first.others, other, tuple(also))


def _build_comparison(
    predicate: JoinPredicate, variable: str, other: str, schema: Schema, classes: Mapping[str, str]
) -> VariableComparison:
    operator = (
        FLIPPED_SQL_OPERATORS[predicate.operator.value] if predicate.swapped else predicate.operator.value
    )
    own, others = (
        _build_compared_property(predicate.left, classes[variable], schema),
        _build_compared_property(predicate.right, classes[other], schema),
    )
    return VariableComparison(own, operator, others)


def _build_compared_property(property: str | None, cls: str, schema: Schema) -> ComparedProperty:
    if property is None:
        return ComparedProperty(None, REFERENCE_KIND)
    if is_path(property):
        return ComparedProperty(property, None)
    declared = schema.property_of(cls, property)
    assert declared is not None, "queries are checked before"
    return ComparedProperty(declared.name, REFERENCE_KIND if declared.kind is None else declared.kind)


def _list_tests(normal: Rule, variable: str, cls: str, schema: Schema) -> Iterator[ConstantTest]:
    for predicate in list_predicates(normal):
        if (
            isinstance(predicate.left, Path)
            and isinstance(predicate.right, Constant)
            and predicate.left.variable == variable
        ):
            name = predicate.left.steps[0].property if predicate.left.steps else None
            declared = schema.property_of(cls, name) if name is not None else None
            value = Ref(str(predicate.right.value)) if predicate.right.is_resource else predicate.right.value
            yield ConstantTest(name, predicate.operator, to_comparable(value, declared))


def path_between(tree: QueryTree, start: str, end: str) -> list[str]:
    """Return the path of variables from one to another, including both."""
    previous: dict[str, str | None] = {start: None}
    queue = [start]
    for variable in queue:  # grows during iteration
        new = [edge.other for edge in tree[variable].edges if edge.other not in previous]
        previous |= dict.fromkeys(new, variable)
        queue += new
    path: list[str] = []
    current: str | None = end
    while current is not None:
        path.append(current)
        current = previous[current]
    return path[::-1]


def spanning_order(tree: QueryTree, root: str, others: Iterable[str]) -> dict[str, str]:
    """Return the variables on the paths from a root to others, each with its parent, in order from the root."""
    parents: dict[str, str] = {}
    for other in others:
        path = path_between(tree, root, other)
        parents |= dict(zip(path[1:], path, strict=False))
    return parents
