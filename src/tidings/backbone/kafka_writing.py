"""Writing to a topic: an entry is there when all replicas in sync have it, and its offset is known.

The producer is idempotent: what it sends again after a lost answer does not come twice. It is no transactional one,
since the end of a transaction takes an offset.
"""

from __future__ import annotations

from concurrent.futures import Future
from threading import Lock

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from tidings.backbone.kafka_client import LOOK_SECONDS, Client
from tidings.backbone.kafka_entries import to_message
from tidings.backbone.peer import Unreachable
from tidings.errors import InputError, TidingsError
from tidings.metadata.log import Draft

WRITE_SECONDS = 10.0
"""After that, what was not taken is given up: it does not come into the log later."""
LARGEST = 100_000_000
"""Bytes of a message. What a topic takes is said by its `max.message.bytes`."""

Delivered = tuple[KafkaError | None, Message]


class Writer:
    """Writes for any number of threads."""

    def __init__(self, client: Client) -> None:
        self._client, self._guard = client, Lock()
        self._producer: Producer | None = None

    def append(self, draft: Draft) -> int:
        """The position of a draft, durable now."""
        producer = self._current()
        try:
            error, message = self._delivered(producer, draft)
        except KafkaException as refused:
            error, message = refused.args[0], None
        offset = (
            message.offset() if message is not None and not error else None
        )  # one without a value is false
        if offset is None or offset < 0:
            self._drop(producer)
            raise self._problem(error)
        return offset + 1

    def close(self) -> None:
        with self._guard:
            self._producer = None

    def _delivered(self, producer: Producer, draft: Draft) -> Delivered:
        done: Future[Delivered] = Future()
        producer.produce(
            self._client.topic,
            partition=0,
            on_delivery=lambda error, message: done.set_result((error, message)),
            **to_message(draft),
        )
        while not done.done():
            producer.poll(LOOK_SECONDS)
        return done.result()

    def _current(self) -> Producer:
        with self._guard:
            if self._producer is None:
                self._producer = Producer(self._client.settings(_settings()))
            return self._producer

    def _drop(self, failed: Producer) -> None:
        """The next entry gets a new one: an idempotent producer may be of no use any more after an error.

        It is not closed: another thread may wait for an answer to it yet.
        """
        with self._guard:
            if self._producer is failed:
                self._producer = None

    def _problem(self, error: KafkaError | None) -> TidingsError:
        where, said = self._client.name, error.str() if error else "no offset"
        if error and error.code() == KafkaError.MSG_SIZE_TOO_LARGE:
            hint = "the topic's setting max.message.bytes says how much it takes"
            return InputError("this is too large for the topic", where=where, received=said, hint=hint)
        hint = "it may be in the log all the same; registering it again does no harm"
        return Unreachable("Kafka does not say that it has the entry", where=where, received=said, hint=hint)


def _settings() -> dict[str, object]:
    return {
        "enable.idempotence": True,  # and with it acks=all
        "linger.ms": 0,
        "message.timeout.ms": int(WRITE_SECONDS * 1000),
        "message.max.bytes": LARGEST,
    }
