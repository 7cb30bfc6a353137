"""Supervisor of the queries of a stream: publications, and the metadata log."""

from __future__ import annotations

from contextlib import ExitStack, closing
from threading import Event

from pyspark.sql import SparkSession

from tidings.metadata.spark.metadata_stream import MetadataStream
from tidings.spark import checkpoint
from tidings.spark.stream.batch_processor import PublicationStream
from tidings.spark.stream.query import Query, explain_dead_jvm
from tidings.spark.stream.stream_events import (
    Activity,
    ActivityKind,
    DeferredRelease,
    StreamListener,
    StreamProgress,
)
from tidings.spark.stream.warm_up import WorkerKeepAlive
from tidings.store.store import Store

POLL_SECONDS = 0.1


class StreamSupervisor(ExitStack):
    """Runs the publication query and, once the metadata log has entries, the metadata query."""

    def __init__(
        self,
        session: SparkSession,
        stream: PublicationStream,
        metadata: MetadataStream,
        once: bool,
        drain: float,
    ) -> None:
        super().__init__()
        self._session, self._metadata, self._once, self._drain = session, metadata, once, drain
        self._stream, self._activity = stream, Activity(ActivityKind.STARTING)
        self._queries = [self.enter_context(closing(Query(session, stream, once, drain, is_own_source=True)))]
        self._workers = WorkerKeepAlive(session)

    def follow(self, store: Store, stop: Event, tell: StreamListener) -> StreamProgress:
        """Report progress until the queries end or `stop` is set.

        Deferred notifications are released from here, so that a long batch does not delay them.
        """
        tell(self._activity)
        with explain_dead_jvm():
            while not stop.is_set():
                if self._have_ended() and not self._begin_metadata(store):
                    break
                self._begin_metadata(store)
                self._tell(tell)
                self._tell_activity(store, tell)
                release_deferred(store, tell)
                self._keep_workers()
        self.close()
        self._tell(tell)
        return self._queries[0].last or StreamProgress()

    def _begin_metadata(self, store: Store) -> bool:
        """Start the metadata query if it is due; return whether it was started.

        Spark gives a Python process ten seconds to start. Two that start together on a busy machine may need longer.
        """
        is_due = len(self._queries) == 1 and checkpoint.is_source_started(self._metadata.home)
        if not is_due or not store.metadata.log.head():
            return False
        query = Query(self._session, self._metadata, self._once, self._drain, is_own_source=True)
        self._queries.append(self.enter_context(closing(query)))
        return True

    def _keep_workers(self) -> None:
        """Keep the workers alive after the first batch has warmed them up."""
        first = self._queries[0]
        if first.last and not self._once:
            self._workers.keep(first.last.batch, first.is_busy)

    def _tell_activity(self, store: Store, tell: StreamListener) -> None:
        """Report the activity of the publication query if it has changed."""
        now = self._activity_now(store)
        if now != self._activity:
            self._activity = now
            tell(now)

    def _activity_now(self, store: Store) -> Activity:
        first = self._queries[0]
        if self._stream.folder:  # the number of files is only known after the first batch
            return describe_activity(None, is_busy=first.is_busy(), is_started=first.last is not None)
        done = first.last.position if first.last else self._stream.position(store)
        waiting = max(0, store.journal.head() - done)
        return describe_activity(waiting, is_busy=first.is_busy(), is_started=first.last is not None)

    def _have_ended(self) -> bool:
        """Return whether all queries have ended; check each, since one may fail while another runs."""
        ended = [query.has_ended(POLL_SECONDS / len(self._queries)) for query in self._queries]
        return all(ended)

    def _tell(self, tell: StreamListener) -> None:
        for query in self._queries:
            query.tell(tell)


def describe_activity(waiting: int | None, *, is_busy: bool, is_started: bool) -> Activity:
    """Return the activity of a query with `waiting` publications (None: unknown)."""
    if is_busy and waiting != 0:
        return Activity(ActivityKind.MATCHING, waiting or 0)
    return Activity(ActivityKind.WAITING if is_started else ActivityKind.STARTING)


def release_deferred(store: Store, tell: StreamListener) -> None:
    if count := store.notifications.hand_over():
        tell(DeferredRelease(count))
