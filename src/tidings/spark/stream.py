"""The running stream: journal or folder -> decode -> match -> explain -> notification store.

    run(session, Path(".tidings"), "sqlite:///.tidings/store.db")

Structured Streaming plans batches and remembers how far it came. What is done with a batch stands in
`live_publications`: the tasks match, the driver commits what they found. Spark may repeat a batch after a crash: the
store takes it once. A stream that goes on for ever begins with a batch, of nothing if there is nothing, and a rehearsal
in Spark's workers: when it says that it runs, it does. Beside it, a second query applies the log of metadata
(`metadata_stream`), as soon as there is something in it; `together` follows both.
"""

from __future__ import annotations

import logging
import shutil
from collections.abc import Callable, Iterable
from functools import partial
from itertools import chain, repeat
from pathlib import Path
from threading import Event
from uuid import uuid4

from pyspark.sql import SparkSession

from tidings.errors import SlowStart
from tidings.private import private_folder
from tidings.provider import BATCH
from tidings.spark import checkpoint, connect, live_index
from tidings.spark.budget import DEFAULT_BUDGET, Budget
from tidings.spark.live_index import open_current
from tidings.spark.metadata_stream import MetadataStream
from tidings.spark.news import Listener, Progress, Repaired, Started, Telling
from tidings.spark.publication_stream import MOST_PUBLICATIONS, SUSPEND_AFTER, PublicationStream
from tidings.spark.together import Together, hand_over
from tidings.store import Store, open_store

DRAIN_SECONDS = 20.0
"""How long a batch that is under way has to end when the stream ends."""
PAUSES = (1.0, 2.0, 4.0, 8.0, 16.0)
"""Seconds before queries start again whose Python processes were too slow to start; a stream that goes on for ever
repeats the last one."""

_log = logging.getLogger("tidings.stream")


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
    budget: Budget = DEFAULT_BUDGET,
    suspend_after: int = SUSPEND_AFTER,
    stop: Event | None = None,
    listener: Listener | None = None,
) -> Progress:
    """Run the stream until `stop` is set; with `once`, until everything that is there now is done. A batch under way
    then has `drain` seconds to end.

    What it returns is how the publications fared; of metadata only the listener hears.
    """
    home = Path(home).absolute()
    name = "" if once else uuid4().hex[:8]
    stream = PublicationStream(
        home,
        _whole_url(store_url),
        _whole_path(folder),
        id_field,
        most_publications,
        name,
        budget,
        suspend_after,
    )
    metadata = MetadataStream(home, stream.store, metadata_batch, budget)
    tell = Telling(stream.source, listener or (lambda news: None), starts_with_batch=not once)
    with checkpoint.running(home):
        _end_earlier(session, home)
        _repair(stream, metadata, tell)
        _prepare(stream, metadata)
        with open_store(stream.store) as store, connect.noted(session, home):
            hand_over(store, tell)
            beginning = _beginning(stream, store)
            if once:
                tell(beginning)
            begin = partial(Together, session, stream, metadata, once, drain)
            return _follow(
                begin, store, stop or Event(), tell, PAUSES if once else chain(PAUSES, repeat(PAUSES[-1]))
            )


def _follow(
    begin: Callable[[], Together], store: Store, stop: Event, tell: Listener, pauses: Iterable[float]
) -> Progress:
    """Follow the queries to their end; start them again where Spark's Python processes are too slow to start.

    The ten seconds that Spark gives them are no setting. On a busy machine one may take longer; when the next one
    starts, the modules that it imports are in memory.
    """
    rest = iter(pauses)
    while True:
        try:
            with begin() as queries:
                return queries.follow(store, stop, tell)
        except SlowStart as problem:
            pause = next(rest, None)
            if pause is None or stop.is_set():
                raise
            _log.warning("%s; the stream starts again in %g s", problem, pause)
            stop.wait(pause)


def _whole_path(folder: str | Path | None) -> str | None:
    """The same folder for a process that works in another one."""
    if folder is None:
        return None
    return str(folder) if "://" in str(folder) else str(Path(folder).absolute())


def _whole_url(store_url: str) -> str:
    """The same address for a process that works in another folder; a store that cannot be used is refused."""
    with open_store(store_url) as store:
        return store.database.engine.url.render_as_string(hide_password=False)


def _end_earlier(session: SparkSession, home: Path) -> None:
    """A stream of this home that was killed may have left queries, and a batch of it under way."""
    connect.end_earlier(session, home)
    checkpoint.await_earlier(home)


def _repair(stream: PublicationStream, metadata: MetadataStream, tell: Listener) -> None:
    found = [*checkpoint.repair(stream.checkpoint), *checkpoint.repair(metadata.checkpoint)]
    for what in (*found, *live_index.repair(stream.segments)):
        tell(Repaired(what))


def _prepare(stream: PublicationStream, metadata: MetadataStream) -> None:
    """The folders the stream needs, without what an earlier run left half done."""
    checkpoint.stream_id(stream.checkpoint)
    shutil.rmtree(stream.batches, ignore_errors=True)
    private_folder(stream.segments)
    if not stream.batches.exists():  # what else is there is found by the batch, which says so
        private_folder(stream.batches)
    stream.status.unlink(missing_ok=True)
    metadata.status.unlink(missing_ok=True)


def _beginning(stream: PublicationStream, store: Store) -> Started:
    """Where the stream goes on. How many files a folder has is known with the first batch."""
    index = open_current(stream.segments)
    segments = index.segments if index else 0
    if stream.folder:
        return Started(stream.source, stream.position(store), 0, segments)
    head, position = store.journal.head(), checkpoint.position(stream.checkpoint)
    if position <= head:  # else the checkpoint is of another store, and is refused soon
        store.notifications.reach(position)
    position = stream.position(store)
    return Started(stream.source, position, max(0, head - position), segments)
