"""Engines for graphs: the index, paper 002's algorithms in plain Python, one SPARQL query per subscription."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np
import pyarrow as pa
import pyoxigraph as ox

from benchmarks.engine import Counts, Engine
from benchmarks.workloads.graph_patterns import GraphSubscriptions, GraphWorkload
from research.graphs.algorithm import GraphAlgorithm
from tidings.graphs.atoms import AtomReader
from tidings.graphs.model import Graph, Term, TermKind
from tidings.graphs.patterns.pattern_tree import Pattern, PatternEdge, Variable
from tidings.graphs.rdf.multipart import n_triples
from tidings.graphs.reference_matcher import Explainer
from tidings.graphs.taxonomy import Taxonomy, taxonomy_of
from tidings.matching.compiler.compilation import compile_columns
from tidings.matching.compiler.plan import Compiled
from tidings.matching.index.index import Index

AT_ONCE = 100_000
"""Texts compiled at once: all of them as Python strings and numbers would take too much memory."""


@dataclass(frozen=True)
class Publications:
    """Publications in the form that the harness expects."""

    graphs: tuple[Graph, ...]

    def __len__(self) -> int:
        return len(self.graphs)

    def first(self, count: int) -> Publications:
        return Publications(self.graphs[:count])


@dataclass(frozen=True)
class Graphs:
    """A workload of graphs in the form that the harness expects."""

    name: str
    subscriptions: GraphSubscriptions
    events: Publications
    taxonomy: Taxonomy

    @classmethod
    def of(cls, workload: GraphWorkload, name: str) -> Graphs:
        published = Publications(workload.publications)
        return cls(name, workload.subscriptions, published, taxonomy_of(workload.taxonomy))


class GraphIndex(Engine):
    """The index, matching decoded graphs. Building parses, compiles and indexes texts."""

    name = "index"
    role = "ours"

    def __init__(self, taxonomy: Taxonomy) -> None:
        self._taxonomy = taxonomy

    def prepare(self, subscriptions: GraphSubscriptions) -> None:
        texts = subscriptions.texts()
        self._parts = [pa.array(batch) for batch in iter(lambda: list(islice(texts, AT_ONCE)), [])]

    def build(self) -> None:
        self.index, first = Index.create(), 0
        for texts in self._parts:
            self.index.add(compiled(texts, first))
            first += len(texts)
        self.index.compact()
        self._parts = []

    def give(self, events: Publications) -> None:
        reader = AtomReader(self.index.graph_paths, self._taxonomy)
        self._atoms = reader.atoms(events.graphs)

    def match(self) -> Counts:
        matches = self.index.match(self._atoms)
        return np.bincount(matches.publication, minlength=self._atoms.count)

    def counts(self, answer: Counts) -> Counts:
        return answer

    def nbytes(self) -> int:
        return self.index.nbytes

    def close(self) -> None:
        """Release the memory: the next size needs it."""
        self.index = Index.create()


def compiled(texts: pa.Array, first: int) -> Compiled:
    """Compile texts with ids from `s<first>` on. A rejected text is an error."""
    ids = [f"s{number}" for number in range(first, first + len(texts))]
    done = compile_columns(ids, *(pa.repeat(word, len(ids)) for word in ("somebody", "gql")), texts)
    if done.rejects:
        raise ValueError(f"{len(done.rejects)} texts are rejected, the first: {done.rejects[0]}")
    return done


class PlainGraphs(Engine):
    """An algorithm in plain Python, graph by graph. A slow one gets one graph, and extra time."""

    def __init__(
        self, name: str, make: Callable[[Taxonomy], GraphAlgorithm], taxonomy: Taxonomy, slow: bool = False
    ) -> None:
        self.name, self._make, self._taxonomy = name, make, taxonomy
        self.once, self.patience = slow, 15.0 if slow else 0.0

    def prepare(self, subscriptions: GraphSubscriptions) -> None:
        self._patterns = list(subscriptions.patterns())

    def build(self) -> None:
        self._algorithm = self._make(self._taxonomy)
        for number, pattern in enumerate(self._patterns):
            self._algorithm.add(f"s{number}", pattern)
        gc.collect()
        gc.freeze()  # otherwise the collector traverses millions of objects during a match

    def give(self, events: Publications) -> None:
        self._graphs = events.graphs

    def match(self) -> list[int]:
        return [len(self._algorithm.match(graph)) for graph in self._graphs]

    def counts(self, answer: list[int]) -> Counts:
        return np.array(answer, np.int64)

    def close(self) -> None:
        gc.unfreeze()


class EachQuery(Engine):
    """Every subscription as a SPARQL query over a store with one publication."""

    name = "pyoxigraph, each query in turn"
    once, patience = True, 120.0

    def prepare(self, subscriptions: GraphSubscriptions) -> None:
        self._queries = [to_sparql(pattern) for pattern in subscriptions.patterns()]

    def build(self) -> None:
        return None

    def give(self, events: Publications) -> None:
        self._bodies = [n_triples(graph) for graph in events.graphs]

    def match(self) -> list[int]:
        return [self._count_matches(body) for body in self._bodies]

    def _count_matches(self, body: bytes) -> int:
        store = ox.Store()
        store.load(body, format=ox.RdfFormat.N_TRIPLES)
        return sum(1 for query in self._queries if store.query(query))

    def counts(self, answer: list[int]) -> Counts:
        return np.array(answer, np.int64)


def to_sparql(pattern: Pattern) -> str:
    """Translate a pattern without constraints into an ASK query."""
    if pattern.constraints:
        raise ValueError("patterns with constraints are not supported")
    return f"ASK {{ {' '.join(map(_triple, pattern.edges))} }}"


def _triple(edge: PatternEdge) -> str:
    return " ".join(map(_end, (edge.subject, edge.property, edge.object))) + " ."


def _end(place: Term | Variable) -> str:
    if isinstance(place, Variable):
        return f"?{place.name}"
    assert place.kind is TermKind.IRI, "the workload names nodes by IRIs"
    return f"<{place.text}>"


def by_definition(patterns: Iterable[Pattern], graphs: Sequence[Graph], taxonomy: Taxonomy) -> Counts:
    """Count the patterns that each graph matches."""
    explainers = [Explainer(graph, taxonomy) for graph in graphs]
    counts = np.zeros(len(graphs), np.int64)
    for pattern in patterns:
        counts += [bool(explainer.bindings(pattern, 1).bindings) for explainer in explainers]
    return counts
