"""RSS 2.0 with its subsets 0.91 to 0.94 and the modules dc, content, atom and sy; and RSS 1.0, which is RDF."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

from lxml import etree

from tidings.graphs.model import RDF, TYPE, Edge, Graph, Term, TermKind, blank
from tidings.graphs.syndication.atom import base_of, linked, links
from tidings.graphs.syndication.feed import (
    Feed,
    omitted_from_rss,
    parse_days,
    parse_hours,
    update_interval,
    whole_number,
)
from tidings.graphs.syndication.item_graph import (
    ATOM,
    CONTENT,
    DATE,
    DC,
    RSS1,
    Entry,
    date_term,
    instant,
    resolved,
)
from tidings.graphs.syndication.markup import inner_html

SY = "http://purl.org/rss/1.0/modules/syndication/"


class Rss:
    """Reader of RSS 2.0; names without a prefix have the namespace of the root, usually none."""

    def __init__(self, root: etree._Element, url: str | None) -> None:
        self._url = url
        self._core = etree.QName(root).namespace or ""
        channel = root.find(self._tag("channel"))
        self._channel = root if channel is None else channel
        self._root = root

    def feed(self) -> Feed:
        here, base = self._channel, base_of(self._channel, self._url)
        return Feed(
            title=self._text(here, "title"),
            link=resolved(base, self._text(here, "link")) or linked(here, "alternate", base),
            description=self._text(here, "description"),
            language=self._text(here, "language") or text_of(here, DC, "language"),
            ttl=self._ttl(),
            hubs=tuple(links(here, "hub", base)),
            self_link=linked(here, "self", base),
            updated=instant(
                self._text(here, "lastBuildDate")
                or self._text(here, "pubDate")
                or text_of(here, DC, "date")
                or ""
            ),
            skip_hours=parse_hours(self._inner_texts("skipHours", "hour")),
            skip_days=parse_days(self._inner_texts("skipDays", "day")),
            left_out=omitted_from_rss(self._root.iter(self._tag("item")), self._core),
        )

    def _inner_texts(self, outer: str, inner: str) -> tuple[str, ...]:
        """Return the texts of the elements `inner` in the channel's first `outer`."""
        element = self._channel.find(self._tag(outer))
        return () if element is None else self._texts(element, inner)

    def entries(self) -> Iterator[Entry]:
        for item in self._root.iter(self._tag("item")):
            yield self._entry(item)

    def _entry(self, item: etree._Element) -> Entry:
        guid = item.find(self._tag("guid"))
        id = None if guid is None else (guid.text or "").strip() or None
        permanent = id if guid is not None and guid.get("isPermaLink", "true").strip() != "false" else None
        base = base_of(item, self._url)
        link = resolved(base, self._text(item, "link")) or linked(item, "alternate", base)
        return Entry(
            id=id,
            link=link or (resolved(base, permanent) if permanent and "/" in permanent else None),
            title=self._text(item, "title") or text_of(item, DC, "title"),
            description=self._text(item, "description") or text_of(item, DC, "description"),
            content=text_of(item, CONTENT, "encoded"),
            published=self._text(item, "pubDate") or text_of(item, DC, "date"),
            updated=text_of(item, ATOM, "updated"),
            creators=texts_of(item, DC, "creator") or self._texts(item, "author"),
            subjects=tuple(dict.fromkeys(self._texts(item, "category") + texts_of(item, DC, "subject"))),
            enclosures=tuple(
                address
                for enclosure in item.iterfind(self._tag("enclosure"))
                if (address := resolved(base, enclosure.get("url")))
            ),
        )

    def _ttl(self) -> int | None:
        ttl = whole_number(self._text(self._channel, "ttl") or "")
        if ttl is not None:
            return ttl
        period, often = (
            text_of(self._channel, SY, "updatePeriod"),
            text_of(self._channel, SY, "updateFrequency"),
        )
        return update_interval(period, often)

    def _tag(self, name: str) -> str:
        return f"{{{self._core}}}{name}" if self._core else name

    def _text(self, element: etree._Element, name: str) -> str | None:
        return next(iter(self._texts(element, name)), None)

    def _texts(self, element: etree._Element, name: str) -> tuple[str, ...]:
        return texts_of(element, self._core, name)


