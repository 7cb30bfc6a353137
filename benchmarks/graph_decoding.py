"""Reading graphs and feeds: from bytes to graphs, and to what the index takes, beside parsing the same and no more.

decode                    bytes to graphs, with everything that is looked at before and after the parser
decode and take apart     the same, and the graphs as atoms for an index of the workload's subscriptions
pyoxigraph, lxml          parsing alone: what nobody gets around who reads with it, here the limit
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
from benchmarks.workloads.graph_documents import Written, written
from benchmarks.workloads.graph_patterns import GraphSubscriptions
from benchmarks.workloads.graphs import FIGURE_9E, Table1, graphs
from tidings.graphs.atoms import AtomReader
from tidings.graphs.model import Graph
from tidings.graphs.rdf.rdf_decoder import decode
from tidings.graphs.syndication.feed_parser import items_of
from tidings.graphs.taxonomy import Taxonomy
from tidings.matching.index.index import Index

NAME = "decoding"
DECODE, APART = "decode", "decode and take apart"
ASKED = 1_000
"""Subscriptions whose paths are looked for."""


@dataclass(frozen=True)
class Bodies:
    """Publications in bytes, as the harness takes them."""

    of: Written

    def __len__(self) -> int:
        return len(self.of.bodies)

    def first(self, count: int) -> Bodies:
        return Bodies(self.of._replace(bodies=self.of.bodies[:count]))


@dataclass(frozen=True)
class Reading:
    """Documents to be read; nobody asks for anything in them."""

    name: str
    events: Bodies
    subscriptions: tuple[()] = ()


def run(bench: Bench, scale: Scale) -> None:
    """Every syntax by itself."""
    table = replace(Table1(), subscriptions=ASKED, subscription=FIGURE_9E)
    drawn = graphs(table, scale.graph_publications)
    reader = AtomReader(_paths(drawn.subscriptions), Taxonomy())
    for document in written(drawn.publications, scale.graph_publications):
        reading = Reading(f"{NAME}, {document.name}", Bodies(document))
        parser = Parsing("pyoxigraph" if document.syntax else "lxml")
        engines = (parser, Decoding(DECODE), Decoding(APART, reader))
        bench.side_by_side([Case(engine, reading, len(reading.events)) for engine in engines])  # type: ignore[arg-type]


def _paths(asked: GraphSubscriptions) -> frozenset[str]:
    index = Index.create()
    index.add(compiled(list(asked.texts()), 0))
    return frozenset(index.graph_paths)


class _Reads(ReadsOnly):
    """Knows how many edges there are in what it reads."""

    def give(self, events: Bodies) -> None:
        self._given = events.of
        self._edges = sum(
            len(graph.edges) for body in events.of.bodies for graph in graphs_of(body, events.of)
        )

    def edges(self) -> int:
        return self._edges


class Decoding(_Reads):
    """Bytes to graphs, and to atoms if there is a reader."""

    role = "ours"

    def __init__(self, name: str, reader: AtomReader | None = None) -> None:
        self.name, self._reader = name, reader

    def match(self) -> None:
        found = [graph for body in self._given.bodies for graph in graphs_of(body, self._given)]
        if self._reader is not None:
            self._reader.atoms(found)


def graphs_of(body: bytes, of: Written) -> list[Graph]:
    """The graphs of a document: one, or that of each item of a feed."""
    if of.syntax is None:
        return [item.graph for item in items_of(body, of.media_type)[1]]
    return [decode(body, of.media_type)]


class Parsing(_Reads):
    """A parser by itself, to its end."""

    role = "limit"

    def __init__(self, name: str) -> None:
        self.name = name

    def match(self) -> None:
        parse = self._parser()
        for body in self._given.bodies:
            parse(body)

    def _parser(self) -> Callable[[bytes], object]:
        syntax = self._given.syntax
        if syntax is None:
            return etree.fromstring
        return lambda body: sum(1 for _ in ox.parse(body, format=syntax))
