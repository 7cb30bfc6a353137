"""The metadata log as a source of Structured Streaming, and the tasks that read it.

An offset of the source is a position in the log. Entries that were applied before are skipped when a batch is planned:
a stream that starts after a year does not read the year. When entries are applied, it is checked again.

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
from itertools import pairwise
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader

from tidings.errors import InputError
from tidings.matching.index.index import Index
from tidings.metadata.documents import Document, DocumentReader
from tidings.metadata.filter.trigger_index import TriggerIndex
from tidings.metadata.log import Operation
from tidings.metadata.resources import resource_from_json, resource_to_json
from tidings.metadata.schema.schema_parser import parse_schema_file
from tidings.metadata.sql.log_rows import LogTrimmed
from tidings.metadata.sql.resource_rows import check_document
from tidings.spark.sources.admission_control import Offset
from tidings.spark.sources.position_reader import (
    PositionRange,
    PositionReader,
    build_record_batches,
    hold_lock,
    open_shared_store,
)
from tidings.spark.stream.budget import DEFAULT_BUDGET, Budget, BudgetWatch, StepPhase
from tidings.spark.stream.match_task import ROWS, cut_steps
from tidings.spark.worker_gc import freeze_memory

ENTRIES_PER_TASK = 250
"""Documents per task: parsing one takes tens of times as long as an event, so few are worth a task."""

LOG_COLUMNS = "position long, what string, uri string, media_type string, body binary"
LOG_ARROW_SCHEMA = pa.schema(
    [
        ("position", pa.int64()),
        ("what", pa.string()),
        ("uri", pa.string()),
        ("media_type", pa.string()),
        ("body", pa.binary()),
    ]
)
LogRow = tuple[int, str, str, str, bytes]


class MetadataLogReader(PositionReader):
    """Reader of a store's metadata log."""

    def __init__(self, options: Any) -> None:
        super().__init__(options)
        self._url = options["store_url"]

    def head(self) -> int:
        return open_shared_store(self._url).metadata.log.head()

    def next_offset(self, start: Offset) -> Offset:
        applied = self._applied_position(start["position"])
        if self._target is not None:  # entries that others apply meanwhile must not keep `--once` from ending
            applied = max(start["position"], min(applied, self._target))
        return super().next_offset({"position": applied})

    def ranges(self, start: Offset, end: Offset) -> Sequence[PositionRange]:
        hold_lock(self._lock)
        upto = end["position"]
        after = min(upto, self._applied_position(start["position"]))
        return [PositionRange(*cut) for cut in pairwise([*range(after, upto, ENTRIES_PER_TASK), upto])]

    def rows(self, part: Any) -> Iterator[LogRow]:
        """Read the entries of a range. Some may have been applied and trimmed since the batch was planned."""
        log, after = open_shared_store(self._url).metadata.log, part.after
        while after < part.upto:
            try:
                entries = log.read(after, part.upto - after)
            except LogTrimmed:
                after = log.first() - 1
                continue
            for each in entries:
                yield each.position, each.what.value, each.uri, each.media_type, each.body
            return

    def read(self, partition: Any) -> Iterator[Any]:
        return build_record_batches(self.rows(partition), LOG_ARROW_SCHEMA)

    def _applied_position(self, position: int) -> int:
        """Return the position before the first entry that may have to be applied."""
        return max(position, open_shared_store(self._url).metadata.position())


class MetadataLogSource(DataSource):  # type: ignore[misc]
    """The format `tidings_metadata_log`."""

    @classmethod
    def name(cls) -> str:
        return "tidings_metadata_log"

    def schema(self) -> str:
        return LOG_COLUMNS

    def streamReader(self, schema: Any) -> DataSourceStreamReader:
        return MetadataLogReader(self.options)


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
    return _opened(job.media_type, job.schema, job.index, job.version)


@lru_cache(maxsize=2)
def _opened(media_type: str, schema: bytes, index: str, version: int) -> tuple[DocumentReader, TriggerIndex]:
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
    found: list[list[int]] = [[] for _ in document.resources]
    for place, rule in zip(places, rules, strict=True):
        found[place].append(rule)
    return DocumentResult(position, document, found)
