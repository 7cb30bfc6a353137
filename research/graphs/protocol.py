"""What the algorithms for graphs have in common, seen from outside.

An algorithm holds subscriptions as patterns and answers, for one published graph at a time, which of them it matches
and with which bindings. They all give the answers of `graphs.explanation`; they differ in time, in space and in what it
costs to change the subscriptions.
"""

from __future__ import annotations

from typing import Protocol

from tidings.graphs.gql.gql_tree import Pattern
from tidings.graphs.model import Graph, Term

Bindings = frozenset[tuple[Term, ...]]
"""What the variables of `gql_tree.selected(pattern)` are bound to, in that order."""


class GraphAlgorithm(Protocol):
    """Add and remove subscriptions, match graphs."""

    def add(self, id: str, pattern: Pattern) -> None:
        """Hold a subscription. A pattern under an id that is already there takes the place of the old one."""

    def remove(self, id: str) -> bool:
        """Forget a subscription; says whether it was there."""

    def match(self, graph: Graph) -> dict[str, Bindings]:
        """The subscriptions the graph matches, by id, each with the bindings of what it selects: at least one."""

    def size(self) -> int:
        """Bytes of everything the algorithm holds, its subscriptions and the taxonomy included."""

    def __len__(self) -> int:
        """How many subscriptions it holds."""
