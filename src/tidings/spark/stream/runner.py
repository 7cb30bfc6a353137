"""The running stream: journal or folder -> decode -> match -> explain -> notification store.

    run_stream(session, Path(".tidings"), "sqlite:///.tidings/store.db")

Structured Streaming plans batches and records positions. `batch_processor` processes a batch: tasks match, the driver
commits their results. Spark may repeat a batch after a crash; the store commits it once. A continuous stream begins
with a batch, even an empty one, and a warm-up of Spark's workers, so that it is ready when it reports its start. A
second query applies the metadata log (`metadata_stream`) as soon as it has entries; `supervisor` follows both.
"""

from __future__ import annotations

import logging
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from copy import deepcopy
from dataclasses import replace
from functools import partial
from itertools import chain, repeat
from pathlib import Path
from threading import Event
from typing import Any, TypeVar
from uuid import uuid4

from pyspark.sql import SparkSession
from pyspark.sql.utils import is_remote

from tidings.core.atomic_files import private_folder, write_atomically
from tidings.errors import SlowStart
from tidings.metadata.provider.provider import DEFAULT_BATCH_SIZE
from tidings.metadata.spark.metadata_stream import MetadataStream
from tidings.spark import checkpoint
from tidings.spark.session import find_spark_ui
from tidings.spark.stream import live_index
from tidings.spark.stream.batch_processor import MAX_PUBLICATIONS, SUSPEND_AFTER, PublicationStream
from tidings.spark.stream.budget import DEFAULT_BUDGET, Budget
from tidings.spark.stream.live_index import open_current_index
from tidings.spark.stream.stream_events import (
    StreamEventRelay,
    StreamListener,
    StreamProgress,
    StreamRepair,
    StreamStart,
)
from tidings.spark.stream.supervisor import StreamSupervisor, release_deferred
from tidings.spark.stream.warm_up import warm_up_beside
from tidings.store.store import Store, open_store

Q = TypeVar("Q", bound=AbstractContextManager[Any])
P = TypeVar("P")

# Streams through Spark Connect: a query runs on the server, and continues when the process that started it has died.
#
#     <home>/connect-session       the id of the session on the server, while the stream runs
#
# Nothing is lost by that, but the next stream of this home folder would wait for an hour, until the server drops
# the abandoned session. So the next stream ends the session whose id is still recorded.


SESSION_FILE = "connect-session"


@contextmanager
def record_session(session: SparkSession, home: Path) -> Iterator[None]:
    """Record the session id in the home folder within a `with` block.

    After a failure the record stays, and the next stream ends the session on the server.
    """
    if not is_remote():
        yield
        return
    write_atomically(home / SESSION_FILE, session.session_id, private=True)
    yield
    (home / SESSION_FILE).unlink()


def end_previous_session(session: SparkSession, home: Path) -> None:
    """End the session of a killed stream, and with it the queries it left on the server.

    A server that was restarted or has dropped the session ignores this.
    """
    note = home / SESSION_FILE
    if not (is_remote() and note.exists()) or note.read_text() == session.session_id:
        return
    from pyspark.sql.connect.client import SparkConnectClient  # noqa: PLC0415 - imports gRPC

    same_server = deepcopy(session.client._builder)
    same_server.set("session_id", note.read_text())
    with closing(SparkConnectClient(same_server)) as earlier:
        earlier.release_session()


DRAIN_SECONDS = 20.0
"""Seconds that the current batch has to finish when the stream stops."""
PAUSES = (1.0, 2.0, 4.0, 8.0, 16.0)
"""Seconds before a restart after Python processes started too slowly; a continuous stream repeats the last one."""

_log = logging.getLogger("tidings.stream")


