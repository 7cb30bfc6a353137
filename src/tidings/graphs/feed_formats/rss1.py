"""RSS 1.0, which is RDF: each item is cut out of the graph with all that hangs on it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

from lxml import etree

from tidings.graphs.feed_formats.dates import date_term
from tidings.graphs.feed_formats.entry import CONTENT, DATE, DC, RSS1
from tidings.graphs.feed_formats.feed import FeedFacts, minutes
from tidings.graphs.feed_formats.html import inner_html
from tidings.graphs.feed_formats.rss2 import SY
from tidings.graphs.model import RDF, TYPE, Edge, Graph, Term, TermKind, blank

_TEXTS = frozenset({f"{{{RSS1}}}title", f"{{{RSS1}}}description", f"{{{CONTENT}}}encoded"})
"""What has a text and nothing else, by the specification of RSS 1.0 and of its content module."""

_HAS_MARKUP = etree.XPath("rss:*/*[*][not(@rdf:parseType)]", namespaces={"rss": RSS1, "rdf": RDF})
_HAS_TEXT = etree.XPath("boolean(text()[normalize-space()])")


def escape_markup(root: etree._Element) -> None:
    """Make text of markup in the channel and its items that should have been escaped; to RDF/XML it would be nodes."""
    found: Any = _HAS_MARKUP(root)
    for element in found:
        if element.tag in _TEXTS or _HAS_TEXT(element):
            text = inner_html(element)
            del element[:]
            element.text = text


class Rss1:
    """Reads RSS 1.0 from its graph."""

    def __init__(self, graph: Graph) -> None:
        self._by_subject: Mapping[Term, list[Edge]] = _by_subject(graph)
        self._channel = next(self._typed("channel"), None)

    def is_feed(self) -> bool:
        return self._channel is not None or next(self._typed("item"), None) is not None

    def facts(self) -> FeedFacts:
        period, often = self._said(SY + "updatePeriod"), self._said(SY + "updateFrequency")
        here = self._channel
        return FeedFacts(
            title=self._said(RSS1 + "title"),
            link=self._said(RSS1 + "link"),
            description=self._said(RSS1 + "description"),
            language=self._said(DC + "language"),
            ttl=minutes(period, often),
            updated=self._said(DATE),
            node=here.text if here is not None and here.kind is TermKind.IRI else None,
        )

    def items(self) -> Iterator[list[Edge]]:
        """The edges of each item; blank nodes are numbered anew, and dates are dates."""
        for item in self._typed("item"):
            yield _relabelled([_dated(edge) for edge in self._below(item)])

    def _below(self, item: Term) -> Iterator[Edge]:
        seen, waiting = {item}, [item]
        while waiting:
            for edge in self._by_subject.get(waiting.pop(0), ()):
                yield edge
                if edge.object.kind is TermKind.BLANK and edge.object not in seen:
                    seen.add(edge.object)
                    waiting.append(edge.object)

    def _typed(self, name: str) -> Iterator[Term]:
        for subject, edges in self._by_subject.items():
            if any(edge.property.text == TYPE and edge.object.text == RSS1 + name for edge in edges):
                yield subject

    def _said(self, name: str) -> str | None:
        edges = [] if self._channel is None else self._by_subject[self._channel]
        return next((edge.object.text.strip() for edge in edges if edge.property.text == name), None)


def _by_subject(graph: Graph) -> Mapping[Term, list[Edge]]:
    found: dict[Term, list[Edge]] = defaultdict(list)
    for edge in graph.edges:
        found[edge.subject].append(edge)
    return dict(found)


def _dated(edge: Edge) -> Edge:
    plain = edge.property.text == DATE and edge.object.kind is TermKind.LITERAL
    return edge._replace(object=date_term(edge.object.text)) if plain else edge


def _relabelled(edges: list[Edge]) -> list[Edge]:
    labels: dict[Term, Term] = {}

    def named(term: Term) -> Term:
        return labels.setdefault(term, blank(f"b{len(labels)}")) if term.kind is TermKind.BLANK else term

    return [Edge(named(edge.subject), edge.property, named(edge.object)) for edge in edges]
