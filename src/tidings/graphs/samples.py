"""Samples of graph patterns: a guide with examples for people, and a rehearsal for compiled code."""

from __future__ import annotations

from tidings.graphs.rdf.media_types import TURTLE
from tidings.kinds import Example, LanguageGuide, Rehearsal

GQL = LanguageGuide(
    "gql",
    "GQL",
    "graphs: RDF",
    examples=(
        Example(
            "SELECT ?item WHERE (?item, dc:date, ?date) AND ?date >= 2024-01-01",
            "items of feeds by date: an edge, and a condition on its end",
        ),
        Example(
            'SELECT ?item ?title WHERE (?item, dc:subject, "clocks") (?item, rss:title, ?title)',
            "items of feeds by category, with their titles",
        ),
        Example(
            'SELECT ?item WHERE { ?item rss:title ?title . FILTER(CONTAINS(?title, "Spark")) }',
            "items of feeds by a part of their title, as a pattern of SPARQL",
        ),
        Example(
            "PREFIX ex: <http://example.org/>\n"
            "SELECT ?page WHERE (?page, dc:subject, ?s) AND ?s <= ex:Academia",
            "graphs by a class of a taxonomy and its subclasses",
        ),
    ),
    noun="GQL or SPARQL",
    # `SELECT * FROM` is SQL.
    begins=r"(?:\s|#[^\n]*\n)*(?:prefix\s+[\w.-]*:|base\s*<[^<>\s]*>|(?:ask|construct|describe)\s*(?:where\s*)?[{?<$]"
    r"|select\s+(?:distinct\s+|reduced\s+)?(?:[?$(]|\*\s*(?:where\b|\{)))",
    is_distinctive=True,
    prologue=r"\bPREFIX\s+[^\s<>]*\s*<[^<>]*>\s*",
    synonyms=dict.fromkeys(
        ("sparql", "rdf", "graph", "graphs"), "graph patterns of SPARQL are accepted: name the language gql"
    ),
)

_SELECT = "PREFIX lot: <urn:lot:> SELECT * WHERE"
_LOT = '<urn:lot:{0}> <urn:lot:title> "cuckoo clock" ; <urn:lot:material> "oak" ; <urn:lot:price> {0}.5 .'

REHEARSAL = Rehearsal(
    "gql",
    (
        f"{_SELECT} (?lot, lot:title, ?t) (?lot, lot:price, ?p) AND ?t contains 'clock' AND ?p > 90",
        f"{_SELECT} (?lot, lot:material, 'oak') (?lot, lot:price, ?p) AND ?lot != lot:House",
    ),
    TURTLE,
    [_LOT.format(number).encode() for number in range(60, 180)],
)
