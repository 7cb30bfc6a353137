"""An item of any feed as a graph in the vocabulary of RSS 1.0.

             rss:item                                     rss:channel
                ▲ rdf:type                                   ▲ rdf:type
<http://example.org/today> ──── dcterms:isPartOf ───▶ <http://example.org/feed>
   rss:title, rss:link, rss:description                    rss:title, rss:link
   content:encoded, dc:date, dc:creator, dc:subject ...

Dates are RFC 822 in RSS 2.0, and ISO 8601 (also a year or a month) in the other formats.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from urllib.parse import quote

from tidings.core.iris import resolve_iri
from tidings.graphs.model import TYPE, XSD, Edge, Graph, Term, TermKind, blank, iri, literal
from tidings.values import parse_instant

ATOM = "http://www.w3.org/2005/Atom"
RSS1 = "http://purl.org/rss/1.0/"
CONTENT = "http://purl.org/rss/1.0/modules/content/"
DC = "http://purl.org/dc/elements/1.1/"
DCTERMS = "http://purl.org/dc/terms/"
ENCLOSURE = "http://purl.oclc.org/net/rss_2.0/enc#"
SLASH = "http://purl.org/rss/1.0/modules/slash/"

DATE, MODIFIED, PART_OF = DC + "date", DCTERMS + "modified", DCTERMS + "isPartOf"

VOLATILE = frozenset({DATE, MODIFIED, PART_OF, DC + "identifier", SLASH + "comments", SLASH + "hit_parade"})
"""Properties that change without an edit: dates on sites that date everything today, comment counts, and the id."""

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:.")
_FOLDED = re.compile(r"[\t\r\n]")
_NOT_IN_IRIS = re.compile(r"[\x00-\x20<>\"{}|\\^`]")


@dataclass(frozen=True, slots=True)
class Channel:
    """The feed, as each of its items describes it."""

    node: Term
    title: str | None
    link: str | None


@dataclass(frozen=True, slots=True)
class Entry:
    """An item of RSS 2.0, Atom or JSON Feed; dates as written, links resolved."""

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
    """Build the edges of an item, without those to its feed."""
    node = iri_of(entry.link) or iri_of(entry.id) or blank("b0")
    edges = [Edge(node, iri(TYPE), iri(RSS1 + "item"))]
    edges += [Edge(node, iri(name), literal(text)) for name, text in _texts(entry) if text]
    for name, text in ((DATE, entry.published or entry.updated), (MODIFIED, entry.updated)):
        edges += [Edge(node, iri(name), date_term(text))] if text else []
    files = (iri_of(address) for address in entry.enclosures)
    return edges + [Edge(node, iri(ENCLOSURE + "enclosure"), file) for file in files if file]


def _texts(entry: Entry) -> Iterator[tuple[str, str | None]]:
    yield RSS1 + "title", entry.title
    yield RSS1 + "link", entry.link
    yield RSS1 + "description", entry.description
    yield CONTENT + "encoded", entry.content
    yield from ((DC + "creator", name) for name in entry.creators)
    yield from ((DC + "subject", name) for name in entry.subjects)
    yield DC + "language", entry.language


def with_channel(edges: Iterable[Edge], id: str, channel: Channel) -> Graph:
    """Build the graph of an item: its edges, its id, and its feed."""
    whole = list(edges)
    node = whole[0].subject
    whole.append(Edge(node, iri(DC + "identifier"), literal(id)))
    whole.append(Edge(node, iri(PART_OF), channel.node))
    whole.append(Edge(channel.node, iri(TYPE), iri(RSS1 + "channel")))
    for name, text in ((RSS1 + "title", channel.title), (RSS1 + "link", channel.link)):
        whole += [Edge(channel.node, iri(name), literal(text))] if text else []
    return Graph(tuple(dict.fromkeys(whole)))


def content_hash(edges: Iterable[Edge]) -> str:
    """Hash an item's content, independent of order and of volatile properties."""
    content = {
        (edge.property.text, "" if edge.object.kind is TermKind.BLANK else edge.object.text)
        for edge in edges
        if edge.property.text not in VOLATILE
    }
    return hashlib.sha256(json.dumps(sorted(content)).encode()).hexdigest()


def iri_of(text: str | None) -> Term | None:
    """Convert an address to a node, with invalid characters escaped; None if it is not absolute."""
    if not text or not _SCHEME.match(text):
        return None
    return iri(_NOT_IN_IRIS.sub(lambda match: quote(match[0]), text))


def resolved(base: str | None, text: str | None) -> str | None:
    """Resolve an address against a base, if there is one; line ends and tabs are removed, as in browsers."""
    address = _FOLDED.sub("", (text or "").strip())
    return resolve_iri(base, address) if base and address else address or None


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SHORT = re.compile(r"\d{4}(-\d{2})?")


def instant(text: str) -> datetime | None:
    """Parse a date to an instant in UTC, which is also the default zone; None for other texts."""
    for read in (_exact, _iso, parsedate_to_datetime):
        try:
            made = read(text.strip())
            return made.replace(tzinfo=UTC) if made.tzinfo is None else made.astimezone(UTC)
        except (
            ValueError,
            TypeError,
            IndexError,
            OverflowError,
        ):  # Python's RFC 822 parser raises all of them
            continue
    return None


def _exact(text: str) -> datetime:
    """Parse as in events: RFC 3339, also with lower-case letters and leap seconds."""
    instant = parse_instant(text)
    if instant is None:
        raise ValueError(text)
    return _EPOCH + timedelta(microseconds=instant.micros)


def _iso(text: str) -> datetime:
    return datetime.fromisoformat(text + "-01-01"[len(text) - 4 :] if _SHORT.fullmatch(text) else text)


def date_term(text: str) -> Term:
    """Convert a date to an exact xsd:dateTime; other texts stay plain literals."""
    exact, moment = parse_instant(text.strip()), instant(text)
    if exact is not None and exact.between:
        return literal(text.strip(), XSD + "dateTime")
    return literal(text.strip()) if moment is None else literal(written(moment), XSD + "dateTime")


def written(moment: datetime) -> str:
    return moment.isoformat().replace("+00:00", "Z")