def text_of(element: etree._Element, namespace: str, name: str) -> str | None:
    return next(iter(texts_of(element, namespace, name)), None)


def texts_of(element: etree._Element, namespace: str, name: str) -> tuple[str, ...]:
    """Return the texts of the children with this name; unescaped markup is kept as markup."""
    tag = f"{{{namespace}}}{name}" if namespace else name
    texts = (inner_html(child) if len(child) else child.text or "" for child in element.iterfind(tag))
    return tuple(text.strip() for text in texts if text.strip())


_TEXTS = frozenset({f"{{{RSS1}}}title", f"{{{RSS1}}}description", f"{{{CONTENT}}}encoded"})
"""Elements that contain text only, by the specifications of RSS 1.0 and its content module."""

_HAS_MARKUP = etree.XPath("rss:*/*[*][not(@rdf:parseType)]", namespaces={"rss": RSS1, "rdf": RDF})
_HAS_TEXT = etree.XPath("boolean(text()[normalize-space()])")


def escape_markup(root: etree._Element) -> None:
    """Escape markup in the channel and its items that RDF/XML would read as nodes."""
    elements: Any = _HAS_MARKUP(root)
    for element in elements:
        if element.tag in _TEXTS or _HAS_TEXT(element):
            text = inner_html(element)
            del element[:]
            element.text = text


class Rss1:
    """Reader of RSS 1.0, from its graph."""

    def __init__(self, graph: Graph) -> None:
        self._edges_by_subject: Mapping[Term, list[Edge]] = _edges_by_subject(graph)
        self._channel = next(self._typed("channel"), None)

    def is_feed(self) -> bool:
        return self._channel is not None or next(self._typed("item"), None) is not None

    def feed(self) -> Feed:
        period, often = self._value(SY + "updatePeriod"), self._value(SY + "updateFrequency")
        here = self._channel
        return Feed(
            title=self._value(RSS1 + "title"),
            link=self._value(RSS1 + "link"),
            description=self._value(RSS1 + "description"),
            language=self._value(DC + "language"),
            ttl=update_interval(period, often),
            updated=instant(self._value(DATE) or ""),
            node=here.text if here is not None and here.kind is TermKind.IRI else None,
        )

    def items(self) -> Iterator[list[Edge]]:
        """Yield the edges of each item; blank nodes are renumbered, and dates become xsd:dateTime."""
        for item in self._typed("item"):
            yield _relabel_nodes([_parse_date(edge) for edge in self._below(item)])

    def _below(self, item: Term) -> Iterator[Edge]:
        seen, waiting = {item}, [item]
        while waiting:
            for edge in self._edges_by_subject.get(waiting.pop(0), ()):
                yield edge
                if edge.object.kind is TermKind.BLANK and edge.object not in seen:
                    seen.add(edge.object)
                    waiting.append(edge.object)

    def _typed(self, name: str) -> Iterator[Term]:
        for subject, edges in self._edges_by_subject.items():
            if any(edge.property.text == TYPE and edge.object.text == RSS1 + name for edge in edges):
                yield subject

    def _value(self, name: str) -> str | None:
        edges = [] if self._channel is None else self._edges_by_subject[self._channel]
        return next((edge.object.text.strip() for edge in edges if edge.property.text == name), None)


def _edges_by_subject(graph: Graph) -> Mapping[Term, list[Edge]]:
    edges: dict[Term, list[Edge]] = defaultdict(list)
    for edge in graph.edges:
        edges[edge.subject].append(edge)
    return dict(edges)


def _parse_date(edge: Edge) -> Edge:
    plain = edge.property.text == DATE and edge.object.kind is TermKind.LITERAL
    return edge._replace(object=date_term(edge.object.text)) if plain else edge


def _relabel_nodes(edges: list[Edge]) -> list[Edge]:
    labels: dict[Term, Term] = {}

    def named(term: Term) -> Term:
        return labels.setdefault(term, blank(f"b{len(labels)}")) if term.kind is TermKind.BLANK else term

    return [Edge(named(edge.subject), edge.property, named(edge.object)) for edge in edges]
