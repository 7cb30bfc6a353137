"""Baseline without a filter: documents in a triple store, and every rule evaluated again, in SPARQL."""

from __future__ import annotations

from collections.abc import Iterable

import pyoxigraph as ox

from benchmarks.workloads.metadata import Rules
from tidings.metadata.provider.provider import DocumentSource


class EachRule:
    """Evaluation of all rules after each batch, compared with the previous results of each rule."""

    name = "pyoxigraph, each rule in turn"

    def __init__(self, rules: Rules) -> None:
        self._queries = list(rules.queries())
        self._results: list[frozenset[str]] = [frozenset()] * rules.size
        self._store = ox.Store()

    def register(self, sources: Iterable[DocumentSource]) -> dict[str, int]:
        """Register documents; return how many rules each new resource entered."""
        for source in sources:
            self._store.load(source.body, format=ox.RdfFormat.RDF_XML, base_iri=source.uri)
        entered: dict[str, int] = {}
        for number, query in enumerate(self._queries):
            solutions = self._store.query(query)
            assert isinstance(solutions, ox.QuerySolutions)
            now = frozenset(solution["c"].value for solution in solutions)
            for uri in now - self._results[number]:
                entered[uri] = entered.get(uri, 0) + 1
            self._results[number] = now
        return entered
