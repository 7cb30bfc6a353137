"""Parser of feeds in RSS 1.0 and 2.0, Atom and JSON Feed. Items of all formats become graphs of the same shape.

The format is detected in the bytes, because sites serve Atom as text/xml and RSS as text/html. Nothing is fetched, and
dangerous XML is refused as in documents.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from itertools import islice

from lxml import etree

from tidings.core.suggest import printable
from tidings.errors import DecodeProblem
from tidings.graphs.model import RDF, Edge, Graph, TermKind, blank
from tidings.graphs.rdf.rdf_decoder import decode_xml
from tidings.graphs.rdf.rdf_errors import DEFAULT, Limits, at_most, beyond
from tidings.graphs.rdf.rdf_xml import parse_rdf_xml
from tidings.graphs.syndication.atom import Atom
from tidings.graphs.syndication.feed import Feed
from tidings.graphs.syndication.item_graph import (
    ATOM,
    DATE,
    RSS1,
    Channel,
    content_hash,
    entry_edges,
    instant,
    iri_of,
    with_channel,
)
from tidings.graphs.syndication.json_feed import JsonFeed
from tidings.graphs.syndication.markup import feed_text, with_characters
from tidings.graphs.syndication.rss import Rss, Rss1, escape_markup

ACCEPTED = "RSS 1.0, RSS 2.0 (0.91 and later), Atom 1.0, JSON Feed 1.0 and 1.1"


@dataclass(frozen=True, slots=True)
class Item:
    """An item: its stable id, a hash that changes when it is edited, and its graph."""

    id: str
    hash: str
    title: str | None
    link: str | None
    published: datetime | None
    graph: Graph


@dataclass(frozen=True, slots=True)
class RefusedItem:
    """An item that exceeds a limit, in a feed that does not."""

    id: str
    hash: str
    problem: DecodeProblem


def read_feed(
    body: bytes, media_type: str, url: str | None = None
) -> tuple[Feed, tuple[Item, ...], tuple[RefusedItem, ...]]:
    """Parse a feed; return it with its items and the items that exceed a limit."""
    refused: list[RefusedItem] = []
    feed, items = items_of(body, media_type, url, refused=refused.append)
    return feed, items, tuple(refused)


def items_of(
    body: bytes,
    media_type: str,
    url: str | None = None,
    limits: Limits = DEFAULT,
    refused: Callable[[RefusedItem], None] | None = None,
) -> tuple[Feed, tuple[Item, ...]]:
    """Parse a feed; return it with its items in document order. Relative links are resolved against `url`.

    An item that exceeds a limit is passed to `refused`; without that callback the whole feed is refused.
    """
    if len(body) > limits.publication:
        raise beyond("publication", limits, received=f"{len(body):,} bytes")
    feed, entries = _parse(feed_text(body, media_type), url, limits)
    at_most("items", len(entries), limits)
    channel = _channel(feed, url)
    items = (_item_or_none(edges, id, channel, limits, refused) for id, edges in entries)
    return feed, tuple(item for item in items if item)


ParsedFeed = tuple[Feed, list[tuple[str | None, list[Edge]]]]
"""A feed, and the id and edges of each item."""


def _parse(text: bytes, url: str | None, limits: Limits) -> ParsedFeed:
    if not text.startswith(b"<"):
        return _entries(JsonFeed(text, url), limits)
    if text[:14].lower() == b"<!doctype html":
        raise DecodeProblem("not a feed", received="an HTML page", accepted=ACCEPTED)
    root = parse_rdf_xml(with_characters(text), limits)
    name = etree.QName(root)
    if name.namespace == ATOM and name.localname in ("feed", "entry"):
        return _entries(Atom(root, url), limits)
    if name.localname == "rss":
        return _entries(Rss(root, url), limits)
    if name.namespace == RDF:
        return _rss1(root, url, limits)
    raise DecodeProblem("not a feed", received=f"<{printable(str(root.tag))}>", accepted=ACCEPTED)


def _entries(reader: Rss | Atom | JsonFeed, limits: Limits) -> ParsedFeed:
    entries = islice(reader.entries(), limits.items + 1)
    return reader.feed(), [(entry.id or entry.link, entry_edges(entry)) for entry in entries]


def _rss1(root: etree._Element, url: str | None, limits: Limits) -> ParsedFeed:
    escape_markup(root)
    reader = Rss1(decode_xml(root, url, limits))
    if not reader.is_feed():
        raise DecodeProblem("not a feed", received="RDF without rss:channel and rss:item", accepted=ACCEPTED)
    return reader.feed(), [(_id_of(edges), edges) for edges in reader.items()]


def _id_of(edges: list[Edge]) -> str | None:
    node = edges[0].subject
    return node.text if node.kind is TermKind.IRI else None


def _channel(feed: Feed, url: str | None) -> Channel:
    nodes = (iri_of(address) for address in (feed.node, url, feed.self_link, feed.link))
    return Channel(next((node for node in nodes if node), blank("channel")), feed.title, feed.link)


def _item_or_none(
    edges: list[Edge],
    id: str | None,
    channel: Channel,
    limits: Limits,
    refused: Callable[[RefusedItem], None] | None,
) -> Item | None:
    try:
        return _item(edges, id, channel, limits)
    except DecodeProblem as problem:
        if refused is None:
            raise
        hashed = content_hash(edges)
        refused(RefusedItem(id or f"sha256:{hashed}", hashed, problem))
        return None


def _item(edges: list[Edge], id: str | None, channel: Channel, limits: Limits) -> Item:
    hashed = content_hash(edges)
    id = id or f"sha256:{hashed}"
    graph = with_channel(edges, id, channel)
    _refuse_large(graph, limits)
    node = edges[0].subject
    values = {edge.property.text: edge.object.text for edge in reversed(edges) if edge.subject == node}
    date = values.get(DATE)
    published = instant(date) if date else None
    return Item(id, hashed, values.get(RSS1 + "title"), values.get(RSS1 + "link"), published, graph)


def _refuse_large(graph: Graph, limits: Limits) -> None:
    at_most("edges", len(graph.edges), limits)
    for edge in graph.edges:
        at_most("term", len(edge.object.text), limits, where=edge.property.text)
