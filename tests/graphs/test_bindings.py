"""Bindings in notifications: as SPARQL 1.1 writes results in JSON, and of bounded size."""

from __future__ import annotations

from tidings.graphs.explanation import MOST_TEXT, Explainer, results_of
from tidings.graphs.gql.gql_parser import parse
from tidings.graphs.model import Edge, Graph, iri, literal

PATTERN = parse("SELECT ?o WHERE (?s, <urn:p>, ?o)")


def results(*texts: str) -> tuple[int, str | None]:
    """How many bindings are shown of a graph with these literals, and the note."""
    graph = Graph(tuple(Edge(iri(f"urn:{n}"), iri("urn:p"), literal(text)) for n, text in enumerate(texts)))
    found = results_of(PATTERN, Explainer(graph).bindings(PATTERN))
    return len(found["results"]["bindings"]), found.get("note")


def test_results_of_short_values_show_all_bindings() -> None:
    assert results("a", "b") == (2, None)


def test_results_of_long_values_show_as_many_bindings_as_fit() -> None:
    half = "x" * (MOST_TEXT // 2)
    assert results("a" + half[1:], "b" + half[1:], "c") == (2, "more than 2 bindings")
    assert results("x" * (MOST_TEXT + 1)) == (0, "more than 0 bindings")
