"""Shared log in a Kafka topic: all providers that share it append to it and apply it.

    offset      0   1   2   3        assigned by the broker
    position    1   2   3   4        the first position depends on retention: 1, if all messages are kept

The value of a message is the body, the key the URI; headers have operation and media type. So Kafka's own tools show
documents as they were registered, by their URIs.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from concurrent.futures import Future
from contextlib import closing
from threading import Lock
from time import monotonic
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from tidings.errors import InputError, TidingsError
from tidings.metadata.log import LogDraft, LogEntry, LogPage, Operation
from tidings.metadata.provider.provider import Provider
from tidings.metadata.replication.kafka_client import (
    ADMIN_TIMEOUT_SECONDS,
    POLL_SECONDS,
    KafkaClient,
    KafkaErrorListener,
    KafkaTopic,
)
from tidings.metadata.replication.peer import SharedReplicationLog, Unreachable
from tidings.metadata.sql.log_rows import LOG_PAGE_ENTRIES, MAX_PAGE_BYTES, check_not_trimmed
from tidings.operations.kafka_address import KafkaAddress
from tidings.store.encoding import escape_unstorable

OPERATION_HEADER, MEDIA_TYPE_HEADER = "tidings-what", "tidings-media-type"


def to_message(draft: LogDraft) -> dict[str, Any]:
    """Convert a draft to arguments of `produce`. Texts are escaped as in stores, with which they are compared."""
    headers = [
        (OPERATION_HEADER, draft.what.value.encode()),
        (MEDIA_TYPE_HEADER, escape_unstorable(draft.media_type).encode()),
    ]
    return {"key": escape_unstorable(draft.uri).encode(), "value": draft.body, "headers": headers}


def from_message(message: Message, position: int) -> LogEntry:
    """Parse a message; raise InputError for a foreign one. Skipping it would make the logs of providers differ."""
    headers: dict[str, Any] = dict(message.headers() or ())
    try:
        operation, media_type = (
            Operation(headers[OPERATION_HEADER].decode()),
            headers[MEDIA_TYPE_HEADER].decode(),
        )
        return LogEntry(
            position, operation, (message.key() or b"").decode(), media_type, message.value() or b""
        )
    except (KeyError, ValueError, AttributeError) as error:
        received = f"offset {position - 1}: {(message.value() or b'')[:100]!r}"
        hint = "another program writes to the topic; use a new one for providers only"
        raise InputError("not an entry of a log", received=received, hint=hint) from error


# The consumer does not use a consumer group: it commits no offsets and assigns the partition itself. The provider's
# store has the position. Prefetched messages stay in the consumer for the next page.


CONSUMER_SETTINGS = {
    "group.id": "tidings",  # librdkafka requires one
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    "auto.offset.reset": "error",
    "enable.partition.eof": True,  # to detect a gap at the end
}


class KafkaLogReader:
    """Reader of a topic in the order of offsets, for one thread."""

    def __init__(self, client: KafkaClient) -> None:
        self._client, self._listener = client, KafkaErrorListener(client)
        self._consumer = Consumer(client.settings(CONSUMER_SETTINGS, self._listener))
        self._next: int | None = None
        """The offset of the next message; None if the consumer has to be positioned."""

    def read(self, after: int, limit: int, until: float) -> list[LogEntry]:
        """Return entries after a position, waiting until a deadline; none if the position is outside of the topic.

        An invalid message raises an error only if it is the first: so all providers stop at the same position.
        """
        if self._next != after:
            self._consumer.assign([TopicPartition(self._client.topic, 0, after)])
            self._next = after
        entries: list[LogEntry] = []
        size = 0
        while len(entries) < limit and size < MAX_PAGE_BYTES:
            message = self._receive_message(until if not entries else 0)
            if message is None:
                break
            try:
                entry = self._parse_message(message)
            except TidingsError:
                self._next = None
                if entries:
                    break
                raise
            if entry is not None:
                entries.append(entry)
                size += len(entry.body)
        return entries

    def close(self) -> None:
        self._consumer.close()

    def _receive_message(self, until: float) -> Message | None:
        """Return the next message; one that was already received is returned even after the deadline."""
        while self._next is not None:
            remaining = until - monotonic()
            message: Message | None = self._consumer.poll(max(0.0, min(remaining, POLL_SECONDS)))
            if message is not None:
                return message
            if self._listener.down.is_set():
                self._listener.down.clear()
                raise self._client.problem()
            if remaining <= 0 or self._client.ended.is_set():
                break
        return None

    def _parse_message(self, message: Message) -> LogEntry | None:
        """Parse a message; None if it signals the end of the topic, or a position outside of it."""
        error, offset = message.error(), message.offset()
        if error and error.code() == KafkaError._AUTO_OFFSET_RESET:
            self._next = None
            return None
        if error and error.code() != KafkaError._PARTITION_EOF:
            raise self._client.problem(error)
        if offset is None or offset != self._next:
            raise self._build_gap_error(offset)
        if error:
            return None
        self._next = offset + 1
        return from_message(message, self._next)

    def _build_gap_error(self, offset: int | None) -> InputError:
        return InputError(
            "the topic has a gap, so it cannot be used as a log",
            where=self._client.name,
            received=f"offset {offset} instead of {self._next}",
            hint="does a program write to it in transactions, or was it compacted?",
        )


# An entry is durable when all in-sync replicas have it and its offset is known. The producer is idempotent, so a retry
# after a lost acknowledgement does not write twice. It is not transactional, since the end of a transaction takes an
# offset.


WRITE_TIMEOUT_SECONDS = 10.0
"""The timeout of a write. An entry that timed out is not written later."""
MAX_MESSAGE_BYTES = 100_000_000
"""The client's limit of a message. The topic's limit is its `max.message.bytes`."""

DeliveryReport = tuple[KafkaError | None, Message]


class KafkaLogWriter:
    """Writer to a topic, for any number of threads."""

    def __init__(self, client: KafkaClient) -> None:
        self._client, self._guard = client, Lock()
        self._producer: Producer | None = None

    def append(self, draft: LogDraft) -> int:
        """Append a draft durably, and return its position."""
        producer = self._get_producer()
        try:
            error, message = self._deliver(producer, draft)
        except KafkaException as refused:
            error, message = refused.args[0], None
        offset = message.offset() if message is not None and not error else None  # an empty message is falsy
        if offset is None or offset < 0:
            self._discard_producer(producer)
            raise self._problem(error)
        return offset + 1

    def close(self) -> None:
        with self._guard:
            self._producer = None

    def _deliver(self, producer: Producer, draft: LogDraft) -> DeliveryReport:
        done: Future[DeliveryReport] = Future()
        producer.produce(
            self._client.topic,
            partition=0,
            on_delivery=lambda error, message: done.set_result((error, message)),
            **to_message(draft),
        )
        while not done.done():
            producer.poll(POLL_SECONDS)
        return done.result()

    def _get_producer(self) -> Producer:
        with self._guard:
            if self._producer is None:
                self._producer = Producer(self._client.settings(_settings()))
            return self._producer

    def _discard_producer(self, failed: Producer) -> None:
        """Use a new producer for the next entry: an idempotent one may be unusable after an error.

        It is not closed: another thread may still wait for an acknowledgement.
        """
        with self._guard:
            if self._producer is failed:
                self._producer = None

    def _problem(self, error: KafkaError | None) -> TidingsError:
        where, received = self._client.name, error.str() if error else "no offset"
        if error and error.code() == KafkaError.MSG_SIZE_TOO_LARGE:
            hint = "the limit is the topic's setting max.message.bytes"
            return InputError("this is too large for the topic", where=where, received=received, hint=hint)
        hint = "it may be in the log anyway; it is safe to register it again"
        return Unreachable("Kafka did not confirm the entry", where=where, received=received, hint=hint)


def _settings() -> dict[str, object]:
    return {
        "enable.idempotence": True,  # and with it acks=all
        "linger.ms": 0,
        "message.timeout.ms": int(WRITE_TIMEOUT_SECONDS * 1000),
        "message.max.bytes": MAX_MESSAGE_BYTES,
    }


class KafkaLog(SharedReplicationLog):
    """A shared log in a topic, for one of its providers."""

    def __init__(self, address: KafkaAddress, provider: Provider) -> None:
        super().__init__(address.name, provider)
        self._client = KafkaClient(address)
        self._topic = KafkaTopic(self._client)
        self._reader, self._writer = KafkaLogReader(self._client), KafkaLogWriter(self._client)
        self._is_steady = False

    def page(self, after: int, limit: int, wait: float) -> LogPage:
        """Return entries after a position. The first call after a failure does not wait, to detect recovery at once."""
        first_wait, self._is_steady = wait if self._is_steady else 0.0, False
        page = self._page(after, limit, first_wait) or self._page(
            after, limit, max(wait, ADMIN_TIMEOUT_SECONDS)
        )
        if page is None:
            raise self._client.problem()
        self._is_steady = True
        return page

    def _page(self, after: int, limit: int, wait: float) -> LogPage | None:
        """Return a page; None if there are later entries that have not been received yet.

        The state of the topic is read last: if the topic was replaced, the page has the id of the new one, and the
        follower compares logs before it applies anything.
        """
        entries = self._reader.read(after, limit, monotonic() + wait)
        topic = self._topic.read_state()
        if not entries:
            check_not_trimmed(topic.first, after)
            if topic.head > after:
                return None
        return LogPage(topic.id, topic.first, topic.head, tuple(entries))

    def append(self, draft: LogDraft) -> int:
        return self._writer.append(draft)

    def last_of(self, uris: Collection[str], after: int) -> dict[str, Operation]:
        """Return the last operation on documents, with a separate reader. Mostly there is nothing to read."""
        by_name = {escape_unstorable(uri): uri for uri in uris}
        entries = [entry for entry in self._entries_after(after) if entry.what is not Operation.SCHEMA]
        return {by_name[entry.uri]: entry.what for entry in entries if entry.uri in by_name}

    def _entries_after(self, after: int) -> Iterator[LogEntry]:
        """Yield all current entries after a position."""
        topic = self._topic.read_state()
        check_not_trimmed(topic.first, after)
        if after >= topic.head:
            return
        with closing(KafkaLogReader(self._client)) as reader:
            while after < topic.head:
                entries = reader.read(after, LOG_PAGE_ENTRIES, monotonic() + ADMIN_TIMEOUT_SECONDS)
                if not entries:
                    raise self._client.problem()
                yield from entries
                after = entries[-1].position

    def end(self) -> None:
        self._client.ended.set()

    def close(self) -> None:
        self._reader.close()
        self._writer.close()