def run_stream(
    session: SparkSession,
    home: Path | str,
    store_url: str,
    *,
    folder: str | Path | None = None,
    id_field: str = "id",
    most_publications: int = MAX_PUBLICATIONS,
    metadata_batch: int = DEFAULT_BATCH_SIZE,
    once: bool = False,
    drain: float = DRAIN_SECONDS,
    budget: Budget = DEFAULT_BUDGET,
    suspend_after: int = SUSPEND_AFTER,
    stop: Event | None = None,
    listener: StreamListener | None = None,
) -> StreamProgress:
    """Run the stream until `stop` is set or, with `once`, until what is present is processed.

    The current batch then has `drain` seconds to finish. The result is the progress of the publications; metadata
    progress goes to the listener only.
    """
    home = Path(home).absolute()
    name = "" if once else uuid4().hex[:8]
    stream = PublicationStream(
        home,
        resolve_url(store_url),
        _resolve_path(folder),
        id_field,
        most_publications,
        name,
        budget,
        suspend_after,
        once,
    )
    metadata = MetadataStream(home, stream.store, metadata_batch, budget, once)
    opening = StreamStart(stream.source, spark_ui=find_spark_ui(session))
    tell = StreamEventRelay(opening, listener or (lambda event: None), starts_with_batch=not once)
    with checkpoint.hold_run_lock(home):
        _end_previous_run(session, home)
        _repair(stream, metadata, tell)
        _prepare(stream, metadata)
        with open_store(stream.store) as store, record_session(session, home):
            release_deferred(store, tell)
            position, lag, segments = _find_start(stream, store)
            if once:
                tell(replace(opening, position=position, lag=lag, segments=segments))
            begin = partial(StreamSupervisor, session, stream, metadata, once, drain)
            index = None if once else open_current_index(stream.segments)
            with warm_up_beside(session, index, None if stream.folder else stream.store):
                return _follow(begin, store, stop or Event(), tell, list_pauses(once))


def _follow(
    begin: Callable[[], StreamSupervisor],
    store: Store,
    stop: Event,
    tell: StreamListener,
    pauses: Iterable[float],
) -> StreamProgress:
    def follow(queries: StreamSupervisor) -> StreamProgress:
        return queries.follow(store, stop, tell)

    return follow_queries(begin, follow, stop, pauses)


def list_pauses(once: bool) -> Iterable[float]:
    """Return the seconds before each restart."""
    return PAUSES if once else chain(PAUSES, repeat(PAUSES[-1]))


def follow_queries(
    begin: Callable[[], Q],
    follow: Callable[[Q], P],
    stop: Event,
    pauses: Iterable[float],
) -> P:
    """Follow the queries to their end; restart them if Python processes start too slowly.

    Spark's limit of ten seconds cannot be configured. On a busy machine a process may take longer; the next one finds
    the modules to import in memory.
    """
    remaining = iter(pauses)
    while True:
        try:
            queries = begin()
            with queries:
                return follow(queries)
        except SlowStart as problem:
            pause = next(remaining, None)
            if pause is None or stop.is_set():
                raise
            _log.warning("%s; the stream restarts in %g s", problem, pause)
            stop.wait(pause)


def _resolve_path(folder: str | Path | None) -> str | None:
    """Make a folder independent of the working directory."""
    if folder is None:
        return None
    return str(folder) if "://" in str(folder) else str(Path(folder).absolute())


def resolve_url(store_url: str) -> str:
    """Make a store address independent of the working directory; raise if the store is unusable."""
    with open_store(store_url) as store:
        return store.database.engine.url.render_as_string(hide_password=False)


def _end_previous_run(session: SparkSession, home: Path) -> None:
    """End queries and wait for a batch that a killed stream of this home folder may have left."""
    end_previous_session(session, home)
    checkpoint.await_previous_jvm(home)


def _repair(stream: PublicationStream, metadata: MetadataStream, tell: StreamListener) -> None:
    repairs = [
        *checkpoint.repair_checkpoint(stream.checkpoint),
        *checkpoint.repair_checkpoint(metadata.checkpoint),
    ]
    for what in (*repairs, *live_index.repair_index(stream.segments)):
        tell(StreamRepair(what))


def _prepare(stream: PublicationStream, metadata: MetadataStream) -> None:
    """Create the folders of the stream, without unfinished results of an earlier run."""
    checkpoint.read_stream_id(stream.checkpoint)
    shutil.rmtree(stream.batches, ignore_errors=True)
    private_folder(stream.segments)
    if not stream.batches.exists():  # if it could not be removed, the first batch reports why
        private_folder(stream.batches)
    stream.status.unlink(missing_ok=True)
    metadata.status.unlink(missing_ok=True)


def _find_start(stream: PublicationStream, store: Store) -> tuple[int, int, int]:
    """Return where the stream continues, its lag, and the segments of its index.

    The lag of a folder is unknown until the first batch.
    """
    index = open_current_index(stream.segments)
    segments = index.segments if index else 0
    if stream.folder:
        return stream.position(store), 0, segments
    head, position = store.journal.head(), checkpoint.read_position(stream.checkpoint)
    if position <= head:  # else the checkpoint belongs to another store, and the source will refuse it
        store.notifications.reach(position)
    position = stream.position(store)
    return position, max(0, head - position), segments
