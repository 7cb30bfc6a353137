"""The JSON-LD 1.0 test suite: documents to graphs.

A document without statements is rejected on purpose: a publication without edges cannot match. Generalised RDF,
where properties may be blank nodes, is not supported.
"""

from __future__ import annotations

import json
from functools import cache
from typing import NamedTuple

import pytest

from tests.conformance.suites import json_ld_suite, unexplained
from tests.conformance.test_rdf_suite import comparable_graphs, expected_graphs, same_graphs
from tidings.errors import DecodeProblem
from tidings.graphs.rdf.rdf_decoder import decode_graphs

pytestmark = [pytest.mark.long, pytest.mark.xdist_group("conformance")]

BASE = "http://json-ld.org/test-suite/tests/"
_LATER = "JSON-LD 1.1 is read, which refuses or reads this otherwise: section 4.1.5, compact IRIs"
_DOTS = "the reader of JSON-LD, pyoxigraph, leaves dot segments of a base or behind an authority as they are"
EXPECTED = {
    **dict.fromkeys(("#t0065", "#t0066", "#t0088", "#t0111"), _LATER),
    **dict.fromkeys(("#t0102", "#t0122", "#t0123"), _DOTS),
}


class Case(NamedTuple):
    """A document and the N-Quads that it denotes."""

    name: str
    address: str
    body: bytes
    result: bytes


@cache
def cases() -> tuple[Case, ...]:
    root = json_ld_suite()
    manifest = json.loads((root / "toRdf-manifest.jsonld").read_text(encoding="utf-8"))
    return tuple(
        Case(
            test["@id"],
            BASE + test["input"],
            (root / test["input"]).read_bytes(),
            (root / test["expect"]).read_bytes(),
        )
        for test in manifest["sequence"]
        if "expect" in test and not test.get("option", {}).get("produceGeneralizedRdf")
    )


def test_json_ld_documents_decode_to_expected_graphs() -> None:
    assert len(cases()) > 100
    disagreements = {case.name: wrong for case in cases() if (wrong := _disagreement(case))}
    assert not [*unexplained(disagreements, EXPECTED)]


def _disagreement(case: Case) -> str | None:
    try:
        graphs = decode_graphs(case.body, "application/ld+json", case.address)
    except DecodeProblem as problem:
        return f"was refused: {problem.what}" if case.result.strip() else None
    return (
        None
        if same_graphs(comparable_graphs(graphs), expected_graphs(case.result))
        else "became another graph"
    )
