"""Settings and errors shared by the reader, the writer and the admin client of a Kafka topic.

librdkafka reconnects in its own threads and logs to standard error. Here its log is off: the last error it reported is
part of the error that a caller gets.
"""

from __future__ import annotations

import logging
from concurrent.futures import Future
from dataclasses import dataclass
from threading import Event
from typing import Any

from confluent_kafka import IsolationLevel, KafkaError, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, OffsetSpec

from tidings.errors import InputError, TidingsError
from tidings.metadata.replication.peer import Unreachable
from tidings.operations.kafka_address import KafkaAddress

POLL_SECONDS = 0.2
"""The maximal delay until cancellation of a wait is detected."""
RECONNECT_MILLISECONDS = 2_000
DIAGNOSTIC_ERRORS = (KafkaError._AUTHENTICATION, KafkaError._SSL)


class KafkaClient:
    """Address and settings of a topic, and the last error."""

    def __init__(self, address: KafkaAddress) -> None:
        self.name, self.topic = address.name, address.topic
        self.ended = Event()
        self._address = address
        self._last_error: KafkaError | None = None

    def settings(self, options: dict[str, Any], listener: KafkaErrorListener | None = None) -> dict[str, Any]:
        common = {
            "bootstrap.servers": ",".join(self._address.hosts),
            "client.id": "tidings",
            "log_level": 0,
            "reconnect.backoff.max.ms": RECONNECT_MILLISECONDS,
            "error_cb": listener or KafkaErrorListener(self),
        }
        return {**common, **dict(self._address.settings), **options}

    def record_error(self, error: KafkaError) -> None:
        """Remember an asynchronous error. Authentication errors take precedence over unreachable hosts."""
        if (
            self._last_error is None
            or error.code() in DIAGNOSTIC_ERRORS
            or self._last_error.code() not in DIAGNOSTIC_ERRORS
        ):
            self._last_error = error

    def clear_error(self) -> None:
        """Clear the last error."""
        self._last_error = None

    def settings_error(self, error: KafkaError) -> InputError:
        return InputError("the Kafka client rejects a setting", where=self.name, received=error.str())

    def problem(self, error: KafkaError | None = None) -> TidingsError:
        """Build the error for the caller; without `error`, no broker has responded."""
        if error and error.code() in (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC):
            return self._missing_topic_error()
        reason, hint = self._last_error or error, "is a broker running there?"
        received = reason.str() if reason else "nothing"
        return Unreachable("Kafka does not respond", where=self.name, received=received, hint=hint)

    def closed_error(self) -> Unreachable:
        return Unreachable("the connection is closed", where=self.name)

    def _missing_topic_error(self) -> InputError:
        hint = f"kafka-topics.sh --create --topic {self.topic} --partitions 1 --config retention.ms=-1"
        return InputError("there is no such topic", where=self.name, hint=hint)


class KafkaErrorListener:
    """Callback of librdkafka for errors; `down` is set when all brokers are down."""

    def __init__(self, client: KafkaClient) -> None:
        self._client, self.down = client, Event()

    def __call__(self, error: KafkaError) -> None:
        if error.code() == KafkaError._ALL_BROKERS_DOWN:
            self.down.set()
        else:
            self._client.record_error(error)


# A topic that is a log has one partition, because only messages of one partition are ordered. Its offsets have no gaps
# as long as no program writes in transactions (the end of one takes an offset) and nothing is compacted: then a
# position is the offset plus one.


ADMIN_TIMEOUT_SECONDS = 5.0
UNLIMITED_RETENTION = "-1"

_log = logging.getLogger("tidings.metadata.replication")


@dataclass(frozen=True, slots=True)
class TopicState:
    """A topic at one moment. `id` changes when a topic is deleted and created again."""

    id: str
    first: int
    head: int


class KafkaTopic:
    """Admin client of a topic, which checks that the topic can be a log."""

    def __init__(self, client: KafkaClient) -> None:
        self._client, self._listener = client, KafkaErrorListener(client)
        try:
            self._admin = AdminClient(client.settings({}, self._listener))
        except KafkaException as error:
            raise client.settings_error(error.args[0]) from error
        self.read_state()
        self._check_retention()

    def read_state(self) -> TopicState:
        """Read where the log begins and ends now."""
        self._admin.poll(0)
        self._listener.down.clear()  # an earlier failure may be over
        topics = TopicCollection([self._client.topic])
        described = self._admin.describe_topics(topics, request_timeout=ADMIN_TIMEOUT_SECONDS)
        earliest, latest = (
            self._request_offset(OffsetSpec.earliest()),
            self._request_offset(OffsetSpec.latest()),
        )
        description = self._wait_for(described[self._client.topic])
        if len(description.partitions) != 1:
            received, hint = f"{len(description.partitions)} partitions", "only one partition has one order"
            raise self._build_topic_error(received, "one partition", hint)
        first, head = self._wait_for(earliest).offset + 1, self._wait_for(latest).offset
        self._client.clear_error()
        return TopicState(str(description.topic_id), first, head)

    def _request_offset(self, spec: OffsetSpec) -> Future[Any]:
        partition = TopicPartition(self._client.topic, 0)
        options = {"isolation_level": IsolationLevel.READ_COMMITTED, "request_timeout": ADMIN_TIMEOUT_SECONDS}
        future: Future[Any] = self._admin.list_offsets({partition: spec}, **options)[partition]
        return future

    def _check_retention(self) -> None:
        resource = ConfigResource(ConfigResource.Type.TOPIC, self._client.topic)
        settings = self._wait_for(
            self._admin.describe_configs([resource], request_timeout=ADMIN_TIMEOUT_SECONDS)[resource]
        )
        policy = settings["cleanup.policy"].value
        if "compact" in policy:
            hint = "a compacted topic loses entries in the middle"
            raise self._build_topic_error(f"cleanup.policy={policy}", "cleanup.policy=delete", hint)
        retention = {name: settings[name].value for name in ("retention.ms", "retention.bytes")}
        limited = [f"{name}={value}" for name, value in retention.items() if value != UNLIMITED_RETENTION]
        if limited:
            _log.warning("%s loses its first entries: %s, not -1", self._client.name, ", ".join(limited))

    def _build_topic_error(self, received: str, accepted: str, hint: str) -> InputError:
        message = "this topic cannot be a log"
        return InputError(message, where=self._client.name, received=received, accepted=accepted, hint=hint)

    def _wait_for(self, future: Future[Any]) -> Any:
        """Wait for a response, which arrives or fails in time. Waiting ends when the client is closed."""
        while not self._client.ended.is_set():
            try:
                return future.result(POLL_SECONDS)
            except TimeoutError:
                self._admin.poll(0)
                if self._listener.down.is_set():
                    raise self._client.problem() from None
            except KafkaException as error:
                self._admin.poll(0)
                raise self._client.problem(error.args[0]) from error
        raise self._client.closed_error()
