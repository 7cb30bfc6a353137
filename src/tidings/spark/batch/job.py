"""Batch job: matches publication files with a subscription file and writes Parquet.

    summary = run_batch_job(session, BatchRequest("subs.jsonl", "events/", "matches.parquet"))

The driver compiles the subscriptions into an index, divides the publications into chunks, and sends each chunk to a
task (`batch_task`). Tasks write their matches as Parquet files to a working folder beside the result; when all have
finished, the driver moves the files into the result.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as NotYet
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Any
from uuid import uuid4

from pyarrow import fs
from pyspark.sql import SparkSession

from tidings.errors import InputError
from tidings.events.schema.event_schema import EventSchema
from tidings.events.schema.files import dump
from tidings.graphs.rdf.media_types import graph_media_type_of
from tidings.graphs.taxonomy import Taxonomy, merged
from tidings.graphs.taxonomy_files import taxonomy_in, write_taxonomy
from tidings.matching.index.index import Index
from tidings.model import Reject
from tidings.reference_data.declarations import Reference
from tidings.reference_data.enrichment import Snapshot
from tidings.reference_data.table_rows import read_stamp
from tidings.spark.batch.batch_task import REPORT_PREFIX, BatchTaskJob, build_batch_stage, load_worker
from tidings.spark.batch.output import (
    TIMED_STEPS,
    ChunkReport,
    check_rejects_file,
    check_separate,
    check_target_free,
    list_names,
    publish_result,
    working_folder,
    write_rejects,
)
from tidings.spark.batch.subscription_file import compile_table, read_subscriptions
from tidings.spark.reference_data import write_snapshots
from tidings.spark.sources.chunks import Chunk, ChunkList, plan_chunks
from tidings.spark.sources.files import Location, list_publications

POLL_SECONDS = 0.2


@dataclass(frozen=True, slots=True)
class BatchRequest:
    """Input and output of a batch job.

    Paths may be URIs that pyarrow supports (`s3://`, `hdfs://`, `gs://`). `rejects` is the file for rejected
    subscriptions and publications. `segments` is a folder for the index while the job runs, visible to all executors
    (default: beside `out`). `references` are tables that publications are joined with before matching, `taxonomies` are
    RDFS files for subscriptions to graphs.
    """

    subscriptions: str | Path
    publications: str | Path
    out: str | Path
    rejects: Path | None = None
    id_field: str = "id"
    schema: EventSchema | None = None
    force: bool = False
    segments: Path | None = None
    references: tuple[Reference, ...] = ()
    taxonomies: tuple[Path, ...] = ()


@dataclass(frozen=True, slots=True)
class IndexBuilt:
    """Event: the index is built. `bytes_each` is the memory per subscription."""

    subscriptions: int
    segments: int
    bytes_each: float
    seconds: float


@dataclass(frozen=True, slots=True)
class BatchProgress:
    """Event: progress of matching. `done` and `total` count bytes of files, or tasks of a job over tables."""

    done: int
    total: int
    events: int
    matches: int
    rejects: int
    seconds: float


@dataclass(frozen=True, slots=True)
class BatchSummary:
    """Result of the job. `task_seconds` are the CPU seconds of all tasks, by step."""

    built: IndexBuilt
    events: int
    matches: int
    rejected_subscriptions: int
    rejected_publications: int
    match_seconds: float
    seconds: float
    task_seconds: dict[str, float] = field(default_factory=dict)
    examples: tuple[Reject, ...] = ()

    @property
    def rejects(self) -> int:
        return self.rejected_subscriptions + self.rejected_publications

    @property
    def events_a_second(self) -> float:
        return self.events / self.match_seconds if self.match_seconds else 0.0


BatchListener = Callable[[IndexBuilt | BatchProgress], None]


def run_batch_job(
    session: SparkSession, request: BatchRequest, listener: BatchListener | None = None
) -> BatchSummary:
    """Match all publications with all subscriptions; report `IndexBuilt`, then progress."""
    began = perf_counter()
    check_request(request)
    out = Location.of(request.out)
    with working_folder(out) as work, _segments_folder(request) as segments:
        with ThreadPoolExecutor(1) as pool:
            planned = pool.submit(_plan, session, request.publications)
            index, built, rejects = _build_index(request, segments)
            notify_listener(listener, built)
            chunks = planned.result()
        tables = write_snapshots(session, request.references, segments / "references")
        taxonomy = write_taxonomy(segments / "taxonomies", merged(*map(_read_taxonomy, request.taxonomies)))
        reports = _run(session, request, index, (tables, taxonomy), work, chunks, listener)
        publish_result(work, out, reports, request.force)
        seconds = perf_counter() - began
        examples = write_rejects(request.rejects, rejects, work, reports)
    return _build_summary(built, rejects, reports, seconds - built.seconds, seconds, examples)


def check_request(request: BatchRequest) -> None:
    """Raise `InputError` for mistakes in a request that can be found before Spark starts."""
    check_separate(request.out, [request.publications, request.subscriptions])
    check_target_free(Location.of(request.out), request.out, request.force)
    check_rejects_file(request.rejects)
    _choose_index_parent(request)
    for reference in request.references:
        if reference.spark_table is None:
            read_stamp(reference)
    merged(*map(_read_taxonomy, request.taxonomies))
    list_publications(request.publications)


def _read_taxonomy(path: Path) -> Taxonomy:
    """Read a taxonomy file."""
    media_type = graph_media_type_of(path.name)
    if media_type is None or not path.is_file():
        raise InputError(
            "not a taxonomy", where=str(path), accepted="a .ttl, .nt, .rdf, .owl or .jsonld file"
        )
    return taxonomy_in(path.read_bytes(), media_type)


def notify_listener(listener: BatchListener | None, event: IndexBuilt | BatchProgress) -> None:
    if listener is not None:
        listener(event)


def _choose_index_parent(request: BatchRequest) -> Path:
    """Return the parent of the index folder: `segments`, or the folder that contains the result."""
    out = Location.of(request.out)
    if request.segments is not None:
        return request.segments
    if isinstance(out.files, fs.LocalFileSystem):
        return Path(out.path).parent
    raise InputError(
        "the index needs a folder that every executor can read",
        where=str(request.out),
        hint="name one with --segments: the index is mapped into memory and cannot be in an object store",
    )


@contextmanager
def _segments_folder(request: BatchRequest) -> Iterator[Path]:
    """Provide a folder for the index while the job runs; tasks map it into memory."""
    place = Location.of(_choose_index_parent(request) / f".segments-{uuid4().hex[:8]}")
    try:
        yield Path(place.path)
    finally:
        if place.files.get_file_info(place.path).type != fs.FileType.NotFound:
            place.files.delete_dir(place.path)


def _build_index(request: BatchRequest, folder: Path) -> tuple[Index, IndexBuilt, list[Reject]]:
    """Build the index of the subscription file; return it with the rejected subscriptions."""
    began = perf_counter()
    file = read_subscriptions(request.subscriptions)
    compiled = compile_table(file.subscriptions, request.schema)
    index = Index.create(folder)
    index.add(compiled)
    bytes_each = index.nbytes / index.size if index.size else 0.0
    built = IndexBuilt(index.size, len(index.describe()), bytes_each, perf_counter() - began)
    return index, built, [*file.rejects, *compiled.rejects]


def _plan(session: SparkSession, publications: str | Path) -> list[Chunk]:
    """Start the Python workers, which takes seconds, and plan chunks while the driver compiles.

    Without a number of partitions Spark makes one for each core, which gives the number of cores.
    """
    cores = len(session.range(1_000).mapInArrow(load_worker, "report string").collect())
    return plan_chunks(publications, cores)


def _run(
    session: SparkSession,
    request: BatchRequest,
    index: Index,
    enrichment: tuple[tuple[Snapshot, ...], str | None],
    work: Location,
    chunks: Sequence[Chunk],
    listener: BatchListener | None,
) -> list[ChunkReport]:
    """Send the chunks to tasks; follow the reports that they write to the working folder."""
    schema = None if request.schema is None or request.schema.is_empty else dump(request.schema)
    publications = Location.of(request.publications).uri
    chunk_list = ChunkList.write(Location(f"{work.uri}/chunks.json"), chunks)
    folder = str(index.folder.absolute())
    job = BatchTaskJob(
        publications, work.uri, chunk_list, folder, index.version, request.id_field, schema, *enrichment
    )
    # One partition per chunk, so that Spark does not shuffle.
    numbers = session.range(0, len(chunks), 1, len(chunks))
    reported = numbers.mapInArrow(build_batch_stage(job), "report string")
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(reported.collect)
        try:
            _follow(running, work, sum(chunk.size for chunk in chunks), listener)
        except BaseException:
            session.interruptAll()
            raise
    return sorted(
        (ChunkReport(**json.loads(row.report)) for row in running.result()), key=lambda report: report.chunk
    )


def _follow(running: Future[Any], work: Location, total: int, listener: BatchListener | None) -> None:
    """Report progress to the listener until the job is done; read each report only once."""
    began, seen = perf_counter(), {}
    while not running.done() and listener is not None:
        try:
            running.result(POLL_SECONDS)
        except NotYet:
            for name in list_names(work):
                if name.startswith(REPORT_PREFIX) and name not in seen:
                    seen[name] = _read_report(work, name)
            listener(_sum_progress([one for one in seen.values() if one], total, perf_counter() - began))
    reports = [ChunkReport(**json.loads(row.report)) for row in running.result()]
    notify_listener(listener, _sum_progress(reports, total, perf_counter() - began))


def _read_report(work: Location, name: str) -> ChunkReport | None:
    """Read a report; return None while it is being written."""
    with work.files.open_input_stream(f"{work.path}/{name}") as file:
        text = file.read()
    return ChunkReport(**json.loads(text)) if text.endswith(b"}") else None


def _sum_progress(reports: Sequence[ChunkReport], total: int, seconds: float) -> BatchProgress:
    done = {report.chunk: report for report in reports}.values()
    return BatchProgress(
        sum(report.bytes for report in done),
        total,
        sum(report.events for report in done),
        sum(report.matches for report in done),
        sum(report.rejects for report in done),
        seconds,
    )


def _build_summary(
    built: IndexBuilt,
    rejects: Sequence[Reject],
    reports: Sequence[ChunkReport],
    match_seconds: float,
    seconds: float,
    examples: tuple[Reject, ...],
) -> BatchSummary:
    seconds_by_part = {part: sum(report.seconds[part] for report in reports) for part in TIMED_STEPS}
    return BatchSummary(
        built,
        sum(report.events for report in reports),
        sum(report.matches for report in reports),
        len(rejects),
        sum(report.rejects for report in reports),
        match_seconds,
        seconds,
        seconds_by_part,
        examples,
    )
