"""Processor of publication batches: tasks match a batch (`match_task`), a sink commits it.

The index of subscriptions, the reference tables and the taxonomy are kept between batches. They are brought up to date
before each batch; files that only earlier batches used are deleted after it.
"""

from __future__ import annotations

import hashlib
import json
import logging
import shutil
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from time import perf_counter, time
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from tidings.core.atomic_files import write_atomically
from tidings.spark import checkpoint
from tidings.spark.data_source.options import MAX_ROWS, START, STORE
from tidings.spark.data_source.source import TidingsSource
from tidings.spark.data_source.store_reader import MATCHED
from tidings.spark.reference_data import LiveReferences, LiveTaxonomy
from tidings.spark.sources.admission_control import ONCE
from tidings.spark.sources.folder import FileList, FolderSource
from tidings.spark.sources.position_reader import find_start_position
from tidings.spark.stream.budget import DEFAULT_BUDGET, Budget
from tidings.spark.stream.isolation import Isolation, Span, Verdicts
from tidings.spark.stream.journal_task import JournalTasks
from tidings.spark.stream.live_index import LiveIndex
from tidings.spark.stream.match_output import ROWS, MatchReport
from tidings.spark.stream.match_task import MatchJob, build_match_stage
from tidings.spark.stream.sink import Sink, open_sink
from tidings.spark.stream.stream_events import StreamProgress
from tidings.spark.stream.warm_up import check_workers, warm_up_workers
from tidings.store.encoding import utc_now
from tidings.store.notifications.batch_commit import CommitResult
from tidings.store.store import Store, open_store

_log = logging.getLogger("tidings.stream")


