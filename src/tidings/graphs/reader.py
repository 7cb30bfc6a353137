"""Graphs as the matcher reads them: many at a time to atoms, or one as its edges."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import pyarrow as pa

from tidings.atoms import AtomShape
from tidings.errors import PublicationError
from tidings.graphs import explanation
from tidings.graphs.atoms import GraphReader as AtomReader
from tidings.graphs.gql import gql_parser
from tidings.graphs.model import Graph
from tidings.graphs.rdf import rdf_decoder
from tidings.graphs.taxonomy import Taxonomy
from tidings.kinds import Bytes, DecodedPublications, Environment, Evaluator, Explanation, Integers, Reader
from tidings.reference_data.enrichment import Added


class GraphReader(Reader):
    """Decodes graphs, and relates their nodes to the classes of the loaded taxonomies."""

    def __init__(self, environment: Environment) -> None:
        self._taxonomy = environment.taxonomy()
        self._atoms = AtomReader(environment.paths.get(AtomShape.EDGES, ()), self._taxonomy)

    def decode(self, media_type: str, buffer: Bytes, starts: Integers, ends: Integers) -> DecodedPublications:
        graphs: list[Graph] = []
        rejects: list[tuple[int, PublicationError]] = []
        for place, (start, end) in enumerate(zip(starts, ends, strict=True)):
            try:
                graphs.append(rdf_decoder.decode(buffer[start:end].tobytes(), media_type))
            except PublicationError as problem:
                graphs.append(Graph(()))
                rejects.append((place, problem))
        return DecodedPublications(self._atoms.atoms(graphs), pa.nulls(len(starts), pa.string()), rejects)

    def read(self, body: bytes, media_type: str, added: Sequence[Added] = ()) -> Evaluator:
        return GraphEvaluator(rdf_decoder.decode(body, media_type), self._taxonomy)


class GraphEvaluator(Evaluator):
    """A graph, evaluated in GQL and SPARQL patterns."""

    def __init__(self, graph: Graph, taxonomy: Taxonomy) -> None:
        self._explainer = explanation.Explainer(graph, taxonomy)

    def matches(self, language: str, text: str) -> bool:
        return self._explainer.matches(_parse(text))

    def explain(self, language: str, text: str) -> Explanation | None:
        """A pair that the kernel left undecided may turn out not to match."""
        pattern = _parse(text)
        because = self._explainer.explain(pattern)
        if not because:
            return None
        return Explanation(because, explanation.results_of(pattern, self._explainer.bindings(pattern)))


_parse = lru_cache(maxsize=50_000)(gql_parser.parse)
