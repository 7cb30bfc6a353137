"""A normal rule as a tree: a node for each variable with what is asked of it alone, an edge for each comparison of two.

Checking made sure that it is a tree: each variable is reached in one way.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from tidings.languages.rules_tree import Compares, Constant, Path, Rule
from tidings.metadata.connecting import joins, predicates
from tidings.metadata.normal import class_of
from tidings.metadata.resources import Ref
from tidings.metadata.schema import Schema
from tidings.store.atom_rows import REF, Compared, compared

FLIPPED = {
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
class Asked:
    """A comparison with a constant: of a property, or of the resource itself, which is None."""

    property: str | None
    compares: Compares
    constant: Compared


@dataclass(frozen=True, slots=True)
class Side:
    """What is compared of a variable, and of which kind that is."""

    property: str | None
    kind: int


@dataclass(frozen=True, slots=True)
class Edge:
    """How a variable stands to another: `own` `operator` `others`."""

    own: Side
    operator: str
    others: Side
    other: str

    def back(self, variable: str) -> Edge:
        return Edge(self.others, FLIPPED[self.operator], self.own, variable)


@dataclass(frozen=True, slots=True)
class Node:
    variable: str
    rule: str | None
    """The rule among whose results it is, if it is a rule that is searched."""

    classes: tuple[str, ...]
    asked: tuple[Asked, ...]
    edges: tuple[Edge, ...]


Tree = Mapping[str, Node]


def tree_of(normal: Rule, schema: Schema, types: Mapping[str, str]) -> Tree:
    classes = {each.variable: class_of(each.extension, schema, types) for each in normal.searched}
    edges = list(_edges(normal, schema, classes))
    return {
        each.variable: Node(
            each.variable,
            None if each.extension in schema.classes else each.extension,
            tuple(sorted(schema.at_or_below(classes[each.variable]))),
            tuple(_asked(normal, each.variable, classes[each.variable], schema)),
            tuple(edge for variable, edge in edges if variable == each.variable),
        )
        for each in normal.searched
    }


def _edges(normal: Rule, schema: Schema, classes: Mapping[str, str]) -> Iterator[tuple[str, Edge]]:
    for left, right, comparison in joins(normal):
        own, others = (_side(path, schema, classes) for path in (left, right))
        edge = Edge(own, comparison.compares.value, others, right.variable)
        yield left.variable, edge
        yield right.variable, edge.back(left.variable)


def _side(path: Path, schema: Schema, classes: Mapping[str, str]) -> Side:
    if not path.steps:
        return Side(None, REF)
    found = schema.property_of(classes[path.variable], path.steps[0].property)
    assert found is not None, "queries are checked before"
    return Side(found.name, REF if found.kind is None else found.kind)


def _asked(normal: Rule, variable: str, cls: str, schema: Schema) -> Iterator[Asked]:
    for each in predicates(normal):
        if (
            isinstance(each.left, Path)
            and isinstance(each.right, Constant)
            and each.left.variable == variable
        ):
            name = each.left.steps[0].property if each.left.steps else None
            declared = schema.property_of(cls, name) if name is not None else None
            value = Ref(str(each.right.value)) if each.right.is_resource else each.right.value
            yield Asked(name, each.compares, compared(value, declared))


def way(tree: Tree, start: str, end: str) -> list[str]:
    """The variables from one to another, both included."""
    before: dict[str, str | None] = {start: None}
    waiting = [start]
    for variable in waiting:
        new = [edge.other for edge in tree[variable].edges if edge.other not in before]
        before |= dict.fromkeys(new, variable)
        waiting += new
    found: list[str] = []
    at: str | None = end
    while at is not None:
        found.append(at)
        at = before[at]
    return found[::-1]


def spanned(tree: Tree, root: str, others: Iterable[str]) -> dict[str, str]:
    """The variables on the ways from a root to others, each with the one before it, in an order from the root on."""
    found: dict[str, str] = {}
    for other in others:
        ways = way(tree, root, other)
        found |= dict(zip(ways[1:], ways, strict=False))
    return found
