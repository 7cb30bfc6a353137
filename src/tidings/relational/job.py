"""Batch job of the relational engine: a file of XPaths, files of XML, Parquet out.

    summary = run(session, BatchRequest("subs.jsonl", "documents/", "matches.parquet"), Layout(Plan.UNROLL))
    summary = run_with_tables(session, BatchRequest("tables/", "documents/", "matches.parquet"))

Request and result are those of `spark.batch`. The driver shreds the subscriptions into tables beside the result, unless
there are tables already; it matches all documents with them in one batch, and moves the output into place.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from shutil import rmtree
from time import perf_counter
from uuid import uuid4

import pyarrow.parquet as pq
from pyarrow import fs
from pyspark.sql import DataFrame, SparkSession

from tidings.model import Reject
from tidings.relational.engine import Outcome, matching
from tidings.relational.reader import read_documents
from tidings.relational.subscription_import import import_subscriptions
from tidings.relational.table_store import TableStore, hold_tables
from tidings.relational.tables import Layout
from tidings.spark.batch.job import (
    BatchListener,
    BatchRequest,
    BatchSummary,
    IndexBuilt,
    check_request,
    notify_listener,
)
from tidings.spark.batch.output import ChunkReport, publish_result, working_folder, write_rejects
from tidings.spark.reference_data import write_snapshots
from tidings.spark.sources.files import Location

REJECTS = "rejects-00000-relational.jsonl"


def run(
    session: SparkSession, request: BatchRequest, layout: Layout, listener: BatchListener | None = None
) -> BatchSummary:
    """Match all documents with all subscriptions; `listener` is notified when the tables are written."""
    began = perf_counter()
    check_request(request)
    with working_folder(Location.of(request.out)) as work, _tables_folder(request, work) as folder:
        store, built, refused = _build(session, request, folder, layout)
        notify_listener(listener, built)
        return _match(session, request, store, built, refused, work, folder, began)


def run_with_tables(session: SparkSession, request: BatchRequest) -> BatchSummary:
    """Match all documents with the subscriptions of tables: their folder is the `subscriptions` of the request."""
    began = perf_counter()
    check_request(request)
    with (
        hold_tables(request.subscriptions) as store,
        working_folder(Location.of(request.out)) as work,
        _tables_folder(request, work) as folder,
    ):
        built = _describe(store, perf_counter() - began)
        return _match(session, request, store, built, [], work, folder, began)


def _match(
    session: SparkSession,
    request: BatchRequest,
    store: TableStore,
    built: IndexBuilt,
    refused: list[Reject],
    work: Location,
    folder: Path,
    began: float,
) -> BatchSummary:
    tables = write_snapshots(session, request.references, folder / "references")
    files = read_documents(session, request.publications, tables, work)
    with matching(session, store, files.filter("problem is null")) as outcome:
        reports = [*_pairs(outcome, work), _rejects(outcome, files, work)]
        documents = outcome.documents
    publish_result(work, Location.of(request.out), reports, request.force)
    seconds = perf_counter() - began
    examples = write_rejects(request.rejects, refused, work, reports)
    matches, rejects = (sum(getattr(each, name) for each in reports) for name in ("matches", "rejects"))
    match_seconds = seconds - built.seconds
    return BatchSummary(
        built, documents, matches, len(refused), rejects, match_seconds, seconds, {}, examples
    )


@contextmanager
def _tables_folder(request: BatchRequest, work: Location) -> Iterator[Path]:
    """Create a folder for the tables that all executors see, and remove it after the job."""
    place = (request.segments or Path(work.path)).absolute() / f"tables-{uuid4().hex[:8]}"
    try:
        yield place
    finally:
        rmtree(place, ignore_errors=True)


def _build(
    session: SparkSession, request: BatchRequest, folder: Path, layout: Layout
) -> tuple[TableStore, IndexBuilt, list[Reject]]:
    began = perf_counter()
    store = TableStore.create(folder, layout)
    rejects = [
        reject
        for added in import_subscriptions(store, session, request.subscriptions)
        for reject in added.rejects
    ]
    return store, _describe(store, perf_counter() - began), rejects


def _describe(store: TableStore, seconds: float) -> IndexBuilt:
    count, files = store.version.subscriptions, sum(map(len, store.version.files.values()))
    return IndexBuilt(count, files, store.nbytes / count if count else 0.0, seconds)


def _pairs(outcome: Outcome, work: Location) -> Iterator[ChunkReport]:
    """Let Spark write the pairs; yield a report for each file."""
    outcome.pairs.drop("subscriber").write.parquet(f"{work.for_spark}/pairs")
    written = work.files.get_file_info(fs.FileSelector(f"{work.path}/pairs"))
    for number, info in enumerate(
        sorted(info.path for info in written if info.base_name.endswith(".parquet"))
    ):
        name = f"part-{number:05d}-{uuid4().hex[:12]}.parquet"
        rows = pq.read_metadata(info, filesystem=work.files).num_rows
        work.files.move(info, f"{work.path}/{name}")
        yield ChunkReport(number, 0, matches=rows, matches_file=name)


def _rejects(outcome: Outcome, files: DataFrame, work: Location) -> ChunkReport:
    """Write the rejected documents, a line each."""
    unread = files.filter("problem is not null").select("publication", "problem")
    count = 0
    with work.files.open_output_stream(f"{work.path}/{REJECTS}") as lines:
        for row in outcome.rejects.unionByName(unread).toLocalIterator():
            reject = {"what": "publication", "id": row.publication, "file": row.publication}
            lines.write(json.dumps(reject | json.loads(row.problem)).encode() + b"\n")
            count += 1
    return ChunkReport(0, 0, rejects=count, rejects_file=REJECTS)
