"""The protocol of algorithms for graphs, the naive one, and the checks of constraints that the others share."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable
from typing import Protocol

from research.events.algorithm import deep_size
from tidings.graphs.model import TYPE, Edge, Graph, Term, iri
from tidings.graphs.patterns.pattern_tree import Constraint, ConstraintKind, Pattern
from tidings.graphs.reference_matcher import OF_VALUES, Explainer
from tidings.graphs.taxonomy import SUBCLASS, Taxonomy

Bindings = frozenset[tuple[Term, ...]]
"""The terms of the variables of `pattern_tree.selected(pattern)`, in that order."""


class GraphAlgorithm(Protocol):
    """Holds subscriptions as patterns and returns, for one published graph at a time, the matching ones and
    their bindings.

    All algorithms return the result of `graphs.explanation`; they differ in time, in space and in the cost of
    changes.
    """

    def add(self, id: str, pattern: Pattern) -> None:
        """Add a subscription; a pattern with an existing id replaces the old one."""

    def remove(self, id: str) -> bool:
        """Remove a subscription; return whether it existed."""

    def match(self, graph: Graph) -> dict[str, Bindings]:
        """Return the matching subscriptions by id, each with the bindings of what it selects: at least one."""

    def size(self) -> int:
        """Return the bytes of everything the algorithm holds, including subscriptions and taxonomy."""

    def __len__(self) -> int:
        """Return the number of subscriptions."""


class TaxonomyWalk:
    """A taxonomy that is walked from class to class, as G-ToPSS does (paper 002, section 4.2)."""

    def __init__(self, taxonomy: Taxonomy) -> None:
        self.taxonomy = taxonomy
        self._parents: dict[Term, list[Term]] = defaultdict(list)
        for subject, property, object in taxonomy.statements:
            if property.text == SUBCLASS:
                self._parents[subject].append(object)

    def is_descendant(self, node: Term, ancestor: Term) -> bool:
        """Return whether a class equals another one or is below it: `isNodeDescendant` in the paper.

        Where classes have several parents, many paths lead to one ancestor. The paper follows all of them, in
        time exponential in the number of parents; here each class is visited once.
        """
        pending, seen = [node], {node}
        while pending:
            at = pending.pop()
            if at == ancestor:
                return True
            above = [parent for parent in self._parents.get(at, ()) if parent not in seen]
            seen.update(above)
            pending += above
        return False


def entail_edges(graph: Graph, taxonomy: Taxonomy) -> tuple[Edge, ...]:
    """Return the published edges and those with properties above theirs, each once."""
    found = (
        edge._replace(property=above)
        for edge in graph.edges
        for above in taxonomy.super_properties(edge.property)
    )
    return tuple(dict.fromkeys(found))


class Constraints:
    """The constraints for one publication, whose edges give the classes of its nodes.

    The paper's `isTrue` compares the bound node itself with the class. But a page is never below or above a
    class, only its classes are; and `=` would ask whether the page *is* the class. So all three compare the
    classes of the node.
    """

    def __init__(self, edges: Iterable[Edge], walk: TaxonomyWalk) -> None:
        self._walk = walk
        self._types: dict[Term, list[Term]] = defaultdict(list)
        for edge in edges:
            if edge.property == _TYPE:
                self._types[edge.subject].append(edge.object)

    def hold(self, constraint: Constraint, term: Term) -> bool:
        of_values = OF_VALUES.get(constraint.kind)
        if of_values is not None:
            return of_values(term, constraint.operands)
        return self._class_holds(constraint.kind, term, constraint.operands[0])

    def _class_holds(self, kind: ConstraintKind, term: Term, of: Term) -> bool:
        places, below = (
            self._walk.taxonomy.classes_of(term, self._types.get(term, ())),
            self._walk.is_descendant,
        )
        if kind in (ConstraintKind.AT_CLASS, ConstraintKind.NOT_AT_CLASS):
            return (of in places) is (kind is ConstraintKind.AT_CLASS)
        if kind in (ConstraintKind.BELOW, ConstraintKind.ABOVE):
            places -= {of}
        if kind in (ConstraintKind.BELOW, ConstraintKind.AT_OR_BELOW):
            return any(below(place, of) for place in places)
        return any(below(of, place) for place in places)


_TYPE = iri(TYPE)


class NaiveGraphs:
    """The naive algorithm (paper 002, figure 10(b)): one subscription after another, by the specification.

    Time: grows with all subscriptions, each searched by itself.
    Space: the subscriptions themselves.
    Change: free. The others are measured against it.
    """

    def __init__(self, taxonomy: Taxonomy) -> None:
        self._patterns: dict[str, Pattern] = {}
        self._taxonomy = taxonomy

    def add(self, id: str, pattern: Pattern) -> None:
        self._patterns[id] = pattern

    def remove(self, id: str) -> bool:
        return self._patterns.pop(id, None) is not None

    def match(self, graph: Graph) -> dict[str, Bindings]:
        definition = Explainer(graph, self._taxonomy, math.inf)
        found = {id: definition.bindings(pattern, math.inf)[0] for id, pattern in self._patterns.items()}
        return {id: frozenset(tuple(row.values()) for row in rows) for id, rows in found.items() if rows}

    def size(self) -> int:
        return deep_size(self)

    def __len__(self) -> int:
        return len(self._patterns)
