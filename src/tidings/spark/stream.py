"""The running stream: journal or folder -> decode -> match -> explain -> notification store.

    run(session, Path(".tidings"), "sqlite:///.tidings/store.db")

Structured Streaming plans batches and remembers how far it came; for each batch `process` brings the index up to
date, lets the tasks match (`stages`), and commits what they found (`sink`). Spark may repeat a batch after a crash:
the store takes it once. A stream that goes on for ever begins with a batch, of nothing if there is nothing, and a
rehearsal in Spark's workers: when it says that it runs, it does. Beside it, a second query applies the log of metadata
(`metadata_stream`), as soon as there is something in it.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Sequence
from contextlib import ExitStack, closing
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from threading import Event
from time import perf_counter, time
from typing import Any
from uuid import uuid4

from pyspark.sql import DataFrame, SparkSession

from tidings.durable import write_whole
from tidings.private import private_folder
from tidings.provider import BATCH
from tidings.spark import checkpoint, connect, sink
from tidings.spark.folder import FileList, FolderSource
from tidings.spark.live_index import LiveIndex, open_current
from tidings.spark.metadata_stream import MetadataStream
from tidings.spark.news import HandedOver, Listener, Progress, Repaired, Started, Telling
from tidings.spark.queries import Query
from tidings.spark.references import LiveReferences
from tidings.spark.rehearsal import Workers, warm
from tidings.spark.source import JournalSource
from tidings.spark.stages import Job, Report, stage
from tidings.spark.taxonomies import LiveTaxonomy
from tidings.store import Store, open_store, utc

MOST_PUBLICATIONS = 10_000
POLL_SECONDS = 0.1
DRAIN_SECONDS = 20.0
"""How long a batch that is under way has to end when the stream ends."""


@dataclass(frozen=True, slots=True)
class Stream:
    """What is to run: everything `process` has to know, wherever it runs.

    Without a `folder` the source is the store's journal. With a name, a `run` begins with a batch in any case.
    """

    home: Path
    store: str
    folder: str | None = None
    id_field: str = "id"
    most: int = MOST_PUBLICATIONS
    run: str = ""

    @property
    def checkpoint(self) -> Path:
        """How far this source was read. Each source has its own: a position in the journal is none in a folder."""
        key = hashlib.blake2b(self.folder.encode(), digest_size=5).hexdigest() if self.folder else ""
        return self.home / "checkpoint" / (f"folder-{key}" if self.folder else "journal")

    @property
    def file_list(self) -> Path:
        return self.checkpoint / "files.jsonl"

    @property
    def status(self) -> Path:
        return self.home / "stream.json"

    @property
    def source(self) -> str:
        return f"folder {self.folder}" if self.folder else "journal"

    name = "tidings"

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

    def open(self) -> Live:
        return Live(self)

    def progress(self, told: dict[str, Any]) -> Progress:
        return Progress(**told)


def run(
    session: SparkSession,
    home: Path | str,
    store_url: str,
    *,
    folder: str | Path | None = None,
    id_field: str = "id",
    most_publications: int = MOST_PUBLICATIONS,
    metadata_batch: int = BATCH,
    once: bool = False,
    drain: float = DRAIN_SECONDS,
    stop: Event | None = None,
    listener: Listener | None = None,
) -> Progress:
    """Run the stream until `stop` is set; with `once`, until everything that is there now is done. A batch under way
    then has `drain` seconds to end.

    What it returns is how the publications fared; of metadata only the listener hears.
    """
    home = Path(home).absolute()
    source = None if folder is None else str(folder) if "://" in str(folder) else str(Path(folder).absolute())
    name = "" if once else uuid4().hex[:8]
    stream = Stream(home, _absolute(store_url), source, id_field, most_publications, name)
    metadata = MetadataStream(home, stream.store, metadata_batch)
    tell = Telling(stream.source, listener or (lambda news: None), starts_with_batch=not once)
    with checkpoint.running(home):
        connect.end_earlier(session, home)
        checkpoint.await_earlier(home)
        for what in (*checkpoint.repair(stream.checkpoint), *checkpoint.repair(metadata.checkpoint)):
            tell(Repaired(what))
        _prepare(stream, metadata)
        with open_store(stream.store) as store, connect.noted(session, home):
            _hand_over(store, tell)
            beginning = _beginning(stream, store)
            with Together(session, stream, metadata, once, drain) as queries:
                if once:
                    tell(beginning)
                return queries.follow(store, stop or Event(), tell)


def _absolute(store_url: str) -> str:
    """The same address for a process that works in another folder; a store that cannot be used is refused."""
    with open_store(store_url) as store:
        return store.database.engine.url.render_as_string(hide_password=False)


def _beginning(stream: Stream, store: Store) -> Started:
    """Where the stream goes on. How many files a folder has is known with the first batch."""
    index = open_current(stream.home / "segments")
    segments = index.segments if index else 0
    if stream.folder:
        return Started(stream.source, _position(stream, store), 0, segments)
    head, position = store.journal.head(), checkpoint.position(stream.checkpoint)
    if position <= head:  # else the checkpoint is of another store, and is refused soon
        store.notifications.reach(position)
    position = _position(stream, store)
    return Started(stream.source, position, max(0, head - position), segments)


def _position(stream: Stream, store: Store) -> int:
    """How far the source was read, by what was written down of earlier batches."""
    position = checkpoint.position(stream.checkpoint)
    return position if stream.folder else position or store.notifications.matched()


def _prepare(stream: Stream, metadata: MetadataStream) -> None:
    """The folders the stream needs, without what an earlier run left half done."""
    checkpoint.stream_id(stream.checkpoint)
    shutil.rmtree(stream.home / "batches", ignore_errors=True)
    private_folder(stream.home / "segments")
    if not (
        batches := stream.home / "batches"
    ).exists():  # what else is there is found by the batch, which says so
        private_folder(batches)
    stream.status.unlink(missing_ok=True)
    metadata.status.unlink(missing_ok=True)


class Together(ExitStack):
    """The query of the publications and, when there is something in the log of metadata, the one that applies it."""

    def __init__(
        self, session: SparkSession, stream: Stream, metadata: MetadataStream, once: bool, drain: float
    ) -> None:
        super().__init__()
        self._session, self._metadata, self._once, self._drain = session, metadata, once, drain
        self._queries = [self.enter_context(closing(Query(session, stream, once, drain)))]
        self._workers = Workers(session)

    def follow(self, store: Store, stop: Event, tell: Listener) -> Progress:
        """Pass progress on until the queries end, by themselves or because they are to stop.

        What is held is handed over from here, beside the batches: a long one keeps nobody waiting.
        """
        while not stop.is_set():
            if self._have_ended() and not self._begin_metadata(store):
                break
            self._begin_metadata(store)
            self._tell(tell)
            _hand_over(store, tell)
            self._keep_workers()
        self.close()
        self._tell(tell)
        return self._queries[0].last or Progress()

    def _begin_metadata(self, store: Store) -> bool:
        """Start the second query, if it is time for it, and say whether that was done.

        Spark gives a process of Python ten seconds to answer. Two that start at once on a busy machine may not make it.
        """
        wanted = len(self._queries) == 1 and checkpoint.has_begun(self._metadata.home)
        if not wanted or not store.metadata.log.head():
            return False
        query = Query(self._session, self._metadata, self._once, self._drain)
        self._queries.append(self.enter_context(closing(query)))
        return True

    def _keep_workers(self) -> None:
        """What the first batch prepares stays, once there was one."""
        first = self._queries[0]
        if first.last and not self._once:
            self._workers.keep(first.last.batch, first.is_busy)

    def _have_ended(self) -> bool:
        """Each is looked at: one may have failed while another goes on."""
        ended = [query.has_ended(POLL_SECONDS / len(self._queries)) for query in self._queries]
        return all(ended)

    def _tell(self, tell: Listener) -> None:
        for query in self._queries:
            query.tell(tell)


def _hand_over(store: Store, tell: Listener) -> None:
    if count := store.notifications.hand_over():
        tell(HandedOver(count))


class Live:
    """What `process` keeps from batch to batch."""

    def __init__(self, stream: Stream) -> None:
        self.stream = stream
        self.store: Store = open_store(stream.store)
        self.index = LiveIndex(stream.home / "segments", self.store)
        self.references = LiveReferences(stream.home / "segments" / "references", self.store)
        self.taxonomy = LiveTaxonomy(stream.home / "segments" / "taxonomies", self.store)
        self.name = checkpoint.stream_id(stream.checkpoint)
        self.files = FileList(stream.file_list) if stream.folder else None
        self.progress = Progress(position=_position(stream, self.store))
        self._has_rehearsed = not stream.run

    def process(self, rows: DataFrame, batch: int) -> None:
        process(self.stream, self, rows, batch)

    def rehearse(self, session: SparkSession) -> float:
        """Have Spark's workers do once what they are for, before the first batch; how many seconds it took."""
        began = perf_counter()
        if not self._has_rehearsed:
            warm(session, self.job(self.stream.home / "batches"), self.index.index.sorts)
            self._has_rehearsed = True
        return perf_counter() - began

    def refresh(self, session: SparkSession) -> int:
        """Bring the index, the reference tables and the taxonomy up to date; how many tables have a new problem."""
        self.index.refresh()
        self.taxonomy.refresh()
        return self.references.refresh(session)

    def tidy(self) -> None:
        """Delete what only earlier batches used."""
        self.index.tidy()
        self.references.tidy()
        self.taxonomy.tidy()

    def job(self, results: Path) -> Job:
        """What tasks have in common that leave what they find in a folder."""
        return Job(
            self.index.folder,
            self.index.index.version,
            self.index.schema_text,
            self.stream.id_field,
            str(results),
            self.stream.folder is None,
            self.references.snapshots,
            self.taxonomy.path,
        )

    def close(self) -> None:
        self.store.close()

    def head(self) -> int:
        """The last position there is."""
        if self.files is None:
            return self.store.journal.head()
        self.files.refresh()
        return self.files.last


