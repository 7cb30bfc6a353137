"""The test suites of the RDF working group: N-Triples, N-Quads, Turtle, TriG and RDF/XML.

Two documented differences are removed before graphs are compared: members of containers and lists have an
additional edge `rdfs:member`, and language tags are lower case.
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import NamedTuple

import pytest
import rdflib
from rdflib.compare import isomorphic

from tests.conformance.suites import rdf_suite, unexplained
from tidings.errors import DecodeProblem
from tidings.graphs.model import Term, TermKind
from tidings.graphs.rdf.multipart import n_triples
from tidings.graphs.rdf.rdf_decoder import NamedGraph, decode_graphs

pytestmark = [pytest.mark.long, pytest.mark.xdist_group("conformance")]

MF = rdflib.Namespace("http://www.w3.org/2001/sw/DataAccess/tests/test-manifest#")


class Suite(NamedTuple):
    """A suite in the archive: its folder, the address that its documents have, and their media type."""

    folder: str
    base: str
    media_type: str
    least: int


SUITES = {
    "N-Triples": Suite(
        "Lang/NTriplesStd", "http://www.w3.org/2013/N-TriplesTests/", "application/n-triples", 60
    ),
    "N-Quads": Suite("Lang/NQuadsStd", "http://www.w3.org/2013/N-QuadsTests/", "application/n-quads", 80),
    "Turtle": Suite("Lang/TurtleStd", "http://www.w3.org/2013/TurtleTests/", "text/turtle", 290),
    "TriG": Suite("Lang/TrigStd", "http://www.w3.org/2013/TriGTests/", "application/trig", 330),
    "RDF/XML": Suite(
        "rdf11-xml", "https://w3c.github.io/rdf-tests/rdf/rdf11/rdf-xml/", "application/rdf+xml", 150
    ),
}

EXPECTED: dict[str, dict[str, str]] = {
    "RDF/XML": {
        "xml-canon-test001": "XML literals keep all namespaces in scope: RDF 1.1 compares them by value"
    }
}
"""Cases where the outcome differs on purpose, each with its reason."""


class Case(NamedTuple):
    """A document and its expected outcome: a graph (`result`), any graph, or an error (`is_wrong`)."""

    name: str
    address: str
    body: bytes
    is_wrong: bool
    result: bytes | None


@cache
def cases(name: str) -> tuple[Case, ...]:
    return tuple(_cases(SUITES[name], rdf_suite()))


def _cases(suite: Suite, archive: zipfile.ZipFile) -> Iterator[Case]:
    root = next(
        each for each in archive.namelist() if each.endswith(f"testing/RIOT/{suite.folder}/manifest.ttl")
    )
    folder = root.removesuffix("manifest.ttl")
    manifest = rdflib.Graph().parse(
        data=archive.read(root), format="turtle", publicID=suite.base + "manifest.ttl"
    )
    for test in manifest.subjects(MF.action):
        kind = str(next(manifest.objects(test, rdflib.RDF.type)))
        address = str(next(manifest.objects(test, MF.action)))
        result = next(manifest.objects(test, MF.result), None)
        body = archive.read(folder + address.removeprefix(suite.base))
        expected = archive.read(folder + str(result).removeprefix(suite.base)) if result else None
        yield Case(str(test).rpartition("#")[2], address, body, "Negative" in kind, expected)


@pytest.mark.parametrize("name", SUITES)
def test_rdf_suite_gives_expected_graphs_and_errors(name: str) -> None:
    suite, suite_cases = SUITES[name], cases(name)
    assert len(suite_cases) >= suite.least
    disagreements = {case.name: wrong for case in suite_cases if (wrong := _disagreement(case, suite))}
    assert not [*unexplained(disagreements, EXPECTED.get(name, {}))]


def _disagreement(case: Case, suite: Suite) -> str | None:
    try:
        graphs = decode_graphs(case.body, suite.media_type, case.address)
    except DecodeProblem as problem:
        return None if case.is_wrong else f"was refused: {problem.what}"
    if case.is_wrong:
        return "is wrong and was accepted"
    if case.result is None:
        return None
    same = same_graphs(comparable_graphs(graphs), expected_graphs(case.result))
    return None if same else "became another graph"


def same_graphs(ours: Mapping[str, rdflib.Graph], theirs: Mapping[str, rdflib.Graph]) -> bool:
    return ours.keys() == theirs.keys() and all(isomorphic(ours[key], theirs[key]) for key in ours)


def comparable_graphs(graphs: Iterable[NamedGraph]) -> dict[str, rdflib.Graph]:
    """Return graphs of Tidings by name as graphs of rdflib."""
    graphs_by_name: dict[str, rdflib.Graph] = {}
    for each in graphs:
        parsed = rdflib.Graph().parse(data=n_triples(each.graph), format="nt")
        graphs_by_name.setdefault(_name(each.name), rdflib.Graph()).__iadd__(_comparable(parsed))
    return graphs_by_name


def _name(term: Term | None) -> str:
    """Return the key of a graph: its IRI, nothing for the default graph, and one key for all blank nodes."""
    return "" if term is None else term.text if term.kind is TermKind.IRI else "_:"


def expected_graphs(body: bytes) -> dict[str, rdflib.Graph]:
    """Return the graphs of a result in N-Triples or N-Quads; blank nodes are local to each graph, as in Tidings."""
    data = rdflib.Dataset()
    data.parse(data=body, format="nquads")
    graphs_by_name: dict[str, rdflib.Graph] = {}
    for subject, predicate, object, graph in data.quads():
        is_default = graph is None or graph == rdflib.graph.DATASET_DEFAULT_GRAPH_ID
        key = "" if is_default else "_:" if isinstance(graph, rdflib.BNode) else str(graph)
        graphs_by_name.setdefault(key, rdflib.Graph()).add((subject, predicate, object))
    return {key: _comparable(graph) for key, graph in graphs_by_name.items()}


def _comparable(graph: rdflib.Graph) -> rdflib.Graph:
    result = rdflib.Graph()
    for subject, predicate, object in graph:
        if predicate != rdflib.RDFS.member:
            result.add((subject, predicate, _in_lower_case(object)))
    return result


def _in_lower_case(term: rdflib.term.Node) -> rdflib.term.Node:
    if isinstance(term, rdflib.Literal) and term.language:
        return rdflib.Literal(str(term), lang=term.language.lower())
    return term
