"""A search for subgraphs like that of OPS (paper 002, section 5; Wang, Jin and Li at Middleware 2004; Ullmann 1976).

Every node of a subscription, named or not, is taken for a variable that may be any node of the publication. What is
left is the subscription's structure; `structures` has them in a tree, the beginnings shared. The search goes down the
tree edge by edge, with a node of the publication for each number, and back; names of nodes and constraints are looked
at where a structure is complete.

Time: grows with the number of ways the structures lie in the publication, which may be exponential in their size.
Space: structures that begin alike are stored once as far as they do, names and constraints with each subscription.
Change: cheap; one path in the tree.

Unlike Ullmann's, the search lets two nodes of a structure be one node of the publication, as two variables may.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from research.events.shared import deep_size
from research.graphs.adjacency import Adjacency
from research.graphs.constraints import Constraints, Walk, entailed
from research.graphs.protocol import Bindings
from research.graphs.structures import Leaf, Step, Structure, structure_of
from tidings.graphs.gql.gql_tree import Pattern, Variable, selected
from tidings.graphs.model import Edge, Graph, Term
from tidings.graphs.taxonomy import Taxonomy

Chosen = tuple[Term, ...]
"""What stands for the nodes 0, 1, 2 ... of a structure."""


class Ops:
    """`bare` leaves the names of edges, too, until a structure is complete: Ullmann's graphs have none."""

    def __init__(self, taxonomy: Taxonomy, bare: bool = False) -> None:
        self.structures = Structure()
        self._steps: dict[str, tuple[Step, ...]] = {}
        self._walk = Walk(taxonomy)
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
        search = _Search(entailed(graph, self._walk.taxonomy), self._walk, self._bare)
        search.down(self.structures, ())
        return {id: frozenset(bindings) for id, bindings in search.found.items()}

    def size(self) -> int:
        return deep_size(self)

    def __len__(self) -> int:
        return len(self._steps)


class _Search:
    """The search through one publication."""

    def __init__(self, edges: Sequence[Edge], walk: Walk, bare: bool) -> None:
        self.found: dict[str, set[Chosen]] = defaultdict(set)
        self._bare = bare
        self._edges = Adjacency(edges)
        self._constraints = Constraints(edges, walk)

    def down(self, structure: Structure, chosen: Chosen) -> None:
        for id, leaf in structure.leaves.items():
            if self._named(leaf, chosen) and self._constrained(leaf, chosen):
                shown = (chosen[leaf.numbers[Variable(name)]] for name in selected(leaf.pattern))
                self.found[id].add(tuple(shown))
        for step, deeper in structure.steps.items():
            for more in self._taking(step, chosen):
                self.down(deeper, more)

    def _taking(self, step: Step, chosen: Chosen) -> Iterable[Chosen]:
        """All ways of one more edge, each once: with what was chosen before, and with any for a number that is new."""

        def known(at: Term | int | None) -> Term | None:
            if isinstance(at, int):
                return chosen[at] if at < len(chosen) else None
            return at

        edges = self._edges.having(known(step.source), known(step.property), known(step.target))
        ways = (_chosen(chosen, step, edge) for edge in edges)
        return dict.fromkeys(way for way in ways if way is not None)

    def _named(self, leaf: Leaf, chosen: Chosen) -> bool:
        """Whether the nodes that have names are chosen to be those; and, of a bare structure, the edges are there."""
        if any(isinstance(node, Term) and chosen[at] != node for node, at in leaf.numbers.items()):
            return False
        return not self._bare or all(
            self._edges.having(
                chosen[leaf.numbers[edge.subject]], edge.property, chosen[leaf.numbers[edge.object]]
            )
            for edge in leaf.pattern.edges
            if isinstance(edge.property, Term)
        )

    def _constrained(self, leaf: Leaf, chosen: Chosen) -> bool:
        return all(
            self._constraints.hold(each, chosen[leaf.numbers[Variable(each.variable)]])
            for each in leaf.pattern.constraints
        )


def _chosen(chosen: Chosen, step: Step, edge: Edge) -> Chosen | None:
    """What is chosen with one more edge; None if a number would stand for two things."""
    for at, term in ((step.source, edge.subject), (step.property, edge.property), (step.target, edge.object)):
        if not isinstance(at, int):
            continue
        if at == len(chosen):
            chosen = (*chosen, term)
        elif chosen[at] != term:
            return None
    return chosen
