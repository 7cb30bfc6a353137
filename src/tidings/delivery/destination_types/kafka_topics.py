"""Topics of Kafka: the key is the subscription, the value a CloudEvent, so each subscription keeps its order.

The producer is idempotent: what it sends again after a lost answer does not come twice. A run is sent as a whole, and
its cursor moves as far as the broker has said that it has it.

librdkafka connects by itself, to whatever brokers the first one names. So brokers in private networks cannot be told
from others, and only those may be named that whoever runs the service has named first, or all if private networks are
allowed. Of its settings only those may be given by which one gets in: others run commands or read files.
"""

from __future__ import annotations

from collections.abc import Sequence
from threading import Lock
from time import monotonic
from typing import Any

from tidings.delivery.destination_types.sender import Refusal, SendResult, StopCheck
from tidings.delivery.messages import Message
from tidings.delivery.policy import DeliveryPolicy
from tidings.delivery.sql.destination_store import Destination
from tidings.errors import InputError, SetupError
from tidings.operations.kafka_address import KafkaAddress, parse_kafka_address

try:
    from confluent_kafka import KafkaError, KafkaException, Producer
    from confluent_kafka import Message as Written
except ModuleNotFoundError:  # it is an extra
    Producer = None  # type: ignore[assignment,misc]

SETTINGS = ("security.protocol", "sasl.mechanism", "sasl.mechanisms", "sasl.username", "sasl.password")
KEPT = 20
"""How many producers are kept; the one that was made first goes first."""
LOOK_SECONDS = 0.1
LARGEST = 10_000_000


class KafkaTopics:
    """Writes to topics."""

    def __init__(self, rules: DeliveryPolicy) -> None:
        self._rules, self._guard = rules, Lock()
        self._producers: dict[KafkaAddress, Any] = {}
        self._ended = False

    def check(self, target: str) -> str:
        address = parse_kafka_address(target) if target.startswith("kafka://") else None
        if address is None:
            accepted = "kafka://HOST:PORT/TOPIC"
            raise InputError("no address of a topic", where="target", accepted=accepted)
        wrong = [name for name, _ in address.settings if name not in SETTINGS]
        if wrong:
            accepted = ", ".join(SETTINGS)
            raise InputError("no setting of a destination", received=wrong[0][:100], accepted=accepted)
        strange = [host for host in address.hosts if host not in self._rules.brokers]
        if strange and not self._rules.inside:
            accepted = ", ".join(self._rules.brokers) or "none"
            hint = "whoever runs the service names the brokers that may be used"
            raise InputError("no broker that may be used", received=strange[0], accepted=accepted, hint=hint)
        _installed()
        return ",".join(address.hosts)

    def shown(self, target: str) -> str:
        return parse_kafka_address(target).name

    def send(self, to: Destination, messages: Sequence[Message], enough: StopCheck) -> SendResult:
        """All at once; if that is more than the broker takes at once, one by one, to find the one that is too large."""
        address = parse_kafka_address(to.target)
        sent = self._write(address, messages)
        if not (sent.refusal and sent.refusal.hopeless and len(messages) > 1):
            return sent
        for number in range(sent.taken, len(messages)):
            alone = self._write(address, messages[number : number + 1])
            if alone.refusal or enough():
                return SendResult(number + alone.taken, alone.refusal)
        return SendResult(len(messages))

    def _write(self, address: KafkaAddress, messages: Sequence[Message]) -> SendResult:
        """Hand messages to the producer, and await its reports."""
        reports: dict[int, KafkaError | None] = {}
        try:
            producer = self._producer(address)
            refused = self._produce(producer, address, messages, reports)
        except KafkaException as error:
            return SendResult(0, _refusal(error.args[0]))
        until = monotonic() + self._rules.times.total
        while len(reports) < len(messages) and not refused and monotonic() < until and not self._ended:
            producer.poll(LOOK_SECONDS)
        taken = next((n for n in range(len(messages)) if reports.get(n, _MISSING) is not None), len(messages))
        if taken == len(messages):
            return SendResult(taken)
        self._drop(address, producer)
        said = reports.get(taken)
        return SendResult(taken, _refusal(said) if said else Refusal("Kafka does not say that it has it"))

    def end(self) -> None:
        self._ended = True

    def close(self) -> None:
        """What a producer did not send yet is not sent any more: nobody has said that it was."""
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
            except KafkaException as error:  # too large, say; what was given before goes on
                reports[number] = error.args[0]
                producer.flush(self._rules.times.total)
                return True
            producer.poll(0)
        return False

    def _producer(self, address: KafkaAddress) -> Any:
        _installed()
        with self._guard:
            if address not in self._producers:
                while len(self._producers) >= KEPT:
                    self._producers.pop(next(iter(self._producers)))
                self._producers[address] = Producer(self._settings(address))
            return self._producers[address]

    def _drop(self, address: KafkaAddress, failed: Any) -> None:
        """The next run gets a new one: an idempotent producer may be of no use any more after an error."""
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
            "message.timeout.ms": int(self._rules.times.total * 1_000),
            "message.max.bytes": LARGEST,
            "topic.metadata.refresh.interval.ms": 60_000,
            "error_cb": lambda _: None,  # what went wrong is said by the reports
            **dict(address.settings),
        }


_MISSING = object()


def _installed() -> None:
    if Producer is None:
        hint = "pip install 'tidings[kafka]'"
        raise SetupError("the client of Kafka is not installed", hint=hint)


def _refusal(error: Any) -> Refusal:
    hopeless = error.code() in (KafkaError.MSG_SIZE_TOO_LARGE, KafkaError.INVALID_RECORD)
    return Refusal(f"Kafka: {error.str()}", hopeless=hopeless)
