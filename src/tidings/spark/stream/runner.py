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
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from copy import deepcopy
from functools import partial
from itertools import chain, repeat
from pathlib import Path
from threading import Event
from uuid import uuid4

from pyspark.sql import SparkSession
from pyspark.sql.utils import is_remote

from tidings.core.atomic_files import private_folder, write_atomically
from tidings.errors import SlowStart
from tidings.metadata.provider.provider import DEFAULT_BATCH_SIZE
from tidings.metadata.spark.metadata_stream import MetadataStream
from tidings.spark import checkpoint
from tidings.spark.stream import live_index
from tidings.spark.stream.batch_processor import MAX_PUBLICATIONS, SUSPEND_AFTER, PublicationStream
from tidings.spark.stream.budget import DEFAULT_BUDGET, Budget
from tidings.spark.stream.live_index import open_current_index
from tidings.spark.stream.progress import (
    StreamEventRelay,
    StreamListener,
    StreamProgress,
    StreamRepair,
    StreamStart,
)
from tidings.spark.stream.supervisor import StreamSupervisor, release_deferred
from tidings.store.store import Store, open_store

# Streams through Spark Connect: a query lives on the server, and goes on when the process that started it has died.
#
#     <home>/connect-session       the session on the server that a stream runs in, while it does
#
# Nothing is lost by that, but the next stream of this home could not begin, for an hour, until the server gives an
# abandoned session up. So whoever comes next ends the session whose name is still there.


SESSION_FILE = "connect-session"


@contextmanager
def record_session(session: SparkSession, home: Path) -> Iterator[None]:
    """Keep the name of the session in the home folder until the end of the `with`. After a failure it stays: what is
    left on the server then is ended by whoever comes next.
    """
    if not is_remote():
        yield
        return
    write_atomically(home / SESSION_FILE, session.session_id, private=True)
    yield
    (home / SESSION_FILE).unlink()


def end_previous_session(session: SparkSession, home: Path) -> None:
    """End the session of a stream that was killed, and with it the queries that it has left on the server.

    A server that does not know the session, because it was started anew or has given it up, has nothing to do.
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
"""How long a batch that is under way has to end when the stream ends."""
PAUSES = (1.0, 2.0, 4.0, 8.0, 16.0)
"""Seconds before queries start again whose Python processes were too slow to start; a stream that goes on for ever
repeats the last one."""

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
    tell = StreamEventRelay(stream.source, listener or (lambda news: None), starts_with_batch=not once)
    with checkpoint.hold_run_lock(home):
        _end_earlier(session, home)
        _repair(stream, metadata, tell)
        _prepare(stream, metadata)
        with open_store(stream.store) as store, record_session(session, home):
            release_deferred(store, tell)
            beginning = _beginning(stream, store)
            if once:
                tell(beginning)
            begin = partial(StreamSupervisor, session, stream, metadata, once, drain)
            return _follow(
                begin, store, stop or Event(), tell, PAUSES if once else chain(PAUSES, repeat(PAUSES[-1]))
            )


def _follow(
    begin: Callable[[], StreamSupervisor],
    store: Store,
    stop: Event,
    tell: StreamListener,
    pauses: Iterable[float],
) -> StreamProgress:
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
    end_previous_session(session, home)
    checkpoint.await_previous_jvm(home)


def _repair(stream: PublicationStream, metadata: MetadataStream, tell: StreamListener) -> None:
    found = [
        *checkpoint.repair_checkpoint(stream.checkpoint),
        *checkpoint.repair_checkpoint(metadata.checkpoint),
    ]
    for what in (*found, *live_index.repair_index(stream.segments)):
        tell(StreamRepair(what))


def _prepare(stream: PublicationStream, metadata: MetadataStream) -> None:
    """The folders the stream needs, without what an earlier run left half done."""
    checkpoint.read_stream_id(stream.checkpoint)
    shutil.rmtree(stream.batches, ignore_errors=True)
    private_folder(stream.segments)
    if not stream.batches.exists():  # what else is there is found by the batch, which says so
        private_folder(stream.batches)
    stream.status.unlink(missing_ok=True)
    metadata.status.unlink(missing_ok=True)


def _beginning(stream: PublicationStream, store: Store) -> StreamStart:
    """Where the stream goes on. How many files a folder has is known with the first batch."""
    index = open_current_index(stream.segments)
    segments = index.segments if index else 0
    if stream.folder:
        return StreamStart(stream.source, stream.position(store), 0, segments)
    head, position = store.journal.head(), checkpoint.read_position(stream.checkpoint)
    if position <= head:  # else the checkpoint is of another store, and is refused soon
        store.notifications.reach(position)
    position = stream.position(store)
    return StreamStart(stream.source, position, max(0, head - position), segments)