class PublicationProcessor:
    """Processor of publication batches, with the state that is kept between them."""

    def __init__(self, stream: PublicationStream) -> None:
        self._stream = stream
        self.store: Store = open_store(stream.store)
        self._index = LiveIndex(stream.segments, self.store)
        self._references = LiveReferences(stream.segments / "references", self.store)
        self._taxonomy = LiveTaxonomy(stream.segments / "taxonomies", self.store)
        name = checkpoint.read_stream_id(stream.checkpoint)
        self._sink: Sink = open_sink(self.store, name, stream.source)
        self._files = FileList(stream.file_list) if stream.folder else None
        self._tasks = JournalTasks(stream.store)
        self._progress = StreamProgress(position=stream.position(self.store))
        self._is_warm = not stream.run
        self._is_first = True

    def close(self) -> None:
        self.store.close()

    def process(self, rows: DataFrame, batch: int) -> None:
        """Process one batch: refresh index, tables and taxonomy, then match, commit and report."""
        began = perf_counter()
        table_problems = self._refresh(rows.sparkSession)
        began += self._warm_up(rows.sparkSession)
        reports = self._match(rows, batch)
        matched = perf_counter()
        committed = self._commit(batch, reports)
        self._suspend(reports)
        committing = perf_counter() - matched
        latency = self._measure_latency(reports)
        self._tidy(batch)
        progress = self._build_progress(batch, reports, table_problems, committed)
        seconds = perf_counter() - began
        self._report(replace(progress, seconds=seconds, committing=committing, ended=time(), latency=latency))

    def _refresh(self, session: SparkSession) -> int:
        """Refresh index, reference tables and taxonomy; return how many tables have a new problem."""
        self._index.refresh()
        self._taxonomy.refresh()
        return self._references.refresh(session)

    def _warm_up(self, session: SparkSession) -> float:
        """Warm up Spark's workers before the first batch; return the seconds it took."""
        began = perf_counter()
        if not self._is_warm:
            warm_up_workers(
                session, self._build_job(self._stream.batches), self._index.index.shapes, self._task_store
            )
            self._is_warm = True
        return perf_counter() - began

    def _match(self, rows: DataFrame, batch: int) -> list[MatchReport]:
        """Match a batch in Spark's tasks. Publications that no task can finish become dead letters."""
        results = self._results_folder(batch)
        results.mkdir(parents=True, exist_ok=True)
        isolation = Isolation[MatchReport](
            partial(self._attempt, rows),
            partial(self._check_workers, rows.sparkSession),
            results,
            self._stream.budget,
            partial(self._search, rows),
            lambda: [subscription.id for subscription in self.store.subscriptions.list()],
            self._stream.suspend_after,
        )
        reports = isolation.run(*self._read_range(batch))
        return [report for report in reports if report.events or report.found or report.dead]

    def _attempt(self, rows: DataFrame, span: Span, verdicts: Verdicts, folder: Path) -> list[MatchReport]:
        """Match a part of a batch, except for publications and pairs with a verdict."""
        job = replace(self._build_job(folder), verdicts=verdicts, together=1 if span.is_careful else ROWS)
        return self._run(rows, job, span)

    def _search(
        self, rows: DataFrame, span: Span, verdicts: Verdicts, folder: Path, subscriptions: Sequence[str]
    ) -> list[MatchReport]:
        """Match one publication with some of the subscriptions.

        Without any, the publication is counted, and the dead letters that do not depend on subscriptions are written.
        """
        index = self._index.part(folder / "index", subscriptions)
        job = replace(
            self._build_job(folder), index=str(index.folder), version=index.version, verdicts=verdicts
        )
        reports = self._run(rows, replace(job, is_part=bool(subscriptions)), span)
        return [replace(report, events=0) for report in reports] if subscriptions else reports

    def _run(self, rows: DataFrame, job: MatchJob, span: Span) -> list[MatchReport]:
        if self._files is None:
            return self._tasks.match(rows.sparkSession, job, span.after, span.upto)
        within = f"position > {span.after} and position <= {span.upto}"
        collected = rows.where(within).mapInArrow(build_match_stage(job), "report string").collect()
        return [MatchReport(**json.loads(row.report)) for row in collected]

    def _check_workers(self, session: SparkSession) -> int:
        return check_workers(session, self._build_job(self._stream.batches), self._task_store)

    @property
    def _task_store(self) -> str | None:
        """The address of the store, if tasks read from it."""
        return self._stream.store if self._files is None else None

    def _suspend(self, reports: Sequence[MatchReport]) -> None:
        """Suspend subscriptions that have exceeded the budget too often.

        The first batch includes those of a stream that was killed between commit and suspension.
        """
        if self._is_first or any(report.dead for report in reports):
            for suspended in self.store.overruns.suspend(self._stream.suspend_after):
                _log.warning(
                    "subscription %s of %s is suspended: it exceeded its budget too often",
                    suspended.id,
                    suspended.subscriber,
                )
        self._is_first = False

    def _read_range(self, batch: int) -> tuple[int, int]:
        """Return the position before a batch, and its last one.

        The first batch of a checkpoint begins where the source says.
        """
        before, upto = (
            checkpoint.read_planned_position(self._stream.checkpoint, number) for number in (batch - 1, batch)
        )
        assert upto is not None, "Spark records the offsets before it starts the batch"
        if before is None:
            before = find_start_position(self.store) if self._files is None else 0
        return before, upto

    def _build_job(self, results: Path) -> MatchJob:
        """Build the job for tasks that write their results to a folder."""
        return MatchJob(
            self._index.folder,
            self._index.index.version,
            self._index.schema_text,
            self._stream.id_field,
            str(results),
            self._stream.folder is None,
            self._references.snapshots,
            self._taxonomy.path,
            self._stream.budget,
            target=self._sink.target,
        )

    def _commit(self, batch: int, reports: Sequence[MatchReport]) -> CommitResult:
        position = None if self._stream.folder else _find_last_position(reports)
        return self._sink.commit(batch, reports, position)

    def _measure_latency(self, reports: Sequence[MatchReport]) -> float | None:
        if self._stream.folder or not reports:
            return None
        first = self.store.journal.time_of(min(report.first for report in reports))
        return max(0.0, (utc_now() - first).total_seconds()) if first else None

    def _tidy(self, batch: int) -> None:
        """Delete the committed results, and files that only earlier batches used."""
        shutil.rmtree(self._results_folder(batch))
        self._index.tidy()
        self._references.tidy()
        self._taxonomy.tidy()

    def _build_progress(
        self, batch: int, reports: Sequence[MatchReport], table_problems: int, committed: CommitResult
    ) -> StreamProgress:
        before, index = self._progress, self._index.index
        events = sum(report.events for report in reports)
        dead = sum(report.dead for report in reports) + table_problems
        position = _find_last_position(reports) or before.position
        return StreamProgress(
            batch=batch,
            events=events,
            notifications=committed.new,
            deferred=committed.deferred,
            repeated=committed.repeated,
            dead_letters=dead,
            position=position,
            lag=max(0, self._head() - position),
            subscriptions=index.size,
            segments=index.segments,
            sizes=index.sizes,
            total_events=before.total_events + events,
            total_notifications=before.total_notifications + committed.new,
            total_deferred=before.total_deferred + committed.deferred,
            total_dead_letters=before.total_dead_letters + dead,
        )

    def _report(self, progress: StreamProgress) -> None:
        self._progress = progress
        write_atomically(self._stream.status, json.dumps(asdict(progress)), private=True)
        self.store.time_series.add(_build_measurements(progress))

    def _results_folder(self, batch: int) -> Path:
        return self._stream.batches / str(batch)

    def _head(self) -> int:
        """Return the last position of the source."""
        if self._files is None:
            return self.store.journal.head()
        self._files.refresh()
        return self._files.last


