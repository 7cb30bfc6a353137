"""Bytes to atoms inside a task, checked against a schema if there is one, and their matches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidings.atoms import Atoms, Event
from tidings.errors import PublicationError
from tidings.matching.index import Index, Matches
from tidings.publications import event
from tidings.publications.conformity import Conformity
from tidings.publications.json_lines import PathTable, decode_many
from tidings.publications.media_types import DOCUMENTS
from tidings.publications.xml_columns import TagPaths, decode_documents
from tidings.schema.event_schema import EventSchema

Bytes = npt.NDArray[np.uint8]
Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Decoded:
    """Publications as atoms, their ids (null where they have none), and the places of those that were refused."""

    atoms: Atoms
    ids: Any
    rejects: Sequence[tuple[int, PublicationError]]

    def match(self, index: Index) -> Iterator[tuple[npt.NDArray[np.int32], Matches]]:
        """The matches of the publications that were not refused, in parts of bounded size, publications in order.

        With them, which publication each match is of. A refused event has no atoms, which is just what
        `not exists price` asks for: it must not get that far.
        """
        usable = np.ones(self.atoms.count, bool)
        usable[[place for place, _ in self.rejects]] = False
        for first, matches in index.match_parts(self.atoms):
            if self.rejects:
                matches = matches.only(usable[first:])
            yield matches.publication + np.int32(first) if first else matches.publication, matches


class Decoder:
    """Decodes events at the paths that somebody asks about, and finds their ids; decodes documents, which have none.

    With an event schema every event is checked against it; one that breaks a rule is refused.
    """

    def __init__(
        self, paths: Iterable[str], schema: EventSchema | None = None, id_field: str | None = None
    ) -> None:
        self._schema = schema
        self._id_field = id_field
        self._conformity = Conformity(schema, paths, id_field) if schema and schema.event_types else None
        self._paths = self._conformity.paths if self._conformity else PathTable(paths)
        self._tag_paths = TagPaths()

    def decode(self, media_type: str, buffer: Bytes, starts: Integers, ends: Integers) -> Decoded:
        """The publications `buffer[starts[i]:ends[i]]`, all of one media type; one that is refused has no atoms."""
        if media_type in DOCUMENTS:
            documents = decode_documents(buffer, starts, ends, self._tag_paths)
            return Decoded(documents.atoms, pa.nulls(len(starts), pa.string()), documents.rejects)
        found = decode_many(buffer, starts, ends, self._paths, self._id_field, self._conformity)
        return Decoded(found.atoms, found.ids, found.rejects)

    def event(self, body: bytes) -> Event:
        """One event in its readable form, whole."""
        return event.decode(body, self._schema, self._id_field)
