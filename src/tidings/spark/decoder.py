"""Decoding and matching of publications inside a task."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pyarrow as pa

from tidings.atoms import Atoms
from tidings.events.schema.event_schema import EventSchema
from tidings.graphs.taxonomy import Taxonomy
from tidings.kinds import (
    Bytes,
    DecodedPublications,
    Environment,
    Evaluator,
    Integers,
    Kind,
    Reader,
    find_kind,
    shares_shape,
    unknown_media_type,
)
from tidings.matching.index.index import Index
from tidings.matching.index.matches import Matches
from tidings.reference_data.enrichment import Added, Enrichment


class Decoder:
    """The readers of all kinds in one environment, each opened on first use."""

    def __init__(self, environment: Environment) -> None:
        self._environment = environment
        self._readers: dict[Kind, Reader] = {}

    @classmethod
    def for_index(
        cls,
        index: Index,
        schema: EventSchema | None = None,
        id_field: str | None = None,
        enrichment: Enrichment | None = None,
        taxonomy: Callable[[], Taxonomy] = Taxonomy,
        allow_labels: bool = True,
    ) -> Decoder:
        """Return a decoder for the paths that the subscriptions of an index use."""
        enrichment = enrichment or Enrichment(())
        paths = index.paths_by_shape
        return cls(Environment(paths, schema, id_field, enrichment, taxonomy, allow_labels))

    def reader(self, media_type: str) -> Reader:
        """Return the reader for a media type."""
        kind = find_kind(media_type)
        if kind is None:
            return UnknownReader()
        if kind not in self._readers:
            self._readers[kind] = kind.open(self._environment)
        return self._readers[kind]

    def decode(self, media_type: str, buffer: Bytes, starts: Integers, ends: Integers) -> DecodedPublications:
        """Decode the publications `buffer[starts[i]:ends[i]]`; a rejected one has no atoms."""
        return self.reader(media_type).decode(media_type, buffer, starts, ends)


class UnknownReader(Reader):
    """Reader for kinds that are no longer registered: rejects, so that the stream goes on."""

    def decode(self, media_type: str, buffer: Bytes, starts: Integers, ends: Integers) -> DecodedPublications:
        rejects = [(place, unknown_media_type(media_type)) for place in range(len(starts))]
        return DecodedPublications(Atoms.of([{}] * len(starts)), pa.nulls(len(starts), pa.string()), rejects)

    def read(self, body: bytes, media_type: str, added: Sequence[Added] = ()) -> Evaluator:
        raise unknown_media_type(media_type)


def match_decoded(decoded: DecodedPublications, media_type: str, index: Index) -> Iterator[Matches]:
    """Match the publications that were not rejected, in order and in parts of bounded size.

    A rejected event has no atoms and would satisfy `not exists price`. Kinds whose atoms have the same shape are told
    apart by the languages of the subscriptions.
    """
    kind = find_kind(media_type)
    languages = kind.languages if kind is not None and shares_shape(kind) else None
    usable = np.ones(decoded.atoms.count, bool)
    usable[[place for place, _ in decoded.rejects]] = False
    for first, matches in index.match_parts(decoded.atoms):
        if decoded.rejects:
            matches = matches.select(usable[first:])
        if languages is not None:
            matches = matches.written_in(languages)
        yield matches.shift(first)