def _find_last_position(reports: Sequence[MatchReport]) -> int:
    return max((report.last for report in reports), default=0)


def _build_measurements(now: StreamProgress) -> dict[str, float]:
    """Return the figures of a batch that are stored as time series."""
    counts = {
        "publications": now.events,
        "matches": now.notifications + now.deferred + now.repeated,
        "notifications": now.notifications,
        "dead_letters": now.dead_letters,
        "batch_seconds": now.seconds,
        "lag": now.lag,
        "segments": now.segments,
        "subscriptions": now.subscriptions,
    }
    return counts if now.latency is None else counts | {"latency_seconds": now.latency}


# The publication stream: its source, and its files in the home folder.


MAX_PUBLICATIONS = 10_000
SUSPEND_AFTER = 3


@dataclass(frozen=True, slots=True)
class PublicationStream:
    """Definition of a publication stream, complete in every process that runs it.

    Without a `folder` the source is the journal of the store. A `run` with a name begins with a batch even if there is
    nothing new. A subscription is suspended after it has exceeded the budget `suspend_after` times.
    """

    home: Path
    store: str
    folder: str | None = None
    id_field: str = "id"
    most: int = MAX_PUBLICATIONS
    run: str = ""
    budget: Budget = DEFAULT_BUDGET
    suspend_after: int = SUSPEND_AFTER
    once: bool = False

    name = "tidings"

    @property
    def checkpoint(self) -> Path:
        """The checkpoint of this source; positions in the journal and in folders are unrelated."""
        key = hashlib.blake2b(self.folder.encode(), digest_size=5).hexdigest() if self.folder else ""
        return self.home / "checkpoint" / (f"folder-{key}" if self.folder else "journal")

    @property
    def file_list(self) -> Path:
        return self.checkpoint / "files.jsonl"

    @property
    def batches(self) -> Path:
        """The folder for the results of tasks until they are committed."""
        return self.home / "batches"

    @property
    def segments(self) -> Path:
        return self.home / "segments"

    @property
    def status(self) -> Path:
        return self.home / "stream.json"

    @property
    def source(self) -> str:
        return f"folder {self.folder}" if self.folder else "journal"

    def position(self, store: Store) -> int:
        """Return the last position that earlier batches have processed."""
        position = checkpoint.read_position(self.checkpoint)
        return position if self.folder else position or store.notifications.matched()

    def rows(self, session: SparkSession) -> DataFrame:
        """Return the publications as a streaming DataFrame."""
        options = {"publications": str(self.most), "lock": str(self.home / checkpoint.STREAM_LOCK)}
        options |= {ONCE: str(self.once)} | ({"run": self.run} if self.run else {})
        source: type[Any] = FolderSource if self.folder else TidingsSource
        source_options = (
            {"folder": self.folder, "list": str(self.file_list)}
            if self.folder
            else {STORE: self.store, START: MATCHED, MAX_ROWS: str(self.most)}
        )
        session.dataSource.register(source)
        return session.readStream.format(source.name()).options(**options, **source_options).load()

    def open(self) -> PublicationProcessor:
        return PublicationProcessor(self)

    def progress(self, fields: dict[str, Any]) -> StreamProgress:
        return StreamProgress(**fields)
