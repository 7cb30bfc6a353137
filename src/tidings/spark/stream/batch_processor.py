"""One batch of publications after the other: each is matched by Spark's tasks (`stages`), and committed (`sink`).

What a batch needs stays from one to the next: the index of subscriptions, the reference tables and the taxonomy are
brought up to date before it, and what only earlier ones used is deleted after it.
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
from tidings.spark.reference_data import LiveReferences, LiveTaxonomy
from tidings.spark.sources.folder import FileList, FolderSource
from tidings.spark.sources.journal import JournalSource, find_start_position
from tidings.spark.stream import sink
from tidings.spark.stream.budget import DEFAULT_BUDGET, Budget
from tidings.spark.stream.isolation import Isolation, Span, Verdicts
from tidings.spark.stream.journal_task import JournalTasks
from tidings.spark.stream.live_index import LiveIndex
from tidings.spark.stream.match_task import ROWS, MatchJob, MatchReport, build_match_stage
from tidings.spark.stream.progress import StreamProgress
from tidings.spark.stream.warm_up import check_workers, warm_up_workers
from tidings.store.encoding import utc_now
from tidings.store.notifications import CommitResult
from tidings.store.store import Store, open_store

_log = logging.getLogger("tidings.stream")


class PublicationProcessor:
    """What works on batches of publications, and keeps what they need from one to the next."""

    def __init__(self, stream: PublicationStream) -> None:
        self._stream = stream
        self.store: Store = open_store(stream.store)
        self._index = LiveIndex(stream.segments, self.store)
        self._references = LiveReferences(stream.segments / "references", self.store)
        self._taxonomy = LiveTaxonomy(stream.segments / "taxonomies", self.store)
        self._name = checkpoint.read_stream_id(stream.checkpoint)
        self._files = FileList(stream.file_list) if stream.folder else None
        self._tasks = JournalTasks(stream.store, stream.batches / "asked")
        self._progress = StreamProgress(position=stream.position(self.store))
        self._has_rehearsed = not stream.run
        self._is_first = True

    def close(self) -> None:
        self.store.close()

    def process(self, rows: DataFrame, batch: int) -> None:
        """One batch: bring the index, the reference tables and the taxonomy up to date, match, commit, tell."""
        began = perf_counter()
        troubled = self._refresh(rows.sparkSession)
        began += self._rehearse(rows.sparkSession)
        reports = self._match(rows, batch)
        found = perf_counter()
        committed = self._commit(batch, reports)
        self._suspend(reports)
        committing = perf_counter() - found
        latency = self._latency(reports)
        self._tidy(batch)
        now = self._added(batch, reports, troubled, committed)
        seconds = perf_counter() - began
        self._tell(replace(now, seconds=seconds, committing=committing, ended=time(), latency=latency))

    def _refresh(self, session: SparkSession) -> int:
        """Bring the index, the reference tables and the taxonomy up to date; how many tables have a new problem."""
        self._index.refresh()
        self._taxonomy.refresh()
        return self._references.refresh(session)

    def _rehearse(self, session: SparkSession) -> float:
        """Have Spark's workers do once what they are for, before the first batch; how many seconds it took."""
        began = perf_counter()
        if not self._has_rehearsed:
            warm_up_workers(
                session, self._job(self._stream.batches), self._index.index.shapes, self._store_of_tasks
            )
            self._has_rehearsed = True
        return perf_counter() - began

    def _match(self, rows: DataFrame, batch: int) -> list[MatchReport]:
        """Have the tasks match a batch. What none of them can finish is found, and becomes dead letters."""
        results = self._results(batch)
        results.mkdir(parents=True, exist_ok=True)
        isolation = Isolation[MatchReport](
            partial(self._attempt, rows),
            partial(self._check, rows.sparkSession),
            results,
            self._stream.budget,
            partial(self._search, rows),
            lambda: [one.id for one in self.store.subscriptions.list()],
            self._stream.suspend_after,
        )
        reports = isolation.run(*self._range(batch))
        return [report for report in reports if report.events or report.found or report.dead]

    def _attempt(self, rows: DataFrame, span: Span, verdicts: Verdicts, folder: Path) -> list[MatchReport]:
        """Match a part of a batch; nothing of that which is in the verdicts."""
        job = replace(self._job(folder), verdicts=verdicts, together=1 if span.is_careful else ROWS)
        return self._run(rows, job, span)

    def _search(
        self, rows: DataFrame, span: Span, verdicts: Verdicts, folder: Path, subscriptions: Sequence[str]
    ) -> list[MatchReport]:
        """Match one publication with some subscriptions only. Without any, it is counted, and becomes the dead letters
        that do not depend on them.
        """
        index = self._index.part(folder / "index", subscriptions)
        job = replace(self._job(folder), index=str(index.folder), version=index.version, verdicts=verdicts)
        reports = self._run(rows, replace(job, is_part=bool(subscriptions)), span)
        return [replace(each, events=0) for each in reports] if subscriptions else reports

    def _run(self, rows: DataFrame, job: MatchJob, span: Span) -> list[MatchReport]:
        if self._files is None:
            return self._tasks.match(rows.sparkSession, job, span.after, span.upto)
        within = f"position > {span.after} and position <= {span.upto}"
        said = rows.where(within).mapInArrow(build_match_stage(job), "report string").collect()
        return [MatchReport(**json.loads(row.report)) for row in said]

    def _check(self, session: SparkSession) -> int:
        return check_workers(session, self._job(self._stream.batches), self._store_of_tasks)

    @property
    def _store_of_tasks(self) -> str | None:
        """The store, if tasks read from it."""
        return self._stream.store if self._files is None else None

    def _suspend(self, reports: Sequence[MatchReport]) -> None:
        """Suspend subscriptions that have exceeded the budget too often; also those of a batch that was committed by a
        stream which was killed before it came to that.
        """
        if self._is_first or any(report.dead for report in reports):
            for one in self.store.overruns.suspend(self._stream.suspend_after):
                _log.warning("subscription %s of %s is suspended: over its budget", one.id, one.subscriber)
        self._is_first = False

    def _range(self, batch: int) -> tuple[int, int]:
        """After which position a batch begins, and how far it comes. The first one of a checkpoint begins where the
        source says.
        """
        before, upto = (
            checkpoint.read_planned_position(self._stream.checkpoint, each) for each in (batch - 1, batch)
        )
        assert upto is not None, "Spark writes it down before it asks for the batch"
        if before is None:
            before = find_start_position(self.store) if self._files is None else 0
        return before, upto

    def _job(self, results: Path) -> MatchJob:
        """What tasks have in common that leave what they find in a folder."""
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
        )

    def _commit(self, batch: int, reports: Sequence[MatchReport]) -> CommitResult:
        reached = None if self._stream.folder else _last(reports)
        return sink.commit_batch(self.store, self._name, self._stream.source, batch, reports, reached)

    def _latency(self, reports: Sequence[MatchReport]) -> float | None:
        if self._stream.folder or not reports:
            return None
        first = self.store.journal.time_of(min(report.first for report in reports))
        return max(0.0, (utc_now() - first).total_seconds()) if first else None

    def _tidy(self, batch: int) -> None:
        """Delete what is committed, and what only earlier batches used."""
        shutil.rmtree(self._results(batch))
        self._index.tidy()
        self._references.tidy()
        self._taxonomy.tidy()

    def _added(
        self, batch: int, reports: Sequence[MatchReport], troubled: int, committed: CommitResult
    ) -> StreamProgress:
        before, index = self._progress, self._index.index
        events = sum(report.events for report in reports)
        dead = sum(report.dead for report in reports) + troubled
        position = _last(reports) or before.position
        return StreamProgress(
            batch=batch,
            events=events,
            notifications=committed.new,
            held=committed.held,
            repeated=committed.repeated,
            dead_letters=dead,
            position=position,
            lag=max(0, self._head() - position),
            subscriptions=index.size,
            segments=index.segments,
            sizes=index.sizes,
            total_events=before.total_events + events,
            total_notifications=before.total_notifications + committed.new,
            total_held=before.total_held + committed.held,
            total_dead_letters=before.total_dead_letters + dead,
        )

    def _tell(self, now: StreamProgress) -> None:
        self._progress = now
        write_atomically(self._stream.status, json.dumps(asdict(now)), private=True)
        self.store.time_series.add(_measures(now))

    def _results(self, batch: int) -> Path:
        return self._stream.batches / str(batch)

    def _head(self) -> int:
        """The last position there is."""
        if self._files is None:
            return self.store.journal.head()
        self._files.refresh()
        return self._files.last


