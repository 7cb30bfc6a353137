"""Documents from files, read by Spark's tasks, with what reference tables add to them.

A row is a document (publication, body), or something to be told of: a file that cannot be read, a publication that is
no document, a document that would be too large with what is added to it and is matched as it was published.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from tidings.errors import DecodeProblem, PublicationError
from tidings.publications.enrichment import Enrichment, Snapshot, enriched_body
from tidings.publications.media_types import DOCUMENTS
from tidings.spark.blocks import Block, Unreadable, read
from tidings.spark.chunks import ChunkList, plan
from tidings.spark.decoding import Decoder
from tidings.spark.locations import Location

COLUMNS = "publication string, body binary, problem string"

Rows = list[tuple[str, bytes | None, str | None]]


def read_documents(
    session: SparkSession, publications: str | Path, references: tuple[Snapshot, ...], work: Location
) -> DataFrame:
    """The files of a folder: a document each. The list of files stands in the working folder."""
    chunks = plan(publications)
    held = ChunkList.write(Location(f"{work.uri}/chunks.json"), chunks)
    numbers = session.range(0, len(chunks), 1, len(chunks))
    return numbers.mapInArrow(_stage(Location.of(publications).uri, held, references), COLUMNS)


def _stage(
    publications: str, held: ChunkList, references: tuple[Snapshot, ...]
) -> Callable[[Iterable[Any]], Iterator[Any]]:
    """The function for `mapInArrow`: numbers of chunks in, rows out."""

    def run(batches: Iterable[Any]) -> Iterator[Any]:
        files = Location(publications).files
        for batch in batches:
            for number in batch.column(0).to_pylist():
                for block in read(files, held.read(number)):
                    yield _batch(_rows(block, references))

    return run


def _rows(block: Block | Unreadable, references: tuple[Snapshot, ...]) -> Rows:
    if isinstance(block, Unreadable):
        return [(block.file, None, _told(DecodeProblem(block.reason)))]
    names = block.names().to_pylist()
    if block.media_type not in DOCUMENTS:
        return [(name, None, _told(_no_document(block.media_type))) for name in names]
    bodies = [block.buffer[start:end].tobytes() for start, end in zip(block.starts, block.ends, strict=True)]
    problems = _enrich(bodies, block, references) if references else []
    documents: Rows = [(name, body, None) for name, body in zip(names, bodies, strict=True)]
    return documents + [(names[place], None, _told(problem)) for place, problem in problems]


def _enrich(
    bodies: list[bytes], block: Block, references: tuple[Snapshot, ...]
) -> Iterable[tuple[int, PublicationError]]:
    """Put what reference tables add into the bodies; those that would become too large are told of."""
    decoded = _decoder(references).decode(block.media_type, block.buffer, block.starts, block.ends)
    for place, rows in decoded.added.items():
        bodies[place] = enriched_body(bodies[place], rows)
    return decoded.plain


@lru_cache(maxsize=2)
def _decoder(references: tuple[Snapshot, ...]) -> Decoder:
    """Kept, because a worker process runs many tasks."""
    return Decoder((), enrichment=Enrichment(references))


def _no_document(media_type: str) -> DecodeProblem:
    return DecodeProblem(
        "the relational engine takes documents only",
        received=media_type,
        accepted=", ".join(sorted(DOCUMENTS)),
        hint="--engine index takes events, too",
    )


def _told(problem: PublicationError) -> str:
    return json.dumps({"reason": problem.headline(), "facts": problem.facts()})


def _batch(rows: Rows) -> Any:
    names, bodies, problems = zip(*rows, strict=True) if rows else ((), (), ())
    columns = [pa.array(names, pa.string()), pa.array(bodies, pa.binary()), pa.array(problems, pa.string())]
    return pa.RecordBatch.from_arrays(columns, ["publication", "body", "problem"])
