"""The queries of a stream, followed until they end: that of the publications, and the one that applies metadata."""

from __future__ import annotations

from contextlib import ExitStack, closing
from threading import Event

from pyspark.sql import SparkSession

from tidings.spark import checkpoint
from tidings.spark.metadata_stream import MetadataStream
from tidings.spark.news import HandedOver, Listener, Progress
from tidings.spark.publication_stream import PublicationStream
from tidings.spark.queries import Query
from tidings.spark.rehearsal import Workers
from tidings.store import Store

POLL_SECONDS = 0.1


class Together(ExitStack):
    """The query of the publications and, when there is something in the log of metadata, the one that applies it."""

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
            hand_over(store, tell)
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


def hand_over(store: Store, tell: Listener) -> None:
    if count := store.notifications.hand_over():
        tell(HandedOver(count))
