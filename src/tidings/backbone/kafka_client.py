"""What the reader, the writer and the administrator of a topic have in common: settings, and how failures are told.

librdkafka connects by itself, again and again, in threads of its own, and writes to standard error what it finds. Here
it is silent: what it said last is in the error of whoever waits in vain.
"""

from __future__ import annotations

from threading import Event
from typing import Any

from confluent_kafka import KafkaError

from tidings.backbone.peer import Unreachable
from tidings.errors import InputError, TidingsError
from tidings.web.kafka_address import Address

LOOK_SECONDS = 0.2
"""How long at most until it is noticed that nobody should wait any more."""
RECONNECT_MILLISECONDS = 2_000
TELLING = (KafkaError._AUTHENTICATION, KafkaError._SSL)


class Client:
    """How a topic is reached."""

    def __init__(self, address: Address) -> None:
        self.name, self.topic = address.name, address.topic
        self.ended = Event()
        self._address = address
        self._said: KafkaError | None = None

    def settings(self, more: dict[str, Any], ear: Ear | None = None) -> dict[str, Any]:
        common = {
            "bootstrap.servers": ",".join(self._address.hosts),
            "client.id": "tidings",
            "log_level": 0,
            "reconnect.backoff.max.ms": RECONNECT_MILLISECONDS,
            "error_cb": ear or Ear(self),
        }
        return {**common, **dict(self._address.settings), **more}

    def heard(self, error: KafkaError) -> None:
        """Keep what went wrong beside what was asked for. A wrong password tells more than a host that is away."""
        if self._said is None or error.code() in TELLING or self._said.code() not in TELLING:
            self._said = error

    def answered(self) -> None:
        """What went wrong before is over."""
        self._said = None

    def refused_settings(self, error: KafkaError) -> InputError:
        return InputError("Kafka's client refuses a setting", where=self.name, received=error.str())

    def problem(self, error: KafkaError | None = None) -> TidingsError:
        """What to tell of an error; without one, nobody answered."""
        if error and error.code() in (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC):
            return self._no_topic()
        reason, hint = self._said or error, "does a broker run there?"
        said = reason.str() if reason else "nothing"
        return Unreachable("Kafka does not answer", where=self.name, received=said, hint=hint)

    def no_more(self) -> Unreachable:
        return Unreachable("it is asked no more", where=self.name)

    def _no_topic(self) -> InputError:
        hint = f"kafka-topics.sh --create --topic {self.topic} --partitions 1 --config retention.ms=-1"
        return InputError("there is no such topic", where=self.name, hint=hint)


class Ear:
    """What librdkafka calls with all that goes wrong, while it is polled; `down` if there is nobody left to ask."""

    def __init__(self, client: Client) -> None:
        self._client, self.down = client, Event()

    def __call__(self, error: KafkaError) -> None:
        if error.code() == KafkaError._ALL_BROKERS_DOWN:
            self.down.set()
        else:
            self._client.heard(error)
