"""Decoding of graphs and feeds: from bytes to graphs and to atoms, compared with parsing alone.

decode                    bytes to graphs, with all checks before and after the parser
decode and take apart     the same, and graphs to atoms for an index of the workload's subscriptions
pyoxigraph, lxml          parsing alone: the limit for decoders that use these parsers
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import pyoxigraph as ox
from lxml import etree

from benchmarks.engine import ReadsOnly
from benchmarks.graph_engines import compiled
from benchmarks.harness import Bench, Case
from benchmarks.scale import Scale
from benchmarks.workloads.graph_documents import DocumentSet, graph_documents
from benchmarks.workloads.graph_patterns import GraphSubscriptions
from benchmarks.workloads.graphs import FIGURE_9E, Table1, graphs
from tidings.graphs.atoms import AtomReader
from tidings.graphs.model import Graph
from tidings.graphs.rdf.rdf_decoder import decode
from tidings.graphs.syndication.feed_parser import items_of
from tidings.graphs.taxonomy import Taxonomy
from tidings.matching.index.index import Index

NAME = "decoding"
DECODE, DECODE_TO_ATOMS = "decode", "decode and take apart"
SUBSCRIPTIONS = 1_000
"""Subscriptions whose paths are collected."""


@dataclass(frozen=True)
class Bodies:
    """Publications as bytes, in the form that the harness expects."""

    of: DocumentSet

    def __len__(self) -> int:
        return len(self.of.bodies)

    def first(self, count: int) -> Bodies:
        return Bodies(self.of._replace(bodies=self.of.bodies[:count]))


@dataclass(frozen=True)
class DecodingWorkload:
    """Documents to decode, without subscriptions."""

    name: str
    events: Bodies
    subscriptions: tuple[()] = ()


def run(bench: Bench, scale: Scale) -> None:
    """Measure every syntax by itself."""
    table = replace(Table1(), subscriptions=SUBSCRIPTIONS, subscription=FIGURE_9E)
    generated = graphs(table, scale.graph_publications)
    reader = AtomReader(_paths(generated.subscriptions), Taxonomy())
    for document in graph_documents(generated.publications, scale.graph_publications):
        workload = DecodingWorkload(f"{NAME}, {document.name}", Bodies(document))
        parser = Parsing("pyoxigraph" if document.syntax else "lxml")
        engines = (parser, Decoding(DECODE), Decoding(DECODE_TO_ATOMS, reader))
        bench.side_by_side([Case(engine, workload, len(workload.events)) for engine in engines])  # type: ignore[arg-type]


def _paths(subscriptions: GraphSubscriptions) -> frozenset[str]:
    index = Index.create()
    index.add(compiled(list(subscriptions.texts()), 0))
    return frozenset(index.graph_paths)


class _GraphReader(ReadsOnly):
    """Base class of engines that decode graphs, and count their edges."""

    def give(self, events: Bodies) -> None:
        self._documents = events.of
        self._edges = sum(
            len(graph.edges) for body in events.of.bodies for graph in graphs_of(body, events.of)
        )

    def edges(self) -> int:
        return self._edges


class Decoding(_GraphReader):
    """Decoding from bytes to graphs, and to atoms if a reader is given."""

    role = "ours"

    def __init__(self, name: str, reader: AtomReader | None = None) -> None:
        self.name, self._reader = name, reader

    def match(self) -> None:
        graphs = [graph for body in self._documents.bodies for graph in graphs_of(body, self._documents)]
        if self._reader is not None:
            self._reader.atoms(graphs)


def graphs_of(body: bytes, of: DocumentSet) -> list[Graph]:
    """Return the graphs of a document: one, or one per item of a feed."""
    if of.syntax is None:
        return [item.graph for item in items_of(body, of.media_type)[1]]
    return [decode(body, of.media_type)]


class Parsing(_GraphReader):
    """A parser alone."""

    role = "limit"

    def __init__(self, name: str) -> None:
        self.name = name

    def match(self) -> None:
        parse = self._parser()
        for body in self._documents.bodies:
            parse(body)

    def _parser(self) -> Callable[[bytes], object]:
        syntax = self._documents.syntax
        if syntax is None:
            return etree.fromstring
        return lambda body: sum(1 for _ in ox.parse(body, format=syntax))
