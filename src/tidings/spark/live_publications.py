"""One batch of publications after the other: each is matched by Spark's tasks (`stages`), and committed (`sink`).

What a batch needs stays from one to the next: the index of subscriptions, the reference tables and the taxonomy are
brought up to date before it, and what only earlier ones used is deleted after it.
"""

from __future__ import annotations

import json
import logging
import shutil
from collections.abc import Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from time import perf_counter, time
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame, SparkSession

from tidings.durable import write_whole
from tidings.spark import checkpoint, sink
from tidings.spark.folder import FileList
from tidings.spark.isolation import Isolation, Span
from tidings.spark.journal_tasks import JournalTasks
from tidings.spark.live_index import LiveIndex
from tidings.spark.news import Progress
from tidings.spark.references import LiveReferences
from tidings.spark.rehearsal import check, warm
from tidings.spark.source import beginning
from tidings.spark.stages import ROWS, Job, Report, stage
from tidings.spark.taxonomies import LiveTaxonomy
from tidings.spark.verdicts import Verdicts
from tidings.store import Committed, Store, open_store, utc

if TYPE_CHECKING:
    from tidings.spark.publication_stream import PublicationStream

_log = logging.getLogger("tidings.stream")


class LivePublications:
    """What works on batches of publications, and keeps what they need from one to the next."""

    def __init__(self, stream: PublicationStream) -> None:
        self._stream = stream
        self.store: Store = open_store(stream.store)
        self._index = LiveIndex(stream.segments, self.store)
        self._references = LiveReferences(stream.segments / "references", self.store)
        self._taxonomy = LiveTaxonomy(stream.segments / "taxonomies", self.store)
        self._name = checkpoint.stream_id(stream.checkpoint)
        self._files = FileList(stream.file_list) if stream.folder else None
        self._tasks = JournalTasks(stream.store, stream.batches / "asked")
        self._progress = Progress(position=stream.position(self.store))
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
            warm(session, self._job(self._stream.batches), self._index.index.sorts, self._store_of_tasks)
            self._has_rehearsed = True
        return perf_counter() - began

    def _match(self, rows: DataFrame, batch: int) -> list[Report]:
        """Have the tasks match a batch. What none of them can finish is found, and becomes dead letters."""
        results = self._results(batch)
        results.mkdir(parents=True, exist_ok=True)
        isolation = Isolation[Report](
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

    def _attempt(self, rows: DataFrame, span: Span, verdicts: Verdicts, folder: Path) -> list[Report]:
        """Match a part of a batch; nothing of that which is in the verdicts."""
        job = replace(self._job(folder), verdicts=verdicts, together=1 if span.is_careful else ROWS)
        return self._run(rows, job, span)

    def _search(
        self, rows: DataFrame, span: Span, verdicts: Verdicts, folder: Path, subscriptions: Sequence[str]
    ) -> list[Report]:
        """Match one publication with some subscriptions only. Without any, it is counted, and becomes the dead letters
        that do not depend on them.
        """
        index = self._index.part(folder / "index", subscriptions)
        job = replace(self._job(folder), index=str(index.folder), version=index.version, verdicts=verdicts)
        reports = self._run(rows, replace(job, is_part=bool(subscriptions)), span)
        return [replace(each, events=0) for each in reports] if subscriptions else reports

    def _run(self, rows: DataFrame, job: Job, span: Span) -> list[Report]:
        if self._files is None:
            return self._tasks.match(rows.sparkSession, job, span.after, span.upto)
        within = f"position > {span.after} and position <= {span.upto}"
        said = rows.where(within).mapInArrow(stage(job), "report string").collect()
        return [Report(**json.loads(row.report)) for row in said]

    def _check(self, session: SparkSession) -> int:
        return check(session, self._job(self._stream.batches), self._store_of_tasks)

    @property
    def _store_of_tasks(self) -> str | None:
        """The store, if tasks read from it."""
        return self._stream.store if self._files is None else None

    def _suspend(self, reports: Sequence[Report]) -> None:
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
        before, upto = (checkpoint.planned(self._stream.checkpoint, each) for each in (batch - 1, batch))
        assert upto is not None, "Spark writes it down before it asks for the batch"
        if before is None:
            before = beginning(self.store) if self._files is None else 0
        return before, upto

    def _job(self, results: Path) -> Job:
        """What tasks have in common that leave what they find in a folder."""
        return Job(
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

    def _commit(self, batch: int, reports: Sequence[Report]) -> Committed:
        reached = None if self._stream.folder else _last(reports)
        return sink.commit(self.store, self._name, self._stream.source, batch, reports, reached)

    def _latency(self, reports: Sequence[Report]) -> float | None:
        if self._stream.folder or not reports:
            return None
        first = self.store.journal.time_of(min(report.first for report in reports))
        return max(0.0, (utc() - first).total_seconds()) if first else None

    def _tidy(self, batch: int) -> None:
        """Delete what is committed, and what only earlier batches used."""
        shutil.rmtree(self._results(batch))
        self._index.tidy()
        self._references.tidy()
        self._taxonomy.tidy()

    def _added(self, batch: int, reports: Sequence[Report], troubled: int, committed: Committed) -> Progress:
        before, index = self._progress, self._index.index
        events = sum(report.events for report in reports)
        dead = sum(report.dead for report in reports) + troubled
        position = _last(reports) or before.position
        return Progress(
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

    def _tell(self, now: Progress) -> None:
        self._progress = now
        write_whole(self._stream.status, json.dumps(asdict(now)), private=True)
        self.store.measures.add(_measures(now))

    def _results(self, batch: int) -> Path:
        return self._stream.batches / str(batch)

    def _head(self) -> int:
        """The last position there is."""
        if self._files is None:
            return self.store.journal.head()
        self._files.refresh()
        return self._files.last


def _last(reports: Sequence[Report]) -> int:
    return max((report.last for report in reports), default=0)


def _measures(now: Progress) -> dict[str, float]:
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
