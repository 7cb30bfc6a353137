"""Publications that hold several: the graphs of a TriG file, the items of a feed. Each becomes a graph of its own.

    for part in parts_of(body, "application/rss+xml"): ...

A part is written as N-Triples, the plainest syntax: what goes into the journal can be read by anything.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from tidings.graphs.feed_formats.feed_parser import items_of
from tidings.graphs.model import STRING, Graph, Term, TermKind
from tidings.graphs.rdf.media_types import FEEDS, JSON_LD, plain
from tidings.graphs.rdf.rdf_decoder import check_base, decode, decode_graphs
from tidings.parsers.parser_pool import isolated

N_TRIPLES = "application/n-triples"
SEVERAL = frozenset({"application/trig", "application/n-quads", *FEEDS})
"""The media types of publications that are made to hold several graphs."""

_ESCAPED = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\b": "\\b", "\f": "\\f"}
_SPECIAL = re.compile(r'["\\\x00-\x1f\x7f]')
_NOT_IN_IRIS = re.compile(r'[\x00-\x20<>"{}|^`\\]')


def holds_several(body: bytes, media_type: str, base: str | None = None) -> bool:
    """Whether it is taken apart: always for what is made to hold several, for JSON-LD if it does."""
    if plain(media_type) == JSON_LD:
        return isolated(count_graphs, body, media_type, base) > 1
    return plain(media_type) in SEVERAL


def resolved(body: bytes, media_type: str, base: str) -> bytes:
    """One graph as N-Triples, its relative IRIs taken from a base: whoever reads it later has none."""
    return isolated(write_graph, body, media_type, base)


def parts_of(body: bytes, media_type: str, base: str | None = None) -> Iterator[bytes]:
    """The graphs in the bytes, each as N-Triples."""
    if base is not None:
        check_base(base)
    yield from isolated(write_parts, body, media_type, base)


def count_graphs(body: bytes, media_type: str, base: str | None) -> int:
    return len(decode_graphs(body, media_type, base))


def write_graph(body: bytes, media_type: str, base: str) -> bytes:
    return n_triples(decode(body, media_type, base))


def write_parts(body: bytes, media_type: str, base: str | None) -> list[bytes]:
    if plain(media_type) in FEEDS:
        return [n_triples(item.graph) for item in items_of(body, media_type, base)[1]]
    return [n_triples(part.graph) for part in decode_graphs(body, media_type, base)]


def n_triples(graph: Graph) -> bytes:
    """A graph as N-Triples: the same graph comes back."""
    lines = (f"{' '.join(map(_written, edge))} .\n" for edge in graph.edges)
    return "".join(lines).encode()


def _written(term: Term) -> str:
    if term.kind is TermKind.IRI:
        return _iri(term.text)
    if term.kind is TermKind.BLANK:
        return f"_:{term.text}"
    text = '"' + _SPECIAL.sub(_escape, term.text) + '"'
    if term.language:
        return f"{text}@{term.language}"
    return text if term.datatype == STRING else f"{text}^^{_iri(term.datatype)}"


def _iri(text: str) -> str:
    return "<" + _NOT_IN_IRIS.sub(lambda found: f"\\u{ord(found[0]):04X}", text) + ">"


def _escape(found: re.Match[str]) -> str:
    return _ESCAPED.get(found[0]) or f"\\u{ord(found[0]):04X}"
