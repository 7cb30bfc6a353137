"""Subscriptions to graphs as columns: one row each, converted to patterns or GQL texts on demand."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from tidings.graphs.model import XSD, Graph, Term, iri, literal
from tidings.graphs.patterns.pattern_tree import Constraint, ConstraintKind, Pattern, PatternEdge, Variable

EXAMPLE = "http://example.org/"
VALUE = "value"
"""Property of the number of each node of a publication, if subscriptions test values."""

NONE = -1
"""In a column: no edge, no constraint, no core."""

Ints = npt.NDArray[np.integer]
EdgeCodes = list[tuple[int, int, int]]


@lru_cache(maxsize=1 << 16)
def named(kind: str, number: int) -> Term:
    """Return the IRI of a node (`n7`), property (`p7`) or class (`c7`)."""
    return iri(f"{EXAMPLE}{kind}{number}")


@dataclass(frozen=True)
class GraphSubscriptions:
    """Subscriptions, one per row. Edges refer to their ends by position among the row's nodes.

    A row may have fewer edges than others: its last labels are `NONE`. `core` tells which publications a subscription
    is made to match.
    """

    nodes: Ints
    variable: npt.NDArray[np.bool_]
    source: Ints
    label: Ints
    target: Ints
    core: Ints
    value_at: Ints
    bound: Ints
    class_at: Ints
    class_number: Ints

    def __len__(self) -> int:
        return len(self.nodes)

    def first(self, count: int) -> GraphSubscriptions:
        return self.taking(np.arange(min(count, len(self))))

    def taking(self, rows: Ints) -> GraphSubscriptions:
        return GraphSubscriptions(*(getattr(self, column.name)[rows] for column in fields(self)))

    def edges(self, row: int) -> EdgeCodes:
        """Return the edges of a row: position, label, position."""
        columns = (each[row].tolist() for each in (self.source, self.label, self.target))
        return [edge for edge in zip(*columns, strict=True) if edge[1] != NONE]

    def patterns(self) -> Iterator[Pattern]:
        return map(self.pattern, range(len(self)))

    def pattern(self, row: int) -> Pattern:
        ends = [
            Variable(f"x{place}") if free else named("n", node)
            for place, (node, free) in enumerate(self._nodes(row))
        ]
        edges = [PatternEdge(ends[s], named("p", label), ends[t]) for s, label, t in self.edges(row)]
        constraints = []
        if (at := int(self.value_at[row])) != NONE:
            edges.append(PatternEdge(ends[at], iri(EXAMPLE + VALUE), Variable("v")))
            bound = literal(str(self.bound[row]), XSD + "integer")
            constraints.append(Constraint("v", ConstraintKind.AT_LEAST, (bound,)))
        if (at := int(self.class_at[row])) != NONE:
            of = named("c", int(self.class_number[row]))
            constraints.append(Constraint(f"x{at}", ConstraintKind.AT_OR_BELOW, (of,)))
        return Pattern((), tuple(edges), tuple(constraints))

    def texts(self) -> Iterator[str]:
        return map(self.text, range(len(self)))

    def text(self, row: int) -> str:
        """Return a row as a GQL text."""
        ends = [f"?x{place}" if free else f"e:n{node}" for place, (node, free) in enumerate(self._nodes(row))]
        edges = [f"({ends[s]}, e:p{label}, {ends[t]})" for s, label, t in self.edges(row)]
        constraints = ""
        if (at := int(self.value_at[row])) != NONE:
            edges.append(f"({ends[at]}, e:{VALUE}, ?v)")
            constraints += f" AND ?v >= {self.bound[row]}"
        if (at := int(self.class_at[row])) != NONE:
            constraints += f" AND ?x{at} <= e:c{self.class_number[row]}"
        return f"PREFIX e: <{EXAMPLE}> SELECT * WHERE {' '.join(edges)}{constraints}"

    def _nodes(self, row: int) -> Iterator[tuple[int, bool]]:
        return zip(self.nodes[row].tolist(), self.variable[row].tolist(), strict=True)


@dataclass(frozen=True)
class GraphWorkload:
    """Counterpart of `Workload` for graphs: publication i matches the subscriptions of core `i % cores`."""

    name: str
    subscriptions: GraphSubscriptions
    publications: tuple[Graph, ...]
    cores: int
    taxonomy: Graph

    def made_to_match(self, publication: int) -> Ints:
        """Return the rows made to match a publication; others match only if they name no node at all."""
        return np.flatnonzero(self.subscriptions.core == publication % self.cores)
