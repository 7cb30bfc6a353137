"""An item of any feed as the graph that RSS 1.0 would have made of it.

             rss:item                                     rss:channel
                ▲ rdf:type                                   ▲ rdf:type
<http://example.org/today> ──── dcterms:isPartOf ───▶ <http://example.org/feed>
   rss:title, rss:link, rss:description                    rss:title, rss:link
   content:encoded, dc:date, dc:creator, dc:subject ...
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from urllib.parse import quote

from tidings.core.iris import resolve_iri
from tidings.graphs.feed_formats.dates import date_term
from tidings.graphs.model import TYPE, Edge, Graph, Term, TermKind, blank, iri, literal

ATOM = "http://www.w3.org/2005/Atom"
RSS1 = "http://purl.org/rss/1.0/"
CONTENT = "http://purl.org/rss/1.0/modules/content/"
DC = "http://purl.org/dc/elements/1.1/"
DCTERMS = "http://purl.org/dc/terms/"
ENCLOSURE = "http://purl.oclc.org/net/rss_2.0/enc#"
SLASH = "http://purl.org/rss/1.0/modules/slash/"

DATE, MODIFIED, PART_OF = DC + "date", DCTERMS + "modified", DCTERMS + "isPartOf"

FLEETING = frozenset({DATE, MODIFIED, PART_OF, DC + "identifier", SLASH + "comments", SLASH + "hit_parade"})
"""What may differ though nobody edited an item: dates where a site dates everything today, counts of comments, and its
name."""

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:.")
_FOLDED = re.compile(r"[\t\r\n]")
_NOT_IN_IRIS = re.compile(r"[\x00-\x20<>\"{}|\\^`]")


@dataclass(frozen=True, slots=True)
class Channel:
    """What each item of a feed says about the feed."""

    node: Term
    title: str | None
    link: str | None


@dataclass(frozen=True, slots=True)
class Entry:
    """What an item of RSS 2.0, Atom or JSON Feed says; dates as they were written, links resolved."""

    id: str | None = None
    link: str | None = None
    title: str | None = None
    description: str | None = None
    content: str | None = None
    published: str | None = None
    updated: str | None = None
    language: str | None = None
    creators: tuple[str, ...] = ()
    subjects: tuple[str, ...] = ()
    enclosures: tuple[str, ...] = ()


def entry_edges(entry: Entry) -> list[Edge]:
    """The edges of an item without those to its feed."""
    node = iri_of(entry.link) or iri_of(entry.id) or blank("b0")
    made = [Edge(node, iri(TYPE), iri(RSS1 + "item"))]
    made += [Edge(node, iri(name), literal(text)) for name, text in _texts(entry) if text]
    for name, text in ((DATE, entry.published or entry.updated), (MODIFIED, entry.updated)):
        made += [Edge(node, iri(name), date_term(text))] if text else []
    linked = (iri_of(address) for address in entry.enclosures)
    return made + [Edge(node, iri(ENCLOSURE + "enclosure"), file) for file in linked if file]


def _texts(entry: Entry) -> Iterator[tuple[str, str | None]]:
    yield RSS1 + "title", entry.title
    yield RSS1 + "link", entry.link
    yield RSS1 + "description", entry.description
    yield CONTENT + "encoded", entry.content
    yield from ((DC + "creator", name) for name in entry.creators)
    yield from ((DC + "subject", name) for name in entry.subjects)
    yield DC + "language", entry.language


def with_channel(edges: Iterable[Edge], id: str, channel: Channel) -> Graph:
    """The graph of an item: its edges, its id, and what it is part of."""
    made = list(edges)
    node = made[0].subject
    made.append(Edge(node, iri(DC + "identifier"), literal(id)))
    made.append(Edge(node, iri(PART_OF), channel.node))
    made.append(Edge(channel.node, iri(TYPE), iri(RSS1 + "channel")))
    for name, text in ((RSS1 + "title", channel.title), (RSS1 + "link", channel.link)):
        made += [Edge(channel.node, iri(name), literal(text))] if text else []
    return Graph(tuple(dict.fromkeys(made)))


def content_hash(edges: Iterable[Edge]) -> str:
    """Differs if an item was edited. Order does not count, and neither does what is fleeting."""
    said = {
        (edge.property.text, "" if edge.object.kind is TermKind.BLANK else edge.object.text)
        for edge in edges
        if edge.property.text not in FLEETING
    }
    return hashlib.sha256(json.dumps(sorted(said)).encode()).hexdigest()


def iri_of(text: str | None) -> Term | None:
    """The address as a node, characters that no IRI may have escaped; nothing if it is not absolute."""
    if not text or not _SCHEME.match(text):
        return None
    return iri(_NOT_IN_IRIS.sub(lambda found: quote(found[0]), text))


def resolved(base: str | None, text: str | None) -> str | None:
    """Resolve an address of a feed against a base; without a base it stays as it was written.

    Line ends and tabs within an address are left out, as browsers do.
    """
    address = _FOLDED.sub("", (text or "").strip())
    return resolve_iri(base, address) if base and address else address or None
