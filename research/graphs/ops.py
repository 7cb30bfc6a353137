"""Subgraph search as in OPS (paper 002, section 5; Wang, Jin and Li at Middleware 2004; Ullmann 1976).

Every node of a subscription, named or not, is a variable that may be any node of the publication. What
remains is the structure of the subscription; structures are in a tree with shared prefixes. The search
descends the tree edge by edge, with a node of the publication for each number, and backtracks; names of nodes
and constraints are checked where a structure is complete.

Time: grows with the number of embeddings of the structures, which may be exponential in their size. Space:
structures share their common prefix; names and constraints are stored with each subscription. Change: cheap;
one path in the tree.

Unlike Ullmann's, the search maps two nodes of a structure to one node of the publication, as two variables
may be.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from research.events.algorithm import deep_size
from research.graphs.algorithm import Bindings, Constraints, TaxonomyWalk, entail_edges
from tidings.graphs.model import Edge, Graph, Term
from tidings.graphs.patterns.pattern_tree import Pattern, PatternEdge, Variable, selected
from tidings.graphs.taxonomy import Taxonomy

Node = Term | Variable


class Step(NamedTuple):
    """One more edge: from the node of one number to that of another.

    A property that is a variable has a number too. None is any property, whose name is checked at the end.
    """

    source: int
    property: Term | int | None
    target: int


@dataclass(frozen=True, slots=True)
class Leaf:
    """A subscription at the end of its structure: the number of each node."""

    pattern: Pattern
    numbers: dict[Node, int]


@dataclass(slots=True)
class Structure:
    """A common prefix of structures: how they continue, and those that end here.

        s1   (A, p, ?x) (?x, q, B)            0 -p-> 1 ── 1 -q-> 2    {s1: 0 is A, 2 is B}
        s2   (?x, p, C) (C, q, D)               │                     {s2: 1 is C, 2 is D}
        s3   (A, p, ?x) (A, r, ?y)              └── 0 -r-> 2          {s3: 0 is A}

    Nodes are numbered in order of appearance.
    """

    steps: dict[Step, Structure] = field(default_factory=dict)
    leaves: dict[str, Leaf] = field(default_factory=dict)

    def insert(self, id: str, steps: Iterable[Step], leaf: Leaf) -> None:
        at = self
        for step in steps:
            at = at.steps.setdefault(step, Structure())
        at.leaves[id] = leaf

    def delete(self, id: str, steps: Iterable[Step]) -> None:
        """Remove a subscription, and all steps that only it used."""
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
    """Return the steps of a pattern, each once, and its leaf. A bare structure has no names at edges."""
    numbers: dict[Node, int] = {}
    steps = dict.fromkeys(_make_step(edge, numbers, bare) for edge in order_edges(pattern.edges))
    return tuple(steps), Leaf(pattern, numbers)


def _make_step(edge: PatternEdge, numbers: dict[Node, int], bare: bool) -> Step:
    source = numbers.setdefault(edge.subject, len(numbers))
    if isinstance(edge.property, Variable):
        property: Term | int | None = numbers.setdefault(edge.property, len(numbers))
    else:
        property = None if bare else edge.property
    return Step(source, property, numbers.setdefault(edge.object, len(numbers)))


def order_edges(edges: Iterable[PatternEdge]) -> Iterator[PatternEdge]:
    """Yield edges as written, except that an edge waits until it shares a node with earlier ones, if it ever does."""
    left, known = list(edges), set[Node]()
    while left:
        near = (at for at, edge in enumerate(left) if edge.subject in known or edge.object in known)
        edge = left.pop(next(near, 0))
        known.update((edge.subject, edge.object))
        yield edge


Binding = tuple[Term, ...]
"""The terms of the nodes 0, 1, 2 ... of a structure."""


class Ops:
    """OPS. `bare` also ignores the names of edges until a structure is complete: Ullmann's graphs have none."""

    def __init__(self, taxonomy: Taxonomy, bare: bool = False) -> None:
        self.structures = Structure()
        self._steps: dict[str, tuple[Step, ...]] = {}
        self._walk = TaxonomyWalk(taxonomy)
        self._bare = bare

    def add(self, id: str, pattern: Pattern) -> None:
        self.remove(id)
        self._steps[id], leaf = structure_of(pattern, self._bare)
        self.structures.insert(id, self._steps[id], leaf)

    def remove(self, id: str) -> bool:
        steps = self._steps.pop(id, None)
        if steps is not None:
            self.structures.delete(id, steps)
        return steps is not None

    def match(self, graph: Graph) -> dict[str, Bindings]:
        search = _Search(entail_edges(graph, self._walk.taxonomy), self._walk, self._bare)
        search.down(self.structures, ())
        return {id: frozenset(bindings) for id, bindings in search.found.items()}

    def size(self) -> int:
        return deep_size(self)

    def __len__(self) -> int:
        return len(self._steps)


