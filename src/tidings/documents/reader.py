"""Documents as the matcher reads them: many at a time to atoms, or one as a tree of nodes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import pyarrow as pa

from tidings.documents import reference_matcher, xml_decoder
from tidings.documents.model import Node
from tidings.documents.tag_paths import TagPaths
from tidings.documents.xml_batch_decoder import DecodedDocuments, atoms_of, decode_documents
from tidings.documents.xpath import xpath_parser
from tidings.errors import PublicationError
from tidings.kinds import Bytes, DecodedPublications, Environment, Evaluator, Explanation, Integers, Reader
from tidings.reference_data.enrichment import (
    MOST_ADDED,
    Added,
    build_unenriched_problem,
    enrich_body,
    enrich_document,
    find_added,
    replace_documents,
)


class DocumentReader(Reader):
    """Decodes documents. One that reference tables add rows to is decoded once more, with those rows."""

    def __init__(self, environment: Environment) -> None:
        self._enrichment = environment.enrichment
        self._tag_paths = TagPaths()

    def decode(self, media_type: str, buffer: Bytes, starts: Integers, ends: Integers) -> DecodedPublications:
        decoded = decode_documents(buffer, starts, ends, self._tag_paths)
        ids = pa.nulls(len(starts), pa.string())
        added, plain = find_added(self._enrichment, decoded.atoms, are_documents=True)
        if not added:
            return DecodedPublications(decoded.atoms, ids, decoded.rejects, plain=plain)
        where = np.array(sorted(added), np.int64)
        bodies = [buffer[starts[i] : ends[i]].tobytes() for i in where]
        enriched = self._decode_enriched(bodies, [added[i] for i in where])
        plain += [(int(where[i]), build_unenriched_problem(problem)) for i, problem in enriched.rejects]
        which = np.setdiff1d(np.arange(len(where)), [i for i, _ in enriched.rejects])
        atoms = replace_documents(decoded.atoms, where[which], enriched.atoms, which)
        enriched_rows = {int(i): added[i] for i in where[which]}
        return DecodedPublications(atoms, ids, decoded.rejects, enriched_rows, plain)

    def _decode_enriched(self, bodies: Sequence[bytes], added: Sequence[list[Added]]) -> DecodedDocuments:
        """Decode documents with the rows that are added to them."""
        enriched = [enrich_body(body, rows) for body, rows in zip(bodies, added, strict=True)]
        ends = np.cumsum([len(body) for body in enriched], dtype=np.int64)
        starts = np.concatenate([np.zeros(1, np.int64), ends[:-1]])
        return decode_documents(np.frombuffer(b"".join(enriched), np.uint8), starts, ends, self._tag_paths)

    def read(self, body: bytes, media_type: str, added: Sequence[Added] = ()) -> Evaluator:
        return DocumentEvaluator(enrich_document(xml_decoder.decode(body), added))

    def find_added(self, body: bytes, media_type: str) -> Sequence[Added]:
        """A document that would be too large with its rows is matched without them."""
        if self._enrichment.is_empty:
            return ()
        document = xml_decoder.decode(body)
        rows = self._enrichment.find_rows(atoms_of([document]), are_documents=True).get(0, [])
        if not 0 < len(rows) <= MOST_ADDED:
            return ()
        try:
            xml_decoder.decode(enrich_body(body, rows))
        except PublicationError:
            return ()
        return rows


class DocumentEvaluator(Evaluator):
    """A document, evaluated in XPath."""

    def __init__(self, document: Node) -> None:
        self._explainer = reference_matcher.Explainer(document)
        self._document = document

    def matches(self, language: str, text: str) -> bool:
        return reference_matcher.matches(_parse(text), self._document)

    def explain(self, language: str, text: str) -> Explanation:
        return Explanation(self._explainer.explain(_parse(text)))


_parse = lru_cache(maxsize=50_000)(xpath_parser.parse)
