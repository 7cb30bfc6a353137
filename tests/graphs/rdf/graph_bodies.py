"""Bodies of graphs for tests, and errors of bodies that are no graphs."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from tidings.errors import DecodeProblem
from tidings.graphs.model import RDF, RDFS, Edge, Graph, Term, iri
from tidings.graphs.rdf.rdf_decoder import decode

TTL, NT, TRIG, NQ = "text/turtle", "application/n-triples", "application/trig", "application/n-quads"
XML, JSON = "application/rdf+xml", "application/ld+json"
MEMBER = iri(RDFS + "member")
CELLS = f"@prefix rdf: <{RDF}> . "

Writer = Callable[[list[Edge], str], bytes]


def e(name: str) -> Term:
    return iri(f"urn:e:{name}")


def turtle(text: str, **more: object) -> tuple[Edge, ...]:
    return decode(f"@prefix e: <urn:e:> . {text}".encode(), TTL, **more).edges  # type: ignore[arg-type]


def rdf_xml(inner: str) -> bytes:
    return f'<rdf:RDF xmlns:rdf="{RDF}" xmlns:e="urn:e:">{inner}</rdf:RDF>'.encode()


def json_ld(**keys: object) -> bytes:
    return json.dumps({key.replace("at_", "@"): value for key, value in keys.items()}).encode()


def without_members(graph: Graph) -> tuple[Edge, ...]:
    return tuple(edge for edge in graph.edges if edge.property != MEMBER)


def decode_error(body: bytes, media_type: str, **more: object) -> DecodeProblem:
    with pytest.raises(DecodeProblem) as problem:
        decode(body, media_type, **more)  # type: ignore[arg-type]
    return problem.value
