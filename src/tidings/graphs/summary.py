"""Summaries of graphs, in the vocabularies of RSS 1.0, Dublin Core, RDFS and schema.org."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from tidings.graphs.feed_formats.entry import CONTENT, DATE, DC, DCTERMS, MODIFIED, RSS1
from tidings.graphs.model import RDFS, TYPE, Graph, Term, TermKind
from tidings.graphs.rdf import rdf_decoder
from tidings.kinds import PublicationSummary
from tidings.model import Publication

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
        dates=tuple(_all(edges, _DATES)),
        creators=tuple(_all(edges, _CREATORS)),
        subjects=tuple(_all(edges, _SUBJECTS)),
    )


Edges = Mapping[str, list[str]]


def _nodes(graph: Graph) -> Mapping[Term, Edges]:
    found: dict[Term, dict[str, list[str]]] = {}
    for edge in graph.edges:
        if edge.object.kind is not TermKind.BLANK:
            found.setdefault(edge.subject, {}).setdefault(edge.property.text, []).append(edge.object.text)
    return found


def _subject(nodes: Mapping[Term, Edges], about: Sequence[str]) -> Term | None:
    """The node the graph is about: one that was asked for, else an item of a feed, else the first with a title."""
    titled = [node for node, edges in nodes.items() if _first(edges, _TITLES)]
    asked = [node for text in about for node in titled if node.text == text]
    items = [node for node in titled if RSS1 + "item" in nodes[node].get(TYPE, ())]
    return next(iter([*asked, *items, *titled, *nodes]), None)


def _first(edges: Edges, names: Iterable[str]) -> str | None:
    return next((text for text in _all(edges, names) if text.strip()), None)


def _all(edges: Edges, names: Iterable[str]) -> list[str]:
    return [text for name in names for text in edges.get(name, ())]
