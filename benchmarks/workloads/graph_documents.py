"""Serialised graphs and feeds: the publications of paper 002's workload in each syntax, and news feeds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np
import pyoxigraph as ox

from benchmarks.workloads.graph_patterns import EXAMPLE
from tidings.graphs.model import Graph
from tidings.graphs.rdf.multipart import n_triples

ITEMS = 15
"""Items of a feed, as on most sites."""

_SYNTAXES = {
    "N-Triples": ("application/n-triples", ox.RdfFormat.N_TRIPLES),
    "Turtle": ("text/turtle", ox.RdfFormat.TURTLE),
    "RDF/XML": ("application/rdf+xml", ox.RdfFormat.RDF_XML),
    "JSON-LD": ("application/ld+json", ox.RdfFormat.JSON_LD),
}
_WORDS = (
    "oak",
    "table",
    "chair",
    "sold",
    "lamp",
    "found",
    "river",
    "council",
    "new",
    "old",
    "green",
    "bridge",
)


class DocumentSet(NamedTuple):
    """Documents in one syntax; `syntax` is its name in pyoxigraph, None for feeds, which it does not parse."""

    name: str
    media_type: str
    bodies: tuple[bytes, ...]
    syntax: ox.RdfFormat | None = None


def graph_documents(graphs: tuple[Graph, ...], feeds: int, seed: int = 3) -> list[DocumentSet]:
    """Serialise graphs in every syntax, and generate feeds in two formats."""
    plain = tuple(map(n_triples, graphs))
    document_sets = [
        DocumentSet(name, media_type, tuple(_serialize(body, syntax) for body in plain), syntax)
        for name, (media_type, syntax) in _SYNTAXES.items()
    ]
    for name, (media_type, write) in _FEEDS.items():
        rng = np.random.default_rng(seed)
        document_sets.append(DocumentSet(name, media_type, tuple(write(rng).encode() for _ in range(feeds))))
    return document_sets


def _serialize(body: bytes, syntax: ox.RdfFormat) -> bytes:
    quads = (quad.triple for quad in ox.parse(body, format=ox.RdfFormat.N_TRIPLES))
    serialized = ox.serialize(quads, format=syntax, prefixes={"e": EXAMPLE})
    assert serialized is not None
    return serialized


def _text(rng: np.random.Generator, words: int) -> str:
    return " ".join(rng.choice(_WORDS, words))


def _rss(rng: np.random.Generator) -> str:
    return (
        '<?xml version="1.0" encoding="utf-8"?><rss version="2.0"><channel><title>News</title>'
        "<link>http://example.org/</link><description>All of it</description>"
        f"{''.join(_rss_item(rng) for _ in range(ITEMS))}</channel></rss>"
    )


def _rss_item(rng: np.random.Generator) -> str:
    number = int(rng.integers(10**9))
    return (
        f"<item><title>{_text(rng, 6)}</title><link>http://example.org/{number}</link>"
        f"<guid>http://example.org/{number}</guid><pubDate>Wed, 01 May 2024 12:{number % 60:02}:00 +0200</pubDate>"
        f"<category>{_text(rng, 1)}</category><category>{_text(rng, 1)}</category>"
        f"<description>&lt;p&gt;{_text(rng, 60)}&lt;/p&gt;</description></item>"
    )


def _atom(rng: np.random.Generator) -> str:
    return (
        '<?xml version="1.0" encoding="utf-8"?><feed xmlns="http://www.w3.org/2005/Atom"><title>News</title>'
        '<id>http://example.org/</id><updated>2024-05-01T12:00:00Z</updated><link href="http://example.org/"/>'
        f"{''.join(_atom_entry(rng) for _ in range(ITEMS))}</feed>"
    )


def _atom_entry(rng: np.random.Generator) -> str:
    number = int(rng.integers(10**9))
    return (
        f'<entry><title>{_text(rng, 6)}</title><link href="http://example.org/{number}"/>'
        f"<id>http://example.org/{number}</id><updated>2024-05-01T12:{number % 60:02}:00Z</updated>"
        f'<author><name>Ann</name></author><category term="{_text(rng, 1)}"/><category term="{_text(rng, 1)}"/>'
        f'<summary>{_text(rng, 10)}</summary><content type="html">&lt;p&gt;{_text(rng, 60)}&lt;/p&gt;</content></entry>'
    )


_FEEDS: Mapping[str, tuple[str, Callable[[np.random.Generator], str]]] = {
    "RSS 2.0": ("application/rss+xml", _rss),
    "Atom": ("application/atom+xml", _atom),
}
