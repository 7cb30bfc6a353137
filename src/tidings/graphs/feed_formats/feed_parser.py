"""Feeds: RSS 1.0 and 2.0, Atom and JSON Feed. Each item becomes a graph of the same shape, whatever it came in.

Which format it is, the bytes say; sites serve Atom as text/xml and RSS as text/html. Nothing is fetched, and what makes
XML dangerous is refused as in documents.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from itertools import islice

from lxml import etree

from tidings.core.suggest import printable
from tidings.errors import DecodeProblem
from tidings.graphs.feed_formats.atom import Atom
from tidings.graphs.feed_formats.dates import instant
from tidings.graphs.feed_formats.entry import (
    ATOM,
    DATE,
    RSS1,
    Channel,
    content_hash,
    entry_edges,
    iri_of,
    with_channel,
)
from tidings.graphs.feed_formats.feed import FeedFacts
from tidings.graphs.feed_formats.json_feed import JsonFeed
from tidings.graphs.feed_formats.omissions import LeftOut
from tidings.graphs.feed_formats.repair import feed_text, with_characters
from tidings.graphs.feed_formats.rss1 import Rss1, escape_markup
from tidings.graphs.feed_formats.rss2 import Rss
from tidings.graphs.model import RDF, Edge, Graph, TermKind, blank
from tidings.graphs.rdf.limits import DEFAULT, Limits, at_most, beyond
from tidings.graphs.rdf.rdf_decoder import decode_xml
from tidings.graphs.rdf.rdf_xml import parsed_xml

ACCEPTED = "RSS 1.0, RSS 2.0 (0.91 and later), Atom 1.0, JSON Feed 1.0 and 1.1"


@dataclass(frozen=True, slots=True)
class Feed:
    """What a feed says of itself. `ttl` is in minutes; `hubs` and `self_link` are for WebSub.

    In `skip_hours` (of UTC) and on `skip_days` (Monday is 0) it should not be polled. `left_out` names elements of
    its items that their graphs do not keep.
    """

    title: str | None
    link: str | None
    description: str | None
    language: str | None
    ttl: int | None
    hubs: tuple[str, ...]
    self_link: str | None
    updated: datetime | None
    skip_hours: frozenset[int] = frozenset()
    skip_days: frozenset[int] = frozenset()
    left_out: LeftOut = ()


@dataclass(frozen=True, slots=True)
class Item:
    """An item: the id by which it is known again, a hash that differs if it was edited, and its graph."""

    id: str
    hash: str
    title: str | None
    link: str | None
    published: datetime | None
    graph: Graph


@dataclass(frozen=True, slots=True)
class RefusedItem:
    """An item that is beyond a limit, though its feed is not."""

    id: str
    hash: str
    problem: DecodeProblem


def read_feed(
    body: bytes, media_type: str, url: str | None = None
) -> tuple[Feed, tuple[Item, ...], tuple[RefusedItem, ...]]:
    """The feed in the bytes, its items, and those that are beyond a limit."""
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
    """The feed in the bytes and its items, in the order they stand in. Relative links are taken from `url`.

    An item beyond a limit is handed to `refused`, and the others are there; without it, the feed is refused.
    """
    if len(body) > limits.publication:
        raise beyond("publication", limits, received=f"{len(body):,} bytes")
    facts, items = _read(feed_text(body, media_type), url, limits)
    at_most("items", len(items), limits)
    channel = _channel(facts, url)
    made = (_item_or_none(edges, id, channel, limits, refused) for id, edges in items)
    return _feed(facts), tuple(item for item in made if item)


Read = tuple[FeedFacts, list[tuple[str | None, list[Edge]]]]


def _read(text: bytes, url: str | None, limits: Limits) -> Read:
    if not text.startswith(b"<"):
        return _entries(JsonFeed(text, url), limits)
    if text[:14].lower() == b"<!doctype html":
        raise DecodeProblem("not a feed", received="an HTML page", accepted=ACCEPTED)
    clean = with_characters(text)
    root = parsed_xml(clean, limits)
    name = etree.QName(root)
    if name.namespace == ATOM and name.localname in ("feed", "entry"):
        return _entries(Atom(root, url), limits)
    if name.localname == "rss":
        return _entries(Rss(root, url), limits)
    if name.namespace == RDF:
        return _rss1(root, url, limits)
    raise DecodeProblem("not a feed", received=f"<{printable(str(root.tag))}>", accepted=ACCEPTED)


def _entries(reader: Rss | Atom | JsonFeed, limits: Limits) -> Read:
    entries = islice(reader.entries(), limits.items + 1)
    return reader.facts(), [(entry.id or entry.link, entry_edges(entry)) for entry in entries]


def _rss1(root: etree._Element, url: str | None, limits: Limits) -> Read:
    escape_markup(root)
    reader = Rss1(decode_xml(root, url, limits))
    if not reader.is_feed():
        raise DecodeProblem("not a feed", received="RDF without rss:channel and rss:item", accepted=ACCEPTED)
    items = [(_name(edges), edges) for edges in reader.items()]
    return reader.facts(), items


def _name(edges: list[Edge]) -> str | None:
    node = edges[0].subject
    return node.text if node.kind is TermKind.IRI else None


def _channel(facts: FeedFacts, url: str | None) -> Channel:
    addresses = (facts.node, url, facts.self_link, facts.link)
    nodes = (iri_of(address) for address in addresses)
    return Channel(next((node for node in nodes if node), blank("channel")), facts.title, facts.link)


def _feed(facts: FeedFacts) -> Feed:
    updated = instant(facts.updated) if facts.updated else None
    return Feed(
        facts.title,
        facts.link,
        facts.description,
        facts.language,
        facts.ttl,
        facts.hubs,
        facts.self_link,
        updated,
        facts.skip_hours,
        facts.skip_days,
        facts.left_out,
    )


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
    known = id or f"sha256:{hashed}"
    graph = with_channel(edges, known, channel)
    _within(graph, limits)
    node = edges[0].subject
    said = {edge.property.text: edge.object.text for edge in reversed(edges) if edge.subject == node}
    date = said.get(DATE)
    published = instant(date) if date else None
    return Item(known, hashed, said.get(RSS1 + "title"), said.get(RSS1 + "link"), published, graph)


def _within(graph: Graph, limits: Limits) -> None:
    at_most("edges", len(graph.edges), limits)
    for edge in graph.edges:
        at_most("term", len(edge.object.text), limits, where=edge.property.text)
