"""The naive algorithm (paper 002, figure 10(b)): one subscription after another, by the definition.

Time: grows with all subscriptions, each searched for on its own.
Space: the subscriptions themselves and nothing else.
Change: free. It is what the others are measured against.
"""

from __future__ import annotations

import math

from research.events.shared import deep_size
from research.graphs.protocol import Bindings
from tidings.graphs.explanation import Explainer
from tidings.graphs.gql.gql_tree import Pattern
from tidings.graphs.model import Graph
from tidings.graphs.taxonomy import Taxonomy


class NaiveGraphs:
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
