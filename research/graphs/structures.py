"""Structures of patterns for the search of `ops`: what is left when every node is a variable.

    s1   (A, p, ?x) (?x, q, B)            0 -p-> 1 ── 1 -q-> 2    {s1: 0 is A, 2 is B}
    s2   (?x, p, C) (C, q, D)               │                     {s2: 1 is C, 2 is D}
    s3   (A, p, ?x) (A, r, ?y)              └── 0 -r-> 2          {s3: 0 is A}

Nodes are numbered as they come up. Structures that begin alike share the beginning, in a tree.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from tidings.graphs.gql.gql_tree import Pattern, PatternEdge, Variable
from tidings.graphs.model import Term

Node = Term | Variable


class Step(NamedTuple):
    """One more edge: from the node of one number to that of another.

    A property that is a variable has a number too. None is any property, whose name is looked at in the end.
    """

    source: int
    property: Term | int | None
    target: int


@dataclass(frozen=True, slots=True)
class Leaf:
    """A subscription where its structure is complete: what stands at which number."""

    pattern: Pattern
    numbers: dict[Node, int]


@dataclass(slots=True)
class Structure:
    """What some subscriptions begin with: how they go on, and those that end here."""

    steps: dict[Step, Structure] = field(default_factory=dict)
    leaves: dict[str, Leaf] = field(default_factory=dict)

    def insert(self, id: str, steps: Iterable[Step], leaf: Leaf) -> None:
        at = self
        for step in steps:
            at = at.steps.setdefault(step, Structure())
        at.leaves[id] = leaf

    def delete(self, id: str, steps: Iterable[Step]) -> None:
        """Take a subscription out, and all steps that only it took."""
        at, way = self, list[tuple[Structure, Step]]()
        for step in steps:
            way.append((at, step))
            at = at.steps[step]
        del at.leaves[id]
        for above, step in reversed(way):
            below = above.steps[step]
            if below.steps or below.leaves:
                return
            del above.steps[step]


def structure_of(pattern: Pattern, bare: bool) -> tuple[tuple[Step, ...], Leaf]:
    """The steps of a pattern, each once, and its leaf. A bare structure has no names at edges."""
    numbers: dict[Node, int] = {}
    steps = dict.fromkeys(_step(edge, numbers, bare) for edge in connected(pattern.edges))
    return tuple(steps), Leaf(pattern, numbers)


def _step(edge: PatternEdge, numbers: dict[Node, int], bare: bool) -> Step:
    source = numbers.setdefault(edge.subject, len(numbers))
    if isinstance(edge.property, Variable):
        property: Term | int | None = numbers.setdefault(edge.property, len(numbers))
    else:
        property = None if bare else edge.property
    return Step(source, property, numbers.setdefault(edge.object, len(numbers)))


def connected(edges: Iterable[PatternEdge]) -> Iterator[PatternEdge]:
    """As they were written, except that an edge waits until it shares a node with those before, if it ever does."""
    left, known = list(edges), set[Node]()
    while left:
        near = (at for at, edge in enumerate(left) if edge.subject in known or edge.object in known)
        edge = left.pop(next(near, 0))
        known.update((edge.subject, edge.object))
        yield edge