class _Search:
    """The search through one publication."""

    def __init__(self, edges: Sequence[Edge], walk: TaxonomyWalk, bare: bool) -> None:
        self.found: dict[str, set[Binding]] = defaultdict(set)
        self._bare = bare
        self._edges = Adjacency(edges)
        self._constraints = Constraints(edges, walk)

    def down(self, structure: Structure, chosen: Binding) -> None:
        for id, leaf in structure.leaves.items():
            if self._names_hold(leaf, chosen) and self._constraints_hold(leaf, chosen):
                shown = (chosen[leaf.numbers[Variable(name)]] for name in selected(leaf.pattern))
                self.found[id].add(tuple(shown))
        for step, deeper in structure.steps.items():
            for more in self._extend(step, chosen):
                self.down(deeper, more)

    def _extend(self, step: Step, chosen: Binding) -> Iterable[Binding]:
        """Return all bindings with one more edge, each once; a new number may be any term."""

        def known(at: Term | int | None) -> Term | None:
            if isinstance(at, int):
                return chosen[at] if at < len(chosen) else None
            return at

        edges = self._edges.find_edges(known(step.source), known(step.property), known(step.target))
        ways = (_extend_binding(chosen, step, edge) for edge in edges)
        return dict.fromkeys(way for way in ways if way is not None)

    def _names_hold(self, leaf: Leaf, chosen: Binding) -> bool:
        """Return whether named nodes are bound to their names; for a bare structure, also whether the edges exist."""
        if any(isinstance(node, Term) and chosen[at] != node for node, at in leaf.numbers.items()):
            return False
        return not self._bare or all(
            self._edges.find_edges(
                chosen[leaf.numbers[edge.subject]], edge.property, chosen[leaf.numbers[edge.object]]
            )
            for edge in leaf.pattern.edges
            if isinstance(edge.property, Term)
        )

    def _constraints_hold(self, leaf: Leaf, chosen: Binding) -> bool:
        return all(
            self._constraints.hold(each, chosen[leaf.numbers[Variable(each.variable)]])
            for each in leaf.pattern.constraints
        )


def _extend_binding(chosen: Binding, step: Step, edge: Edge) -> Binding | None:
    """Return the binding with one more edge; None if a number would stand for two terms."""
    for at, term in ((step.source, edge.subject), (step.property, edge.property), (step.target, edge.object)):
        if not isinstance(at, int):
            continue
        if at == len(chosen):
            chosen = (*chosen, term)
        elif chosen[at] != term:
            return None
    return chosen


Ends = tuple[Term | None, Term | None, Term | None]


class Adjacency:
    """The edges of a published graph by subject, property and object, where None means any.

    Lists take the place of Ullmann's matrix.
    """

    def __init__(self, edges: Iterable[Edge]) -> None:
        self._edges: dict[Ends, list[Edge]] = defaultdict(list)
        for edge in edges:
            subject, property, object = edge
            for s in (subject, None):
                for p in (property, None):
                    for o in (object, None):
                        self._edges[s, p, o].append(edge)

    def find_edges(self, subject: Term | None, property: Term | None, object: Term | None) -> Sequence[Edge]:
        return self._edges.get((subject, property, object), ())
