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
from tidings.matching.index import Index
from tidings.metadata.as_json import from_json, to_json
from tidings.metadata.documents import Document, Reader
from tidings.metadata.log import What
from tidings.metadata.schema_reading import read_schema
from tidings.metadata.triggers import Triggers
from tidings.publications import rdf
from tidings.spark.budget import DEFAULT_BUDGET, Budget, Phase, Watch
from tidings.spark.stages import ROWS, steps
from tidings.spark.workers import settle
from tidings.store.registering import check_document

FOUND = pa.schema(
    [
        ("position", pa.int64()),
        ("uri", pa.string()),
        ("resources", pa.string()),
        ("places", pa.list_(pa.int32())),
        ("rules", pa.list_(pa.int64())),
    ]
)


@dataclass(frozen=True, slots=True)
class Job:
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
class Report:
    """What a task has looked at: the last position, how many entries, and the file with what it found."""

    last: int = 0
    entries: int = 0
    file: str = ""


@dataclass(frozen=True, slots=True)
class Reading:
    """A document that was read, and where in the log; for each resource, the numbers of the rules that it satisfies."""

    position: int
    document: Document
    rules: Sequence[Sequence[int]]


def stage(job: Job | None) -> Callable[[Iterable[Any]], Iterator[Any]]:
    """The function for `mapInArrow`: entries in, one report in JSON out. Without a job, entries are only counted."""

    def run(batches: Iterable[Any]) -> Iterator[Any]:
        settle()
        report = Report()
        with ExitStack() as files:
            for batch in filter(len, batches):
                report.last = max(report.last, batch["position"][-1].as_py())
                report.entries += batch.num_rows
                if job is not None:
                    if not report.file:
                        report.file = str(Path(job.results) / f"read-{uuid4().hex}.arrow")
                        file = files.enter_context(pa.ipc.new_stream(report.file, FOUND))
                        _open(job)
                        watch = files.enter_context(Watch(job.budget, Path(job.results)))
                    for step in steps(batch, job.together):
                        file.write_batch(_found(job, step, watch))
                        watch.rest()
        yield pa.RecordBatch.from_pydict({"report": [json.dumps(asdict(report))]})

    return run


def control(job: Job | None) -> Callable[[Iterable[Any]], Iterator[Any]]:
    """The function for `mapInArrow` that opens what tasks open, and reads nothing."""

    def run(batches: Iterable[Any]) -> Iterator[Any]:
        if job is not None:
            _open(job)
        for _ in batches:
            pass
        yield pa.RecordBatch.from_pydict({"done": [True]})

    return run


def _open(job: Job) -> tuple[Reader, Triggers]:
    return _opened(job.media_type, job.schema, job.index, job.version)


@lru_cache(maxsize=2)
def _opened(media_type: str, schema: bytes, index: str, version: int) -> tuple[Reader, Triggers]:
    """Kept from task to task."""
    checked = read_schema(rdf.decode(schema, media_type))
    return Reader(checked), Triggers(checked, Index.open(index, version))


def _found(job: Job, batch: Any, watch: Watch) -> Any:
    reader, triggers = _open(job)
    first, last = batch["position"][0].as_py(), batch["position"][-1].as_py()
    watch.step(Phase.DECODE, first, last)
    rows = [row for row in batch.to_pylist() if row["position"] not in job.refused]
    read = [(row["position"], document) for row in rows if (document := _document(reader, row))]
    watch.step(Phase.MATCH, first, last)
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
        [json.dumps([to_json(each) for each in document.resources]) for _, document in read],
        places,
        rules,
    )
    arrays = [pa.array(column, field.type) for column, field in zip(columns, FOUND, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=FOUND)


def _document(reader: Reader, row: dict[str, Any]) -> Document | None:
    """The document of an entry that registers one which can be read."""
    if row["what"] != What.REGISTER.value:
        return None
    try:
        document = reader.read(row["body"], row["media_type"], row["uri"])
        check_document(document)
        return document
    except InputError:
        return None


def reading(position: int, uri: str, resources: str, places: Sequence[int], rules: Sequence[int]) -> Reading:
    """What a row of the file says."""
    document = Document(uri, tuple(map(from_json, json.loads(resources))))
    found: list[list[int]] = [[] for _ in document.resources]
    for place, rule in zip(places, rules, strict=True):
        found[place].append(rule)
    return Reading(position, document, found)
