"""G_M: all subscriptions in one graph (paper 002, section 4.1, figure 7).

    (A, B)    ->   a  ->  {s1, s2}         two levels of hashing: the names of the two nodes,
                   b  ->  {s1}             then the name of the edge; then who has that edge
    (A, ⋆1)   ->   c  ->  {s2}

A node that several subscriptions name is there once. Variables have no names in common, so they become *stars*: the
first variable of each subscription is ⋆1, the second ⋆2, and all subscriptions share the stars.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from tidings.graphs.gql.gql_tree import Pattern, Variable, variables
from tidings.graphs.model import Edge, Term


class Star(NamedTuple):
    """⋆1, ⋆2, ...: a variable, of whichever subscription."""

    number: int


Label = Term | Star
"""What stands at a node or an edge of G_M."""

Row = tuple[Term, ...]


@dataclass(slots=True, eq=False)
class MergedEdge:
    """An edge of G_M, and the ids of the subscriptions that have it."""

    source: Label
    property: Label
    target: Label
    subscriptions: dict[str, None] = field(default_factory=dict)

    def columns(self) -> tuple[Label, ...]:
        """Of its binding table: `newTable(E.v, E.w)` in the paper.

        The property is a third column if it is a variable. An edge from ⋆1 to ⋆1 has one column, not two.
        """
        named = (self.property,) if isinstance(self.property, Star) else ()
        return tuple(dict.fromkeys((self.source, self.target, *named)))

    def row(self, edge: Edge) -> Row | None:
        """The row that a published edge adds. (A, p, B) adds none to (⋆1, p, ⋆1): a star is one term throughout."""
        bound: dict[Label, Term] = {}
        for label, term in ((self.source, edge.subject), (self.target, edge.object)):
            if bound.setdefault(label, term) != term:
                return None
        if (
            isinstance(self.property, Star)
            and bound.setdefault(self.property, edge.property) != edge.property
        ):
            return None
        return tuple(bound.values())


class MergedGraph:
    """Two levels of hash tables, and how many stars there are."""

    def __init__(self) -> None:
        self.pairs: dict[tuple[Label, Label], dict[Label, MergedEdge]] = {}
        self._nodes = Counter[Star]()
        self._properties = Counter[Star]()

    def insert(self, id: str, edges: Iterable[tuple[Label, Label, Label]]) -> tuple[MergedEdge, ...]:
        """Algorithm `Insert`: the edges of G_M that stand for a subscription's, each of them once.

        (?x, p, ?y) written twice is one edge of G_M. Counted twice, it would be waited for twice.
        """
        return tuple(self._take(id, *edge) for edge in dict.fromkeys(edges))

    def _take(self, id: str, source: Label, property: Label, target: Label) -> MergedEdge:
        named = self.pairs.setdefault((source, target), {})
        edge = named.get(property)
        if edge is None:
            edge = named[property] = MergedEdge(source, property, target)
            self._nodes.update(_stars(source, target))
            self._properties.update(_stars(property))
        edge.subscriptions[id] = None
        return edge

    def delete(self, id: str, edges: Iterable[MergedEdge]) -> None:
        """What the paper leaves out. An edge that nobody has any more goes, and with it the last use of a star.

        Without that, one subscription of ten variables would make each publication look up a hundred pairs for ever.
        """
        for edge in edges:
            del edge.subscriptions[id]
            if not edge.subscriptions:
                self._drop(edge)

    def _drop(self, edge: MergedEdge) -> None:
        named = self.pairs[edge.source, edge.target]
        del named[edge.property]
        if not named:
            del self.pairs[edge.source, edge.target]
        for uses, stars in (
            (self._nodes, _stars(edge.source, edge.target)),
            (self._properties, _stars(edge.property)),
        ):
            uses.subtract(stars)
            for star in stars:
                if not uses[star]:
                    del uses[star]

    @property
    def stars(self) -> tuple[Star, ...]:
        """Those at nodes: at most as many as the variables of the subscription with most."""
        return tuple(self._nodes)

    def matched_by(self, edge: Edge) -> Iterator[MergedEdge]:
        """The edges of G_M that a published edge may stand for: (v, w), (v, ⋆i), (⋆i, w) and (⋆i, ⋆j).

        The paper speaks of a fully connected graph of v, w and all stars. That has (w, v) too, and with it the
        published (A, p, B) would match a subscription to (B, p, A); section 4.2 lists only the four.

        Variables at properties, which the paper leaves for the future, are stars too: at the second level.
        """
        stars = self.stars
        sources: tuple[Label, ...] = (edge.subject, *stars)
        targets: tuple[Label, ...] = (edge.object, *stars)
        for source in sources:
            for target in targets:
                named = self.pairs.get((source, target))
                if named is not None:
                    yield from self._labelled(named, edge.property)

    def _labelled(self, named: Mapping[Label, MergedEdge], property: Term) -> Iterator[MergedEdge]:
        if (found := named.get(property)) is not None:
            yield found
        for star in self._properties:
            if (found := named.get(star)) is not None:
                yield found


def _stars(*labels: Label) -> tuple[Star, ...]:
    return tuple(label for label in labels if isinstance(label, Star))


def starred(pattern: Pattern) -> dict[str, Star]:
    """A star for each variable, in the order they come up: ?x is ⋆1 if it is the first."""
    return {name: Star(number) for number, name in enumerate(variables(pattern), 1)}


def labelled(pattern: Pattern, stars: Mapping[str, Star]) -> Iterator[tuple[Label, Label, Label]]:
    """The pattern's edges with stars for variables: source, property, target."""

    def label(each: Term | Variable) -> Label:
        return stars[each.name] if isinstance(each, Variable) else each

    for edge in pattern.edges:
        yield label(edge.subject), label(edge.property), label(edge.object)
