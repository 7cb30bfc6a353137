"""Tasks that read batches of the metadata log.

A task parses and checks documents, and finds the triggering rules they satisfy. Its results depend on the entries, the
schema and the rules only, not on stored metadata: so they stay valid whatever is registered in between. They go into a
file that the driver applies. A document that cannot be parsed is not in the file: the driver parses it again, and
reports the error. One that exceeds the budget of a worker is isolated and not parsed again.
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
from tidings.matching.index.index import Index
from tidings.metadata.documents import Document, DocumentReader
from tidings.metadata.filter.trigger_index import TriggerIndex
from tidings.metadata.log import Operation
from tidings.metadata.resources import resource_from_json, resource_to_json
from tidings.metadata.schema.schema_parser import parse_schema_file
from tidings.metadata.sql.resource_rows import check_document
from tidings.spark.stream.budget import DEFAULT_BUDGET, Budget, BudgetWatch, StepPhase
from tidings.spark.stream.match_output import ROWS
from tidings.spark.stream.match_task import cut_steps
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
    """The common input of the tasks of a batch: the schema file, the rules, and the folder of results.

    Entries at the positions `refused` are skipped. A step has at most `together` entries.
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
    """The report of a task: the last position, the number of entries, and the file with its results."""

    last: int = 0
    entries: int = 0
    file: str = ""


@dataclass(frozen=True, slots=True)
class DocumentResult:
    """A parsed document with its position; for each resource, the numbers of the rules it satisfies."""

    position: int
    document: Document
    rules: Sequence[Sequence[int]]


def build_metadata_stage(job: MetadataJob | None) -> Callable[[Iterable[Any]], Iterator[Any]]:
    """Return the function for `mapInArrow`: entries in, a JSON report out. Without a job, entries are counted."""

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
                        file.write_batch(_match_entries(job, step, watch))
                        watch.rest()
        yield pa.RecordBatch.from_pydict({"report": [json.dumps(asdict(report))]})

    return run


def build_warmup_stage(job: MetadataJob | None) -> Callable[[Iterable[Any]], Iterator[Any]]:
    """Return the function for `mapInArrow` that only warms up a worker."""

    def run(batches: Iterable[Any]) -> Iterator[Any]:
        if job is not None:
            _open(job)
        for _ in batches:
            pass
        yield pa.RecordBatch.from_pydict({"done": [True]})

    return run


def _open(job: MetadataJob) -> tuple[DocumentReader, TriggerIndex]:
    return _open_index(job.media_type, job.schema, job.index, job.version)


@lru_cache(maxsize=2)
def _open_index(
    media_type: str, schema: bytes, index: str, version: int
) -> tuple[DocumentReader, TriggerIndex]:
    """Kept from task to task."""
    checked = parse_schema_file(schema, media_type)
    return DocumentReader(checked), TriggerIndex(checked, Index.open(index, version))


def _match_entries(job: MetadataJob, batch: Any, watch: BudgetWatch) -> Any:
    reader, triggers = _open(job)
    first, last = batch["position"][0].as_py(), batch["position"][-1].as_py()
    watch.step(StepPhase.DECODE, first, last)
    rows = [row for row in batch.to_pylist() if row["position"] not in job.refused]
    documents = [(row["position"], document) for row in rows if (document := _parse_entry(reader, row))]
    watch.step(StepPhase.MATCH, first, last)
    owners = [(n, index) for n, (_, each) in enumerate(documents) for index in range(len(each.resources))]
    indexes: list[list[int]] = [[] for _ in documents]
    rules: list[list[int]] = [[] for _ in documents]
    for number, rule in triggers.satisfied_at([one for _, each in documents for one in each.resources]):
        n, index = owners[number]
        indexes[n].append(index)
        rules[n].append(rule)
    columns = {
        "position": [position for position, _ in documents],
        "uri": [document.uri for _, document in documents],
        "resources": [
            json.dumps(list(map(resource_to_json, document.resources))) for _, document in documents
        ],
        "places": indexes,
        "rules": rules,
    }
    return pa.RecordBatch.from_pydict(columns, schema=TASK_RESULT_SCHEMA)


def _parse_entry(reader: DocumentReader, row: dict[str, Any]) -> Document | None:
    """Parse the document of an entry; None if it is not a valid registration."""
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
    """Parse a row of the file."""
    document = Document(uri, tuple(map(resource_from_json, json.loads(resources))))
    rules_by_place: list[list[int]] = [[] for _ in document.resources]
    for place, rule in zip(places, rules, strict=True):
        rules_by_place[place].append(rule)
    return DocumentResult(position, document, rules_by_place)
