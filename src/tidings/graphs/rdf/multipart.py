"""Publications with several graphs: TriG files and feeds. Each graph or item becomes a publication of its own.

    for part in parts_of(body, "application/rss+xml"): ...

A part is written as N-Triples, the simplest syntax, which any tool can read from the journal.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from tidings.graphs.model import STRING, Graph, Term, TermKind
from tidings.graphs.rdf.media_types import FEEDS, JSON_LD, plain
from tidings.graphs.rdf.rdf_decoder import check_base, decode, decode_graphs
from tidings.graphs.syndication.feed_parser import items_of
from tidings.parsers.parser_pool import run_isolated

N_TRIPLES = "application/n-triples"
SEVERAL = frozenset({"application/trig", "application/n-quads", *FEEDS})
"""Media types of publications that hold several graphs."""

_ESCAPED = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\b": "\\b", "\f": "\\f"}
_SPECIAL = re.compile(r'["\\\x00-\x1f\x7f]')
_NOT_IN_IRIS = re.compile(r'[\x00-\x20<>"{}|^`\\]')


def holds_several(body: bytes, media_type: str, base: str | None = None) -> bool:
    """Return whether a publication is split: always for SEVERAL, JSON-LD if it has several graphs."""
    if plain(media_type) == JSON_LD:
        return run_isolated(count_graphs, body, media_type, base) > 1
    return plain(media_type) in SEVERAL


def resolved(body: bytes, media_type: str, base: str) -> bytes:
    """Write one graph as N-Triples with its relative IRIs resolved; later readers have no base."""
    return run_isolated(write_graph, body, media_type, base)


def parts_of(body: bytes, media_type: str, base: str | None = None) -> Iterator[bytes]:
    """Yield the graphs of a publication, each as N-Triples."""
    if base is not None:
        check_base(base)
    yield from run_isolated(write_parts, body, media_type, base)


def count_graphs(body: bytes, media_type: str, base: str | None) -> int:
    return len(decode_graphs(body, media_type, base))


def write_graph(body: bytes, media_type: str, base: str) -> bytes:
    return n_triples(decode(body, media_type, base))


def write_parts(body: bytes, media_type: str, base: str | None) -> list[bytes]:
    if plain(media_type) in FEEDS:
        return [n_triples(item.graph) for item in items_of(body, media_type, base)[1]]
    return [n_triples(part.graph) for part in decode_graphs(body, media_type, base)]


def n_triples(graph: Graph) -> bytes:
    """Write a graph as N-Triples; it decodes to the same graph."""
    lines = (f"{' '.join(map(_write_term, edge))} .\n" for edge in graph.edges)
    return "".join(lines).encode()


def _write_term(term: Term) -> str:
    if term.kind is TermKind.IRI:
        return _iri(term.text)
    if term.kind is TermKind.BLANK:
        return f"_:{term.text}"
    text = '"' + _SPECIAL.sub(_escape, term.text) + '"'
    if term.language:
        return f"{text}@{term.language}"
    return text if term.datatype == STRING else f"{text}^^{_iri(term.datatype)}"


def _iri(text: str) -> str:
    return "<" + _NOT_IN_IRIS.sub(lambda match: f"\\u{ord(match[0]):04X}", text) + ">"


def _escape(match: re.Match[str]) -> str:
    return _ESCAPED.get(match[0]) or f"\\u{ord(match[0]):04X}"
