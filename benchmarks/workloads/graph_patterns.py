"""Subscriptions to graphs as columns: one row each, made into patterns or GQL texts only when asked for."""

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
"""The property of the number that each node of a publication has, if values are asked for."""

NONE = -1
"""In a column: no edge, no constraint, no core."""

Ints = npt.NDArray[np.integer]
EdgeCodes = list[tuple[int, int, int]]


@lru_cache(maxsize=1 << 16)
def named(kind: str, number: int) -> Term:
    """`n7` is node 7, `p7` property 7, `c7` class 7."""
    return iri(f"{EXAMPLE}{kind}{number}")


@dataclass(frozen=True)
class GraphSubscriptions:
    """Row i is subscription i. Edges are written with the places of their ends among the row's nodes.

    A row may have fewer edges than others: its last labels are `NONE`. `core` says which publications a subscription
    was made to match.
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
        """Place, label, place."""
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
        """The same as a text in GQL."""
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
    """What `Workload` is for events: publication i was made for the subscriptions of core `i % cores`."""

    name: str
    subscriptions: GraphSubscriptions
    publications: tuple[Graph, ...]
    cores: int
    taxonomy: Graph

    def made_to_match(self, publication: int) -> Ints:
        """The rows of the subscriptions that match a publication; others do only if they name no node at all."""
        return np.flatnonzero(self.subscriptions.core == publication % self.cores)