def process(stream: Stream, live: Live, publications: DataFrame, batch: int) -> None:
    """One batch: bring the index, the reference tables and the taxonomy up to date, match, commit, tell."""
    began = perf_counter()
    troubled = live.refresh(publications.sparkSession)
    began += live.rehearse(publications.sparkSession)
    results = stream.home / "batches" / str(batch)
    results.mkdir(parents=True, exist_ok=True)
    reports = _matched(live.job(results), publications)
    last = max((report.last for report in reports), default=0)
    reached = None if stream.folder else last
    found = perf_counter()
    committed = sink.commit(live.store, live.name, stream.source, batch, reports, reached)
    committing = perf_counter() - found
    latency = None if stream.folder else _latency(live.store, reports)
    shutil.rmtree(results)
    live.tidy()
    events, dead = sum(report.events for report in reports), sum(report.dead for report in reports) + troubled
    live.progress = _added(live, batch, events, dead, committed, last or live.progress.position)
    live.progress = replace(
        live.progress,
        seconds=perf_counter() - began,
        committing=committing,
        ended=time(),
        latency=latency,
    )
    write_whole(stream.status, json.dumps(asdict(live.progress)))
    live.store.measures.add(_measures(live.progress))


def _latency(store: Store, reports: Sequence[Report]) -> float | None:
    first = store.journal.time_of(min(report.first for report in reports)) if reports else None
    return max(0.0, (utc() - first).total_seconds()) if first else None


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


def _matched(job: Job, publications: DataFrame) -> list[Report]:
    rows = publications.mapInArrow(stage(job), "report string").collect()
    return [report for row in rows if (report := Report(**json.loads(row.report))).events]


def _added(live: Live, batch: int, events: int, dead: int, committed: Any, position: int) -> Progress:
    before = live.progress
    return Progress(
        batch=batch,
        events=events,
        notifications=committed.new,
        held=committed.held,
        repeated=committed.repeated,
        dead_letters=dead,
        position=position,
        lag=max(0, live.head() - position),
        subscriptions=live.index.index.size,
        segments=live.index.index.segments,
        sizes=live.index.index.sizes,
        total_events=before.total_events + events,
        total_notifications=before.total_notifications + committed.new,
        total_held=before.total_held + committed.held,
        total_dead_letters=before.total_dead_letters + dead,
    )
