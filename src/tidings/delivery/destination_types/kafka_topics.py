"""Kafka topics: the key is the subscription and the value a CloudEvent, so each subscription keeps its order.

The producer is idempotent: a retry after a lost acknowledgement adds no duplicate. A run is sent as a whole, and its
cursor moves to the last message that the broker has acknowledged.

librdkafka opens its own connections, to all brokers that the first one lists, so the egress policy cannot check them. A
target may therefore name only brokers from the settings of the service, or any broker if private networks are allowed.
Only settings for authentication may be given: others run commands or read files.
"""

from __future__ import annotations

from collections.abc import Sequence
from threading import Lock
from time import monotonic
from typing import Any

from tidings.delivery.delivery_policy import DeliveryPolicy
from tidings.delivery.destination_types.sender import Refusal, SendResult, StopCheck
from tidings.delivery.messages import Message
from tidings.delivery.sql.destination_store import Destination
from tidings.errors import InputError, SetupError
from tidings.operations.kafka_address import KafkaAddress, parse_kafka_address

try:
    from confluent_kafka import KafkaError, KafkaException, Producer
    from confluent_kafka import Message as Written
except ModuleNotFoundError:  # an optional dependency
    Producer = None  # type: ignore[assignment,misc]

SETTINGS = ("security.protocol", "sasl.mechanism", "sasl.mechanisms", "sasl.username", "sasl.password")
MAX_PRODUCERS = 20
"""Maximum number of open producers; the oldest is closed first."""
POLL_SECONDS = 0.1
MAX_MESSAGE_BYTES = 10_000_000


class KafkaTopics:
    """Sender of messages to Kafka topics."""

    def __init__(self, policy: DeliveryPolicy) -> None:
        self._policy, self._guard = policy, Lock()
        self._producers: dict[KafkaAddress, Any] = {}
        self._ended = False

    def check(self, target: str) -> str:
        address = parse_kafka_address(target) if target.startswith("kafka://") else None
        if address is None:
            accepted = "kafka://HOST:PORT/TOPIC"
            raise InputError("invalid address of a Kafka topic", where="target", accepted=accepted)
        forbidden = [name for name, _ in address.settings if name not in SETTINGS]
        if forbidden:
            accepted = ", ".join(SETTINGS)
            raise InputError(
                "this Kafka setting is not allowed", received=forbidden[0][:100], accepted=accepted
            )
        foreign = [host for host in address.hosts if host not in self._policy.brokers]
        if foreign and not self._policy.inside:
            accepted = ", ".join(self._policy.brokers) or "none"
            hint = "the operator of the service can allow brokers: delivery.brokers"
            raise InputError("this broker is not allowed", received=foreign[0], accepted=accepted, hint=hint)
        _check_installed()
        return ",".join(address.hosts)

    def mask_target(self, target: str) -> str:
        return parse_kafka_address(target).name

    def send(self, to: Destination, messages: Sequence[Message], enough: StopCheck) -> SendResult:
        """Send all messages at once; if one is too large, send them one by one to find it."""
        address = parse_kafka_address(to.target)
        sent = self._write(address, messages)
        if not (sent.refusal and sent.refusal.hopeless and len(messages) > 1):
            return sent
        for number in range(sent.accepted, len(messages)):
            alone = self._write(address, messages[number : number + 1])
            if alone.refusal or enough():
                return SendResult(number + alone.accepted, alone.refusal)
        return SendResult(len(messages))

    def _write(self, address: KafkaAddress, messages: Sequence[Message]) -> SendResult:
        """Pass messages to the producer, and wait for its delivery reports."""
        reports: dict[int, KafkaError | None] = {}
        try:
            producer = self._producer(address)
            failed = self._produce(producer, address, messages, reports)
        except KafkaException as error:
            return SendResult(0, _refusal(error.args[0]))
        until = monotonic() + self._policy.times.total
        while len(reports) < len(messages) and not failed and monotonic() < until and not self._ended:
            producer.poll(POLL_SECONDS)
        count = len(messages)
        accepted = next((n for n in range(count) if reports.get(n, _MISSING) is not None), count)
        if accepted == count:
            return SendResult(accepted)
        self._drop(address, producer)
        report = reports.get(accepted)
        return SendResult(
            accepted, _refusal(report) if report else Refusal("Kafka did not acknowledge the message")
        )

    def end(self) -> None:
        self._ended = True

    def close(self) -> None:
        """Discard unsent messages: none of them was reported as delivered."""
        with self._guard:
            for producer in self._producers.values():
                producer.purge()
            self._producers.clear()

    def _produce(
        self,
        producer: Any,
        address: KafkaAddress,
        messages: Sequence[Message],
        reports: dict[int, KafkaError | None],
    ) -> bool:
        for number, message in enumerate(messages):

            def reported(error: KafkaError | None, _: Written, number: int = number) -> None:
                reports[number] = error

            key = message.subscription.encode()
            headers = {"content-type": b"application/cloudevents+json", "webhook-id": message.id.encode()}
            try:
                producer.produce(
                    address.topic, message.text.encode(), key, headers=headers, on_delivery=reported
                )
            except KafkaException as error:  # for example too large; earlier messages are still sent
                reports[number] = error.args[0]
                producer.flush(self._policy.times.total)
                return True
            producer.poll(0)
        return False

    def _producer(self, address: KafkaAddress) -> Any:
        _check_installed()
        with self._guard:
            if address not in self._producers:
                while len(self._producers) >= MAX_PRODUCERS:
                    self._producers.pop(next(iter(self._producers)))
                self._producers[address] = Producer(self._settings(address))
            return self._producers[address]

    def _drop(self, address: KafkaAddress, failed: Any) -> None:
        """Discard a producer: an idempotent one may be unusable after an error."""
        with self._guard:
            if self._producers.get(address) is failed:
                del self._producers[address]
        failed.purge()

    def _settings(self, address: KafkaAddress) -> dict[str, Any]:
        return {
            "bootstrap.servers": ",".join(address.hosts),
            "client.id": "tidings",
            "log_level": 0,
            "enable.idempotence": True,  # and with it acks=all
            "linger.ms": 5,
            "message.timeout.ms": int(self._policy.times.total * 1_000),
            "message.max.bytes": MAX_MESSAGE_BYTES,
            "topic.metadata.refresh.interval.ms": 60_000,
            "error_cb": lambda _: None,  # delivery reports have the errors
            **dict(address.settings),
        }


_MISSING = object()


def _check_installed() -> None:
    if Producer is None:
        hint = "pip install 'tidings[kafka]'"
        raise SetupError("the Kafka client is not installed", hint=hint)


def _refusal(error: Any) -> Refusal:
    hopeless = error.code() in (KafkaError.MSG_SIZE_TOO_LARGE, KafkaError.INVALID_RECORD)
    return Refusal(f"Kafka: {error.str()}", hopeless=hopeless)
