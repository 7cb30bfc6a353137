"""Members of containers and lists as edges, so that a pattern can ask for them without knowing their place.

    ex:talk ex:speakers ( ex:Ann ex:Bo )

has the list's own edges (rdf:first, rdf:rest) as they were written, and (list, rdfs:member, ex:Ann) and (list,
rdfs:member, ex:Bo) beside them. Bag, Seq and Alt say rdf:_1, rdf:_2 ..., which RDF Schema calls kinds of rdfs:member.
Section 7 of paper 002 leaves bags and sequences to future work.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping

from tidings.graphs import RDF, RDFS, Edge, Term, iri

MEMBER = iri(RDFS + "member")
FIRST, REST = RDF + "first", RDF + "rest"

_PLACE = re.compile(re.escape(RDF) + r"_[1-9][0-9]*")


def members(edges: Collection[Edge]) -> Iterator[Edge]:
    """The edges to members; some of them may be there already, or come twice."""
    names = {edge.property.text for edge in edges}
    places = {name for name in names if name.startswith(RDF + "_") and _PLACE.fullmatch(name)}
    if places:
        yield from (Edge(subject, MEMBER, value) for subject, name, value in edges if name.text in places)
    if FIRST in names:
        yield from _elements(edges)


def _elements(edges: Collection[Edge]) -> Iterator[Edge]:
    first, rest = _values_of(FIRST, edges), _values_of(REST, edges)
    for head in _heads(first, rest, edges):
        for cell in _cells(head, rest):
            yield from (Edge(head, MEMBER, value) for value in first.get(cell, ()))


def _values_of(name: str, edges: Collection[Edge]) -> Mapping[Term, list[Term]]:
    found: dict[Term, list[Term]] = defaultdict(list)
    for edge in edges:
        if edge.property.text == name:
            found[edge.subject].append(edge.object)
    return dict(found)


def _heads(
    first: Mapping[Term, list[Term]], rest: Mapping[Term, list[Term]], edges: Collection[Edge]
) -> list[Term]:
    """Where a list begins: at a cell that is nobody's rest, or that something else points at.

    The second is for lists that share their tail, and for a circle, in which every cell is somebody's rest.
    """
    inner = {value for values in rest.values() for value in values}
    pointed_at = {edge.object for edge in edges if edge.property.text != REST}
    return [cell for cell in first if cell not in inner or cell in pointed_at]


def _cells(head: Term, rest: Mapping[Term, list[Term]]) -> Iterator[Term]:
    """The cells of a list from its head on, each once: a list may bite its tail, or have two."""
    seen, waiting = {head}, [head]
    while waiting:
        cell = waiting.pop()
        yield cell
        for following in reversed(rest.get(cell, ())):
            if following not in seen:
                seen.add(following)
                waiting.append(following)
