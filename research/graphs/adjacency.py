"""A published graph for the search of `ops`: its edges by their ends. Lists take the place of Ullmann's matrix."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from tidings.graphs.model import Edge, Term

Ends = tuple[Term | None, Term | None, Term | None]


class Adjacency:
    """Edges by subject, property and object, where None stands for any."""

    def __init__(self, edges: Iterable[Edge]) -> None:
        self._edges: dict[Ends, list[Edge]] = defaultdict(list)
        for edge in edges:
            subject, property, object = edge
            for s in (subject, None):
                for p in (property, None):
                    for o in (object, None):
                        self._edges[s, p, o].append(edge)

    def having(self, subject: Term | None, property: Term | None, object: Term | None) -> Sequence[Edge]:
        return self._edges.get((subject, property, object), ())
