"""Documents as rows for the joins: read by Spark's tasks, enriched with reference tables, and parsed.

A row of `read_documents` is a document (publication, body) or a problem: an unreadable file, a publication that is not
a document, or a document that would be too large when enriched, which is matched as published.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import islice
from math import isnan
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from tidings.atoms import Atoms
from tidings.documents import xml_decoder
from tidings.documents.kind import DOCUMENTS
from tidings.documents.model import Node, show_node, steps_of, xpath_number
from tidings.documents.reader import DocumentReader
from tidings.documents.tag_paths import TagPaths
from tidings.documents.xml_batch_decoder import decode_documents
from tidings.errors import DecodeProblem, PublicationError
from tidings.kinds import Environment
from tidings.reference_data.enrichment import Enrichment, Snapshot, enrich_body
from tidings.relational.linear_match import PathMatch
from tidings.relational.tables import Version
from tidings.spark.sources.blocks import Block, UnreadableFile, read_blocks
from tidings.spark.sources.chunks import ChunkList, plan_chunks
from tidings.spark.sources.files import Location

COLUMNS = "publication string, body binary, problem string"

Rows = list[tuple[str, bytes | None, str | None]]


def read_documents(
    session: SparkSession, publications: str | Path, references: tuple[Snapshot, ...], work: Location
) -> DataFrame:
    """Read the files of a folder, a document each; the list of files is in the working folder."""
    chunks = plan_chunks(publications)
    listed = ChunkList.write(Location(f"{work.uri}/chunks.json"), chunks)
    numbers = session.range(0, len(chunks), 1, len(chunks))
    return numbers.mapInArrow(_read_stage(Location.of(publications).uri, listed, references), COLUMNS)


def _read_stage(
    publications: str, listed: ChunkList, references: tuple[Snapshot, ...]
) -> Callable[[Iterable[Any]], Iterator[Any]]:
    """Return the function for `mapInArrow`: numbers of chunks in, rows out."""

    def run(batches: Iterable[Any]) -> Iterator[Any]:
        files = Location(publications).files
        for batch in batches:
            for number in batch.column(0).to_pylist():
                for block in read_blocks(files, listed.read(number)):
                    yield _batch(_rows(block, references))

    return run


def _rows(block: Block | UnreadableFile, references: tuple[Snapshot, ...]) -> Rows:
    if isinstance(block, UnreadableFile):
        return [(block.file, None, _problem_json(DecodeProblem(block.reason)))]
    names = block.names().to_pylist()
    if block.media_type not in DOCUMENTS.media_types:
        return [(name, None, _problem_json(_no_document(block.media_type))) for name in names]
    bodies = [block.buffer[start:end].tobytes() for start, end in zip(block.starts, block.ends, strict=True)]
    problems = _enrich(bodies, block, references) if references else []
    documents: Rows = [(name, body, None) for name, body in zip(names, bodies, strict=True)]
    return documents + [(names[place], None, _problem_json(problem)) for place, problem in problems]


def _enrich(
    bodies: list[bytes], block: Block, references: tuple[Snapshot, ...]
) -> Iterable[tuple[int, PublicationError]]:
    """Enrich the bodies with reference tables; return the problems of those that would become too large."""
    decoded = _reader(references).decode(block.media_type, block.buffer, block.starts, block.ends)
    for place, rows in decoded.added.items():
        bodies[place] = enrich_body(bodies[place], rows)
    return decoded.plain


@lru_cache(maxsize=2)
def _reader(references: tuple[Snapshot, ...]) -> DocumentReader:
    """Cached, because a worker process runs many tasks."""
    return DocumentReader(Environment(enrichment=Enrichment(references)))


def _no_document(media_type: str) -> DecodeProblem:
    return DecodeProblem(
        "the relational engine only supports documents",
        received=media_type,
        accepted=", ".join(sorted(DOCUMENTS.media_types)),
        hint="--engine index supports events, too",
    )


def _problem_json(problem: PublicationError) -> str:
    return json.dumps({"reason": problem.headline(), "facts": problem.facts()})


def _batch(rows: Rows) -> Any:
    names, bodies, problems = zip(*rows, strict=True) if rows else ((), (), ())
    columns = [pa.array(names, pa.string()), pa.array(bodies, pa.binary()), pa.array(problems, pa.string())]
    return pa.RecordBatch.from_arrays(columns, ["publication", "body", "problem"])


# SAX_Parse_Result (section 3.3): each node that some linear path selects is a row with its tag path, id path and value.
# Beyond the paper, elements have rows, too, because an XPath may ask for them or compare them. Nodes are numbered in
# document order: an element, its attributes, its content. Every document has one more row, without a tag path, which
# tells that the document was read, or why not.


NODE_COLUMNS = ("event_id", "tagpath", "idpath", "value", "number", "problem")
SCHEMA = pa.schema(
    [(name, pa.float64() if name == "number" else pa.string()) for name in NODE_COLUMNS],
)
SPARK_SCHEMA = ", ".join(f"{name} {'double' if name == 'number' else 'string'}" for name in NODE_COLUMNS)

ROWS = 10_000
"""Rows per batch for Spark."""


class Row(NamedTuple):
    """A node; `number` is null for other values. `problem` is the JSON of a reason and its facts."""

    event_id: str
    tagpath: str | None = None
    idpath: str | None = None
    value: str | None = None
    number: float | None = None
    problem: str | None = None


class WantedPaths:
    """The tag paths that some linear path selects, computed once for each."""

    def __init__(self, linear: Iterable[str]) -> None:
        self._match = PathMatch()
        for path in linear:
            self._match.add_linear(path)
        self._known: dict[str, bool] = {}

    def __contains__(self, tagpath: str) -> bool:
        if tagpath not in self._known:
            self._known[tagpath] = next(self._match.at(steps_of(tagpath)), None) is not None
        return self._known[tagpath]


def parse(event_id: str, body: bytes, wanted: WantedPaths) -> Iterator[Row]:
    """Yield the rows of a document: the reference version."""
    try:
        document = xml_decoder.decode(body)
    except DecodeProblem as problem:
        yield Row(event_id, problem=_problem_json(problem))
        return
    yield Row(event_id)
    yield from rows_of(event_id, document, wanted)


def rows_of(event_id: str, document: Node, wanted: WantedPaths) -> Iterator[Row]:
    """Yield the rows of the wanted nodes in document order."""
    last = 0
    ahead = [(document, "", "")]
    while ahead:
        node, tags, ids = ahead.pop()
        last += 1
        tagpath, idpath = f"{tags}/{show_node(node.kind, node.name)}", f"{ids}.{last}" if ids else str(last)
        if tagpath in wanted:
            yield Row(event_id, tagpath, idpath, node.value, _number(node.value))
        ahead.extend((child, tagpath, idpath) for child in reversed(node.children))


def parse_many(
    event_ids: Sequence[str], bodies: Sequence[bytes], wanted: WantedPaths, table: TagPaths
) -> Iterator[Row]:
    """Yield the rows of many documents, without an object for each node."""
    ends = np.cumsum([len(body) for body in bodies], dtype=np.int64)
    starts = np.concatenate([np.zeros(1, np.int64), ends])[:-1]
    decoded = decode_documents(np.frombuffer(b"".join(bodies), np.uint8), starts, ends, table)
    refused = {place: _problem_json(problem) for place, problem in decoded.rejects}
    yield from (Row(event_id, problem=refused.get(place)) for place, event_id in enumerate(event_ids))
    yield from _rows_of_atoms(event_ids, decoded.atoms, wanted)


def _rows_of_atoms(event_ids: Sequence[str], atoms: Atoms, wanted: WantedPaths) -> Iterator[Row]:
    mask = np.array([path in wanted for path in atoms.paths], np.bool_)
    places = np.flatnonzero(mask[atoms.path]) if len(mask) else np.empty(0, np.int64)
    documents = np.searchsorted(atoms.starts, places, "right") - 1
    text, parents, known = atoms.text.tobytes(), atoms.parent, dict[int, str]()

    def idpath(place: int, first: int) -> str:
        if place not in known:
            above = int(parents[place])
            own = str(place - first + 1)
            known[place] = own if above < 0 else f"{idpath(first + above, first)}.{own}"
        return known[place]

    for place, document in zip(places.tolist(), documents.tolist(), strict=True):
        at = int(atoms.payload[place])
        value = text[at : at + int(atoms.length[place])].decode()
        ids = idpath(place, int(atoms.starts[document]))
        yield Row(event_ids[document], atoms.paths[atoms.path[place]], ids, value, _number(value))


def _number(value: str) -> float | None:
    number = xpath_number(value)
    return None if isnan(number) else number + 0.0


@lru_cache(maxsize=2)
def _opened(version: Version) -> tuple[WantedPaths, TagPaths]:
    """Cached, because a worker process runs many tasks."""
    paths = version.rows("query_linear_path", ["linearpath"])["linearpath"].to_pylist()
    return WantedPaths(paths), TagPaths()


def stage(version: Version) -> Callable[[Iterable[Any]], Iterator[Any]]:
    """Return the function for `mapInArrow`: documents (publication, body) in, rows out."""

    def run(batches: Iterable[Any]) -> Iterator[Any]:
        wanted, table = _opened(version)
        for batch in batches:
            rows = parse_many(batch.column(0).to_pylist(), batch.column(1).to_pylist(), wanted, table)
            while some := list(islice(rows, ROWS)):
                yield to_batch(some)

    return run


def to_batch(rows: list[Row]) -> Any:
    columns = zip(*rows, strict=True) if rows else ((),) * len(NODE_COLUMNS)
    return pa.RecordBatch.from_arrays(
        [pa.array(column, type) for column, type in zip(columns, SCHEMA.types, strict=True)], schema=SCHEMA
    )
