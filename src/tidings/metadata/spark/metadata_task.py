"""What a task of the stream of metadata does: read documents, check them, ask which triggering rules they satisfy.

What it finds follows from the entries of the log, the schema and the rules alone, never from what is stored: so it is
right whenever it is applied, whoever else has registered something in between. It goes into a file, as with the tasks
of `stages`, and the driver applies it. A document that cannot be read is not in the file: the driver reads it once
more, and says why. One that a worker cannot finish within its budget is found by `isolation` and
not read again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa

from tidings.errors import InputError
from tidings.graphs.rdf import rdf_decoder
from tidings.matching.index.index import Index
from tidings.metadata.documents import Document, DocumentReader
from tidings.metadata.filter.trigger_index import TriggerIndex
from tidings.metadata.log import Operation
from tidings.metadata.resources import resource_from_json, resource_to_json
from tidings.metadata.schema.schema_parser import parse_schema
from tidings.metadata.sql.document_changes import check_document
from tidings.spark.stream.budget import DEFAULT_BUDGET, Budget, BudgetWatch, StepPhase
from tidings.spark.stream.match_task import ROWS, cut_steps
from tidings.spark.worker_gc import freeze_memory

TASK_RESULT_SCHEMA = pa.schema(
    [
        ("position", pa.int64()),
        ("uri", pa.string()),
        ("resources", pa.string()),
        ("places", pa.list_(pa.int32())),
        ("rules", pa.list_(pa.int64())),
    ]
)


@dataclass(frozen=True, slots=True)
class MetadataJob:
    """What the tasks of a batch have in common: the schema as it was loaded, the rules, and where their files go.

    Entries at the positions `refused` are not touched. A step has at most `together` of them.
    """

    media_type: str
    schema: bytes
    index: str
    version: int
    results: str
    budget: Budget = DEFAULT_BUDGET
    refused: frozenset[int] = frozenset()
    together: int = ROWS


@dataclass(slots=True)
class MetadataTaskReport:
    """What a task has looked at: the last position, how many entries, and the file with what it found."""

    last: int = 0
    entries: int = 0
    file: str = ""


@dataclass(frozen=True, slots=True)
class DocumentResult:
    """A document that was read, and where in the log; for each resource, the numbers of the rules that it satisfies."""

    position: int
    document: Document
    rules: Sequence[Sequence[int]]


def build_metadata_stage(job: MetadataJob | None) -> Callable[[Iterable[Any]], Iterator[Any]]:
    """The function for `mapInArrow`: entries in, one report in JSON out. Without a job, entries are only counted."""

    def run(batches: Iterable[Any]) -> Iterator[Any]:
        freeze_memory()
        report = MetadataTaskReport()
        with ExitStack() as files:
            for batch in filter(len, batches):
                report.last = max(report.last, batch["position"][-1].as_py())
                report.entries += batch.num_rows
                if job is not None:
                    if not report.file:
                        report.file = str(Path(job.results) / f"read-{uuid4().hex}.arrow")
                        file = files.enter_context(pa.ipc.new_stream(report.file, TASK_RESULT_SCHEMA))
                        _open(job)
                        watch = files.enter_context(BudgetWatch(job.budget, Path(job.results)))
                    for step in cut_steps(batch, job.together):
                        file.write_batch(_found(job, step, watch))
                        watch.rest()
        yield pa.RecordBatch.from_pydict({"report": [json.dumps(asdict(report))]})

    return run


def build_warmup_stage(job: MetadataJob | None) -> Callable[[Iterable[Any]], Iterator[Any]]:
    """The function for `mapInArrow` that opens what tasks open, and reads nothing."""

    def run(batches: Iterable[Any]) -> Iterator[Any]:
        if job is not None:
            _open(job)
        for _ in batches:
            pass
        yield pa.RecordBatch.from_pydict({"done": [True]})

    return run


def _open(job: MetadataJob) -> tuple[DocumentReader, TriggerIndex]:
    return _opened(job.media_type, job.schema, job.index, job.version)


@lru_cache(maxsize=2)
def _opened(media_type: str, schema: bytes, index: str, version: int) -> tuple[DocumentReader, TriggerIndex]:
    """Kept from task to task."""
    checked = parse_schema(rdf_decoder.decode(schema, media_type))
    return DocumentReader(checked), TriggerIndex(checked, Index.open(index, version))


def _found(job: MetadataJob, batch: Any, watch: BudgetWatch) -> Any:
    reader, triggers = _open(job)
    first, last = batch["position"][0].as_py(), batch["position"][-1].as_py()
    watch.step(StepPhase.DECODE, first, last)
    rows = [row for row in batch.to_pylist() if row["position"] not in job.refused]
    read = [(row["position"], document) for row in rows if (document := _document(reader, row))]
    watch.step(StepPhase.MATCH, first, last)
    owners = [(n, place) for n, (_, each) in enumerate(read) for place in range(len(each.resources))]
    places: list[list[int]] = [[] for _ in read]
    rules: list[list[int]] = [[] for _ in read]
    for at, rule in triggers.satisfied_at([one for _, each in read for one in each.resources]):
        n, place = owners[at]
        places[n].append(place)
        rules[n].append(rule)
    columns = (
        [position for position, _ in read],
        [document.uri for _, document in read],
        [json.dumps([resource_to_json(each) for each in document.resources]) for _, document in read],
        places,
        rules,
    )
    arrays = [pa.array(column, field.type) for column, field in zip(columns, TASK_RESULT_SCHEMA, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=TASK_RESULT_SCHEMA)


def _document(reader: DocumentReader, row: dict[str, Any]) -> Document | None:
    """The document of an entry that registers one which can be read."""
    if row["what"] != Operation.REGISTER.value:
        return None
    try:
        document = reader.read(row["body"], row["media_type"], row["uri"])
        check_document(document)
        return document
    except InputError:
        return None


def document_result_from_row(
    position: int, uri: str, resources: str, places: Sequence[int], rules: Sequence[int]
) -> DocumentResult:
    """What a row of the file says."""
    document = Document(uri, tuple(map(resource_from_json, json.loads(resources))))
    found: list[list[int]] = [[] for _ in document.resources]
    for place, rule in zip(places, rules, strict=True):
        found[place].append(rule)
    return DocumentResult(position, document, found)
