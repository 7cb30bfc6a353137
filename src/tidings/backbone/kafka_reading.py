"""Reading a topic from a position on, each offset in turn.

A consumer without a group's ways: nothing is committed, and nobody shares out partitions. Where to read on is what the
store of the provider says. Messages that were fetched ahead wait in the consumer for the next page.
"""

from __future__ import annotations

from time import monotonic

from confluent_kafka import Consumer, KafkaError, Message, TopicPartition

from tidings.backbone.kafka_client import LOOK_SECONDS, Client, Ear
from tidings.backbone.kafka_entries import from_message
from tidings.errors import InputError, TidingsError
from tidings.metadata.log import Entry
from tidings.store.backbone import SIZE

SETTINGS = {
    "group.id": "tidings",  # librdkafka wants one
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    "auto.offset.reset": "error",
    "enable.partition.eof": True,  # by which a gap at the end is noticed
}


class Reader:
    """Reads for one thread."""

    def __init__(self, client: Client) -> None:
        self._client, self._ear = client, Ear(client)
        self._consumer = Consumer(client.settings(SETTINGS, self._ear))
        self._next: int | None = None
        """The offset of the message that comes next; nothing if the consumer has to be told where to begin."""

    def read(self, after: int, limit: int, until: float) -> list[Entry]:
        """Entries after a position: those that are there, or come until then; none if the topic does not reach there.

        What is wrong with a message is said when it is the first to be read: all providers stop at the same position.
        """
        if self._next != after:
            self._consumer.assign([TopicPartition(self._client.topic, 0, after)])
            self._next = after
        entries: list[Entry] = []
        size = 0
        while len(entries) < limit and size < SIZE:
            message = self._message(until if not entries else 0)
            if message is None:
                break
            try:
                entry = self._entry(message)
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

    def _message(self, until: float) -> Message | None:
        """The next one; what has come already is taken even if it is too late to wait."""
        while self._next is not None:
            left = until - monotonic()
            message: Message | None = self._consumer.poll(max(0.0, min(left, LOOK_SECONDS)))
            if message is not None:
                return message
            if self._ear.down.is_set():
                self._ear.down.clear()
                raise self._client.problem()
            if left <= 0 or self._client.ended.is_set():
                break
        return None

    def _entry(self, message: Message) -> Entry | None:
        """The entry that a message is; nothing if it says that the topic has no more, or does not reach here."""
        error, offset = message.error(), message.offset()
        if error and error.code() == KafkaError._AUTO_OFFSET_RESET:
            self._next = None
            return None
        if error and error.code() != KafkaError._PARTITION_EOF:
            raise self._client.problem(error)
        if offset is None or offset != self._next:
            raise self._gap(offset)
        if error:
            return None
        self._next = offset + 1
        return from_message(message, self._next)

    def _gap(self, offset: int | None) -> InputError:
        return InputError(
            "the topic has a gap, so it cannot be a log",
            where=self._client.name,
            received=f"offset {offset} instead of {self._next}",
            hint="does somebody write to it in transactions, or was it compacted?",
        )
