"""A normal rule as a tree: a node for each variable with what is asked of it alone, an edge for all that compares two.

Checking made sure that it is a tree: each variable is reached in one way.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from tidings.languages.rules_tree import Compares, Constant, Path, Rule
from tidings.metadata.atomic import Predicate, is_path
from tidings.metadata.connecting import neighbours, predicates
from tidings.metadata.meeting import ranked
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
    """What is compared of a variable, and of which kind that is. Of a path it is not said: values have their kinds."""

    property: str | None
    kind: int | None


@dataclass(frozen=True, slots=True)
class Stands:
    """How a resource stands to another, or to itself: `own` `operator` `others`."""

    own: Side
    operator: str
    others: Side

    def back(self) -> Stands:
        return Stands(self.others, FLIPPED[self.operator], self.own)


@dataclass(frozen=True, slots=True)
class Edge(Stands):
    """How a variable stands to another, and how `also`. If there is a `=` among all that, it comes first."""

    other: str
    also: tuple[Stands, ...] = ()

    @property
    def by_value(self) -> bool:
        """Whether one is found from the other by an equal value. What stands behind a reference is not."""
        return self.operator == "=" and not self.by_path

    @property
    def by_path(self) -> bool:
        return is_path(self.own.property) or is_path(self.others.property)

    def turned(self, variable: str) -> Edge:
        """The same from the other variable."""
        also = tuple(each.back() for each in self.also)
        return Edge(self.others, FLIPPED[self.operator], self.own, variable, also)


@dataclass(frozen=True, slots=True)
class Node:
    variable: str
    rule: str | None
    """The rule among whose results it is, if it is a rule that is searched."""

    classes: tuple[str, ...]
    asked: tuple[Asked, ...]
    itself: tuple[Stands, ...]
    """How it stands to itself: two of its properties are compared."""

    edges: tuple[Edge, ...]


Tree = Mapping[str, Node]


def tree_of(normal: Rule, schema: Schema, types: Mapping[str, str]) -> Tree:
    classes = {each.variable: class_of(each.extension, schema, types) for each in normal.searched}
    compared = neighbours(normal)
    return {
        each.variable: Node(
            each.variable,
            None if each.extension in schema.classes else each.extension,
            tuple(sorted(schema.at_or_below(classes[each.variable]))),
            tuple(_asked(normal, each.variable, classes[each.variable], schema)),
            tuple(
                _stands(asked, each.variable, each.variable, schema, classes)
                for asked in compared[each.variable].get(each.variable, ())
            ),
            tuple(
                _edge(asked, each.variable, other, schema, classes)
                for other, asked in compared[each.variable].items()
                if other != each.variable
            ),
        )
        for each in normal.searched
    }


def _edge(
    asked: Iterable[Predicate], variable: str, other: str, schema: Schema, classes: Mapping[str, str]
) -> Edge:
    first, *also = (
        _stands(each, variable, other, schema, classes) for each in ranked(asked, classes[variable], schema)
    )
    return Edge(first.own, first.operator, first.others, other, tuple(also))


def _stands(
    asked: Predicate, variable: str, other: str, schema: Schema, classes: Mapping[str, str]
) -> Stands:
    operator = FLIPPED[asked.compares.value] if asked.turned else asked.compares.value
    own, others = _side(asked.left, classes[variable], schema), _side(asked.right, classes[other], schema)
    return Stands(own, operator, others)


def _side(property: str | None, cls: str, schema: Schema) -> Side:
    if property is None:
        return Side(None, REF)
    if is_path(property):
        return Side(property, None)
    found = schema.property_of(cls, property)
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
