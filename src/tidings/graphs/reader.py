"""Graphs for the matcher, many at a time as atoms or one as edges; and their summaries for feeds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

import pyarrow as pa

from tidings.atoms import AtomShape
from tidings.errors import PublicationError
from tidings.graphs import reference_matcher
from tidings.graphs.atoms import AtomReader
from tidings.graphs.model import RDFS, TYPE, Graph, Term, TermKind
from tidings.graphs.patterns import pattern_parser
from tidings.graphs.rdf import rdf_decoder
from tidings.graphs.syndication.item_graph import CONTENT, DATE, DC, DCTERMS, MODIFIED, RSS1
from tidings.graphs.taxonomy import Taxonomy
from tidings.kinds import (
    Bytes,
    DecodedPublications,
    Environment,
    Evaluator,
    Explanation,
    Integers,
    PublicationSummary,
    Reader,
)
from tidings.model import Publication
from tidings.reference_data.enrichment import Added


class GraphReader(Reader):
    """Decodes graphs, and relates their nodes to the classes of the loaded taxonomies."""

    def __init__(self, environment: Environment) -> None:
        self._taxonomy = environment.taxonomy()
        self._atoms = AtomReader(environment.paths.get(AtomShape.EDGES, ()), self._taxonomy)

    def decode(self, media_type: str, buffer: Bytes, starts: Integers, ends: Integers) -> DecodedPublications:
        graphs: list[Graph] = []
        rejects: list[tuple[int, PublicationError]] = []
        for place, (start, end) in enumerate(zip(starts, ends, strict=True)):
            try:
                graphs.append(rdf_decoder.decode(buffer[start:end].tobytes(), media_type))
            except PublicationError as problem:
                graphs.append(Graph(()))
                rejects.append((place, problem))
        return DecodedPublications(self._atoms.atoms(graphs), pa.nulls(len(starts), pa.string()), rejects)

    def read(self, body: bytes, media_type: str, added: Sequence[Added] = ()) -> Evaluator:
        return GraphEvaluator(rdf_decoder.decode(body, media_type), self._taxonomy)


class GraphEvaluator(Evaluator):
    """A graph, evaluated in GQL and SPARQL patterns."""

    def __init__(self, graph: Graph, taxonomy: Taxonomy) -> None:
        self._explainer = reference_matcher.Explainer(graph, taxonomy)

    def matches(self, language: str, text: str) -> bool:
        return self._explainer.matches(_parse(text))

    def explain(self, language: str, text: str) -> Explanation | None:
        """Explain a match; None if a pair that the kernel left undecided does not match."""
        pattern = _parse(text)
        because = self._explainer.explain(pattern)
        if not because:
            return None
        return Explanation(because, reference_matcher.results_of(pattern, self._explainer.bindings(pattern)))


_parse = lru_cache(maxsize=50_000)(pattern_parser.parse)


SCHEMA = ("https://schema.org/", "http://schema.org/")

_TITLES = (
    RSS1 + "title",
    DC + "title",
    DCTERMS + "title",
    RDFS + "label",
    *(namespace + "name" for namespace in SCHEMA),
)
_LINKS = (RSS1 + "link", *(namespace + "url" for namespace in SCHEMA))
_DESCRIPTIONS = (
    RSS1 + "description",
    DC + "description",
    DCTERMS + "description",
    DCTERMS + "abstract",
    RDFS + "comment",
    *(namespace + "description" for namespace in SCHEMA),
)
_DATES = (MODIFIED, DATE, DCTERMS + "date", DCTERMS + "issued", DCTERMS + "created")
_CREATORS, _SUBJECTS = (DC + "creator", DCTERMS + "creator"), (DC + "subject", DCTERMS + "subject")


def summarize_graph(publication: Publication, about: Sequence[str]) -> PublicationSummary:
    """Summarize the first node in `about` that has a title; else an item of a feed, else the first titled node."""
    nodes = _nodes(rdf_decoder.decode(publication.body, publication.media_type))
    node = _subject(nodes, about)
    if node is None:
        return PublicationSummary()
    edges = nodes[node]
    own = node.text if node.kind is TermKind.IRI else None
    return PublicationSummary(
        title=_first(edges, _TITLES),
        link=_first(edges, _LINKS) or own,
        description=_first(edges, _DESCRIPTIONS),
        content=_first(edges, (CONTENT + "encoded",)),
        dates=tuple(_texts_of(edges, _DATES)),
        creators=tuple(_texts_of(edges, _CREATORS)),
        subjects=tuple(_texts_of(edges, _SUBJECTS)),
    )


Edges = Mapping[str, list[str]]


def _nodes(graph: Graph) -> Mapping[Term, Edges]:
    nodes: dict[Term, dict[str, list[str]]] = {}
    for edge in graph.edges:
        if edge.object.kind is not TermKind.BLANK:
            nodes.setdefault(edge.subject, {}).setdefault(edge.property.text, []).append(edge.object.text)
    return nodes


def _subject(nodes: Mapping[Term, Edges], about: Sequence[str]) -> Term | None:
    """Return the node the graph is about: one in `about`, else an item of a feed, else the first with a title."""
    titled = [node for node, edges in nodes.items() if _first(edges, _TITLES)]
    matches = [node for text in about for node in titled if node.text == text]
    items = [node for node in titled if RSS1 + "item" in nodes[node].get(TYPE, ())]
    return next(iter([*matches, *items, *titled, *nodes]), None)


def _first(edges: Edges, names: Iterable[str]) -> str | None:
    return next((text for text in _texts_of(edges, names) if text.strip()), None)


def _texts_of(edges: Edges, names: Iterable[str]) -> list[str]:
    return [text for name in names for text in edges.get(name, ())]
