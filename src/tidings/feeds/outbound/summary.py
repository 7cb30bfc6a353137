"""What a publication says of itself that a reader of feeds wants: title, link, text, date.

Graphs say it in the vocabularies of RSS 1.0, Dublin Core, RDFS and schema.org; events and documents by the names that
fields usually have. What they do not say is left out, and the entry is titled by its reasons.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from tidings.documents import xml_decoder
from tidings.documents.model import Node, NodeKind
from tidings.errors import PublicationError
from tidings.events import json_decoder
from tidings.feeds.outbound.sanitize import escape_html, shorten
from tidings.graphs.feed_formats.dates import instant
from tidings.graphs.feed_formats.entry import CONTENT, DATE, DC, DCTERMS, MODIFIED, RSS1
from tidings.graphs.model import RDFS, TYPE, Graph, Term, TermKind
from tidings.graphs.rdf import rdf_decoder
from tidings.kinds import DOCUMENTS, GRAPHS
from tidings.model import Publication

SCHEMA = ("https://schema.org/", "http://schema.org/")
FIELDS = 100
"""How many fields of an event are shown."""
SHOWN = 10_000
"""How many characters of a document are."""


@dataclass(frozen=True, slots=True)
class PublicationSummary:
    """What a publication says, as it says it: nothing here is harmless yet. `description` and `content` are HTML."""

    title: str | None = None
    link: str | None = None
    description: str | None = None
    content: str | None = None
    date: datetime | None = None
    creators: tuple[str, ...] = ()
    subjects: tuple[str, ...] = ()


def summarize_publication(publication: Publication | None, about: Sequence[str] = ()) -> PublicationSummary:
    """What it says; of a graph, what it says of the first node in `about` that has a title.

    One that is not in the journal, because the stream reads a folder, says nothing here; nor does one that today's
    limits would refuse.
    """
    if publication is None:
        return PublicationSummary()
    try:
        return _reader(publication.media_type)(publication, about)
    except PublicationError:
        return PublicationSummary()


Reader = Callable[[Publication, Sequence[str]], PublicationSummary]


def _reader(media_type: str) -> Reader:
    if media_type in GRAPHS:
        return _graph
    return _document if media_type in DOCUMENTS else _event


_TITLES = (
    RSS1 + "title",
    DC + "title",
    DCTERMS + "title",
    RDFS + "label",
    *(each + "name" for each in SCHEMA),
)
_LINKS = (RSS1 + "link", *(each + "url" for each in SCHEMA))
_DESCRIPTIONS = (
    RSS1 + "description",
    DC + "description",
    DCTERMS + "description",
    DCTERMS + "abstract",
    RDFS + "comment",
    *(each + "description" for each in SCHEMA),
)
_DATES = (MODIFIED, DATE, DCTERMS + "date", DCTERMS + "issued", DCTERMS + "created")
_CREATORS, _SUBJECTS = (DC + "creator", DCTERMS + "creator"), (DC + "subject", DCTERMS + "subject")


def _graph(publication: Publication, about: Sequence[str]) -> PublicationSummary:
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
        date=_date(_all(edges, _DATES)),
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


def _date(texts: Iterable[str]) -> datetime | None:
    return next((found for text in texts if (found := instant(text))), None)


_USUAL = {
    "title": ("title", "name", "headline", "subject", "label"),
    "link": ("link", "url", "href"),
    "description": ("summary", "description"),
    "date": ("updated", "modified", "published", "date", "time"),
}


def _event(publication: Publication, _: Sequence[str]) -> PublicationSummary:
    fields = json_decoder.decode(publication.body)
    texts = {path: [str(value) for value in values] for path, values in fields.items()}
    description = _first(texts, _USUAL["description"])
    return PublicationSummary(
        title=_first(texts, _USUAL["title"]),
        link=_first(texts, _USUAL["link"]),
        description=escape_html(description) if description else None,
        content=_table([(path, ", ".join(values)) for path, values in texts.items()]),
        date=_date(_all(texts, _USUAL["date"])),
    )


def _table(rows: Sequence[tuple[str, str]]) -> str:
    """The fields of an event, for people."""
    shown = [(shorten(name, 200), shorten(value, 1_000)) for name, value in rows[:FIELDS]]
    more = f"<p>and {len(rows) - FIELDS:,} more fields</p>" if len(rows) > FIELDS else ""
    cells = (f"<tr><th>{escape_html(name)}</th><td>{escape_html(value)}</td></tr>" for name, value in shown)
    return f"<table>{''.join(cells)}</table>{more}"


def _document(publication: Publication, _: Sequence[str]) -> PublicationSummary:
    root = xml_decoder.decode(publication.body)
    texts: dict[str, list[str]] = {}
    for node in [root, *root.children, *(inner for child in root.children for inner in child.children)]:
        if node.kind is NodeKind.ELEMENT and _is_leaf(node):
            texts.setdefault(node.name.rpartition("}")[2].lower(), []).append(node.value)
    description = _first(texts, _USUAL["description"])
    return PublicationSummary(
        title=_first(texts, _USUAL["title"]),
        link=_first(texts, _USUAL["link"]),
        description=escape_html(description) if description else None,
        content=f"<pre>{escape_html(_text(publication.body))}</pre>",
        date=_date(_all(texts, _USUAL["date"])),
    )


def _is_leaf(node: Node) -> bool:
    return not any(child.kind is NodeKind.ELEMENT for child in node.children)


def _text(body: bytes) -> str:
    return shorten(body[: 4 * SHOWN].decode("utf-8", "replace"), SHOWN)