def _last(reports: Sequence[MatchReport]) -> int:
    return max((report.last for report in reports), default=0)


def _measures(now: StreamProgress) -> dict[str, float]:
    """What of a batch is drawn over time."""
    counts = {
        "publications": now.events,
        "matches": now.notifications + now.held + now.repeated,
        "notifications": now.notifications,
        "dead_letters": now.dead_letters,
        "batch_seconds": now.seconds,
        "lag": now.lag,
        "segments": now.segments,
        "subscriptions": now.subscriptions,
    }
    return counts if now.latency is None else counts | {"latency_seconds": now.latency}


# The stream of publications: where they come from, and where what is known of them stands in the home folder.


MAX_PUBLICATIONS = 10_000
SUSPEND_AFTER = 3


@dataclass(frozen=True, slots=True)
class PublicationStream:
    """What is to run: everything that has to be known, wherever it runs.

    Without a `folder` the source is the store's journal. With a name, a `run` begins with a batch in any case. A
    subscription is suspended after it has exceeded the budget `suspend_after` times.
    """

    home: Path
    store: str
    folder: str | None = None
    id_field: str = "id"
    most: int = MAX_PUBLICATIONS
    run: str = ""
    budget: Budget = DEFAULT_BUDGET
    suspend_after: int = SUSPEND_AFTER

    name = "tidings"

    @property
    def checkpoint(self) -> Path:
        """How far this source was read. Each source has its own: a position in the journal is none in a folder."""
        key = hashlib.blake2b(self.folder.encode(), digest_size=5).hexdigest() if self.folder else ""
        return self.home / "checkpoint" / (f"folder-{key}" if self.folder else "journal")

    @property
    def file_list(self) -> Path:
        return self.checkpoint / "files.jsonl"

    @property
    def batches(self) -> Path:
        """Where tasks leave what they find, until it is committed."""
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
        """How far the source was read, by what was written down of earlier batches."""
        position = checkpoint.read_position(self.checkpoint)
        return position if self.folder else position or store.notifications.matched()

    def rows(self, session: SparkSession) -> DataFrame:
        """The publications, as a stream."""
        options = {"publications": str(self.most), "lock": str(self.home / checkpoint.STREAM_LOCK)}
        options |= {"run": self.run} if self.run else {}
        source: type[Any] = FolderSource if self.folder else JournalSource
        more = (
            {"folder": self.folder, "list": str(self.file_list)} if self.folder else {"store_url": self.store}
        )
        session.dataSource.register(source)
        return session.readStream.format(source.name()).options(**options, **more).load()

    def open(self) -> PublicationProcessor:
        return PublicationProcessor(self)

    def progress(self, told: dict[str, Any]) -> StreamProgress:
        return StreamProgress(**told)
