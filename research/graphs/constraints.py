"""Constraints on what a variable is bound to, as G-ToPSS checks them: by walking (paper 002, section 4.2).

The paper's `isTrue` compares the bound node itself with the class. But a page is never below or above a class, only the
classes it stands at are; and `=` would ask whether the page *is* the class. So all three ask where the node stands.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from tidings.graphs.explanation import OF_VALUES
from tidings.graphs.gql.gql_tree import Constraint, ConstraintKind
from tidings.graphs.model import TYPE, Edge, Graph, Term, iri
from tidings.graphs.taxonomy import SUBCLASS, Taxonomy


class Walk:
    """A taxonomy to walk through, from class to class."""

    def __init__(self, taxonomy: Taxonomy) -> None:
        self.taxonomy = taxonomy
        self._parents: dict[Term, list[Term]] = defaultdict(list)
        for subject, property, object in taxonomy.statements:
            if property.text == SUBCLASS:
                self._parents[subject].append(object)

    def is_descendant(self, node: Term, ancestor: Term) -> bool:
        """Whether a class is another one, or below it: `isNodeDescendant` in the paper.

        Where classes have several parents, many ways lead to one above. The paper takes all of them, which takes a time
        exponential in the number of parents; here each class is visited once.
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


def entailed(graph: Graph, taxonomy: Taxonomy) -> tuple[Edge, ...]:
    """The published edges and those with properties above theirs, each once."""
    found = (
        edge._replace(property=above)
        for edge in graph.edges
        for above in taxonomy.super_properties(edge.property)
    )
    return tuple(dict.fromkeys(found))


class Constraints:
    """The constraints for one publication: its edges say which classes its nodes have."""

    def __init__(self, edges: Iterable[Edge], walk: Walk) -> None:
        self._walk = walk
        self._types: dict[Term, list[Term]] = defaultdict(list)
        for edge in edges:
            if edge.property == _TYPE:
                self._types[edge.subject].append(edge.object)

    def hold(self, constraint: Constraint, term: Term) -> bool:
        of_values = OF_VALUES.get(constraint.asked)
        if of_values is not None:
            return of_values(term, constraint.operands)
        return self._stands(constraint.asked, term, constraint.operands[0])

    def _stands(self, asked: ConstraintKind, term: Term, of: Term) -> bool:
        places, below = (
            self._walk.taxonomy.stands_at(term, self._types.get(term, ())),
            self._walk.is_descendant,
        )
        if asked in (ConstraintKind.AT_CLASS, ConstraintKind.NOT_AT_CLASS):
            return (of in places) is (asked is ConstraintKind.AT_CLASS)
        if asked in (ConstraintKind.BELOW, ConstraintKind.ABOVE):
            places -= {of}
        if asked in (ConstraintKind.BELOW, ConstraintKind.AT_OR_BELOW):
            return any(below(place, of) for place in places)
        return any(below(of, place) for place in places)


_TYPE = iri(TYPE)
