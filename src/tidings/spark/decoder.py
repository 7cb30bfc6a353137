"""Bytes to atoms inside a task, checked against a schema if there is one, and their matches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidings.atoms import Atoms, Event
from tidings.documents import xml_decoder
from tidings.documents.model import Node
from tidings.documents.tag_paths import TagPaths
from tidings.documents.xml_columns import DecodedDocuments, decode_documents
from tidings.errors import DecodeProblem, PublicationError
from tidings.events import json_decoder
from tidings.events.conformity import Conformity
from tidings.events.json_columns import decode_many
from tidings.events.path_table import PathTable
from tidings.events.schema.event_schema import EventSchema
from tidings.graphs.atoms import GraphReader
from tidings.graphs.model import Graph
from tidings.graphs.rdf import rdf_decoder
from tidings.graphs.taxonomy import Taxonomy
from tidings.kinds import DOCUMENTS, GRAPHS
from tidings.matching.index.index import Index
from tidings.matching.index.matches import Matches
from tidings.reference_data.enrichment import (
    MOST_ADDED,
    Added,
    Enrichment,
    enriched_body,
    enriched_document,
    enriched_event,
    with_documents,
    with_events,
)

Bytes = npt.NDArray[np.uint8]
Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class DecodedPublications:
    """Publications as atoms, their ids (null where they have none), and the places of those that were refused.

    `added` is what reference tables add to publications, by place. `plain` are those that are matched without it, since
    it would make them too large.
    """

    atoms: Atoms
    ids: Any
    rejects: Sequence[tuple[int, PublicationError]]
    added: Mapping[int, list[Added]] = field(default_factory=dict)
    plain: Sequence[tuple[int, PublicationError]] = ()

    @property
    def problems(self) -> Sequence[tuple[int, PublicationError]]:
        """All that has to be told of."""
        return [*self.rejects, *self.plain]

    def match(self, index: Index) -> Iterator[Matches]:
        """The matches of the publications that were not refused, in parts of bounded size, publications in order.

        A refused event has no atoms, which is just what `not exists price` asks for: it must not get that far.
        """
        usable = np.ones(self.atoms.count, bool)
        usable[[place for place, _ in self.rejects]] = False
        for first, matches in index.match_parts(self.atoms):
            if self.rejects:
                matches = matches.select(usable[first:])
            yield matches.shift(first)


class Decoder:
    """Decodes events at the paths that somebody asks about, and finds their ids; decodes documents and graphs, which
    have none.

    With an event schema every event is checked against it; one that breaks a rule is refused. What reference tables add
    comes afterwards: the schema is about what publishers say. Without `labels` an event that is not for everybody is
    refused, too.
    """

    def __init__(
        self,
        paths: Iterable[str],
        schema: EventSchema | None = None,
        id_field: str | None = None,
        enrichment: Enrichment | None = None,
        graphs: GraphReader | None = None,
        labels: bool = True,
    ) -> None:
        self._labels = labels
        self._graph_reader = graphs or GraphReader((), Taxonomy())
        self._enrichment = enrichment or Enrichment(())
        paths = (*paths, *self._enrichment.attributes)
        self._schema = schema
        self._id_field = id_field
        self._conformity = Conformity(schema, paths, id_field) if schema and schema.event_types else None
        self._paths = self._conformity.paths if self._conformity else PathTable(paths)
        self._tag_paths = TagPaths()

    def decode(self, media_type: str, buffer: Bytes, starts: Integers, ends: Integers) -> DecodedPublications:
        """The publications `buffer[starts[i]:ends[i]]`, all of one media type; one that is refused has no atoms."""
        if media_type in DOCUMENTS:
            return self._documents(buffer, starts, ends)
        if media_type in GRAPHS:
            return self._graphs(media_type, buffer, starts, ends)
        found = decode_many(buffer, starts, ends, self._paths, self._id_field, self._conformity, self._labels)
        added, plain = self._added(found.atoms, are_documents=False)
        atoms = with_events(found.atoms, added) if added else found.atoms
        return DecodedPublications(atoms, found.ids, found.rejects, added, plain)

    def _added(
        self, atoms: Atoms, are_documents: bool
    ) -> tuple[dict[int, list[Added]], list[tuple[int, PublicationError]]]:
        """What is added to publications, and which of them would get too much."""
        found = self._enrichment.found(atoms, are_documents)
        many = [place for place, rows in found.items() if len(rows) > MOST_ADDED]
        return found, [(place, _too_many(found.pop(place))) for place in many]

    def _documents(self, buffer: Bytes, starts: Integers, ends: Integers) -> DecodedPublications:
        found = decode_documents(buffer, starts, ends, self._tag_paths)
        ids = pa.nulls(len(starts), pa.string())
        added, plain = self._added(found.atoms, are_documents=True)
        if not added:
            return DecodedPublications(found.atoms, ids, found.rejects, plain=plain)
        where = np.array(sorted(added), np.int64)
        again = self._enriched([_body(buffer, starts[i], ends[i]) for i in where], [added[i] for i in where])
        plain += [(int(where[i]), _too_much(problem)) for i, problem in again.rejects]
        which = np.setdiff1d(np.arange(len(where)), [i for i, _ in again.rejects])
        atoms = with_documents(found.atoms, where[which], again.atoms, which)
        return DecodedPublications(atoms, ids, found.rejects, {int(i): added[i] for i in where[which]}, plain)

    def _enriched(self, bodies: Sequence[bytes], added: Sequence[list[Added]]) -> DecodedDocuments:
        """Documents with what is added to them, decoded."""
        enriched = [enriched_body(body, rows) for body, rows in zip(bodies, added, strict=True)]
        ends = np.cumsum([len(body) for body in enriched], dtype=np.int64)
        starts = np.concatenate([np.zeros(1, np.int64), ends[:-1]])
        buffer = np.frombuffer(b"".join(enriched), np.uint8)
        return decode_documents(buffer, starts, ends, self._tag_paths)

    def _graphs(
        self, media_type: str, buffer: Bytes, starts: Integers, ends: Integers
    ) -> DecodedPublications:
        graphs: list[Graph] = []
        rejects: list[tuple[int, PublicationError]] = []
        for place in range(len(starts)):
            try:
                graphs.append(rdf_decoder.decode(_body(buffer, starts[place], ends[place]), media_type))
            except PublicationError as problem:
                graphs.append(Graph(()))
                rejects.append((place, problem))
        return DecodedPublications(
            self._graph_reader.atoms(graphs), pa.nulls(len(starts), pa.string()), rejects
        )

    def event(self, body: bytes, added: Sequence[Added] = ()) -> Event:
        """One event in its readable form, whole."""
        return enriched_event(json_decoder.decode(body, self._schema, self._id_field), added)

    def document(self, body: bytes, added: Sequence[Added] = ()) -> Node:
        """One document in its readable form."""
        return enriched_document(xml_decoder.decode(body), added)


def _body(buffer: Bytes, start: int, end: int) -> bytes:
    body: bytes = buffer[start:end].tobytes()
    return body


def _too_many(rows: list[Added]) -> DecodeProblem:
    return _too_much(
        DecodeProblem(
            "the publication has too many rows",
            received=f"{len(rows):,} rows or more",
            accepted=f"at most {MOST_ADDED:,} rows of reference tables",
        )
    )


def _too_much(problem: PublicationError) -> DecodeProblem:
    """What is said of a publication that is matched as it came. Places are of bytes that nobody has: no place."""
    return DecodeProblem(
        f"matched without reference data, because with it {problem.what}",
        received=problem.received,
        accepted=problem.accepted,
    )
