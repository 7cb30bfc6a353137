"""The syntax tests of SPARQL 1.1: as metadata queries, and as subscriptions, which support a part of SPARQL."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

import pytest
import rdflib

from tests.conformance.suites import rdf_suite, unexplained
from tidings.errors import InputError, NotSupported, SubscriptionError, SyntaxProblem
from tidings.graphs.patterns import pattern_parser
from tidings.metadata.queries.sparql import ResourceGraph
from tidings.metadata.schema.model import Schema

pytestmark = [pytest.mark.long, pytest.mark.xdist_group("conformance")]

MF = rdflib.Namespace("http://www.w3.org/2001/sw/DataAccess/tests/test-manifest#")

QUERIES = {"syntax-oneof-03.rq": "relative IRIs: a query has no base address here"}


class Case(NamedTuple):
    """A query, and whether it is valid SPARQL 1.1."""

    name: str
    text: str
    is_right: bool


@cache
def cases() -> tuple[Case, ...]:
    return tuple(_cases())


def _cases() -> Iterator[Case]:
    archive = rdf_suite()
    root = next(
        name for name in archive.namelist() if name.endswith("sparql11-query/syntax-query/manifest.ttl")
    )
    folder = root.removesuffix("manifest.ttl")
    manifest = rdflib.Graph().parse(data=archive.read(root), format="turtle", publicID="http://example.org/")
    for test, action in manifest.subject_objects(MF.action):
        kind = str(next(manifest.objects(test, rdflib.RDF.type)))
        text = archive.read(folder + str(action).rpartition("/")[2]).decode()
        yield Case(str(action).rpartition("/")[2], text, "Negative" not in kind)


def test_sparql_suite_queries_are_accepted_or_rejected_as_expected() -> None:
    assert len(cases()) > 80
    graph = ResourceGraph((), Schema({}, {}))
    disagreements = {}
    for case in cases():
        refusal = _refusal(graph, case.text)
        if case.is_right and refusal is not None and not isinstance(refusal, NotSupported):
            disagreements[case.name] = f"was refused: {refusal.what}"
        if not case.is_right and refusal is None:
            disagreements[case.name] = "is wrong and was accepted"
    assert not [*unexplained(disagreements, QUERIES)]


def test_sparql_suite_invalid_queries_are_no_valid_subscriptions() -> None:
    """Valid queries may be rejected: subscriptions support patterns and filters of SPARQL only."""
    disagreements = {
        case.name: "is wrong and was accepted"
        for case in cases()
        if not case.is_right and _is_pattern(case.text)
    }
    assert not [*unexplained(disagreements, {})]


def _is_pattern(text: str) -> bool:
    try:
        pattern_parser.parse(text)
    except SubscriptionError:
        return False
    return True


def _refusal(graph: ResourceGraph, text: str) -> SyntaxProblem | None:
    """Return the syntax error of a text. A valid query that cannot be evaluated, for an unknown function, has none."""
    try:
        graph.ask(text)
    except SyntaxProblem as problem:
        return problem
    except InputError:
        return None
    return None
