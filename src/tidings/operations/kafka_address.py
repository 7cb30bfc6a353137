"""The address of a Kafka topic: kafka://HOST:PORT,HOST:PORT/TOPIC?SETTING=VALUE.

The settings are those by which librdkafka gets in, `security.protocol` and `sasl.password` among them. They are not
part of the name that is stored and shown.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import unquote

from tidings.errors import InputError

KAFKA_SCHEME = "kafka://"
ACCEPTED_TOPIC = "kafka://HOST:PORT/TOPIC, or kafka://HOST:PORT,HOST:PORT/TOPIC"
DEFAULT_PORT = 9092
SETTING_PREFIXES = ("security.", "sasl.", "ssl.")

_HOST = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(?::([0-9]{1,5}))?")
_TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}")


@dataclass(frozen=True, slots=True)
class KafkaAddress:
    """Where a topic is; `settings` may have a password."""

    hosts: tuple[str, ...]
    topic: str
    settings: tuple[tuple[str, str], ...] = ()

    @property
    def name(self) -> str:
        """The address without its settings, for messages."""
        return f"{KAFKA_SCHEME}{','.join(self.hosts)}/{self.topic}"

    def __repr__(self) -> str:
        return f"Address({self.name!r})"


def parse_kafka_address(url: str) -> KafkaAddress:
    """The address that a text says."""
    place, _, settings = url.removeprefix(KAFKA_SCHEME).partition("?")
    if "@" in place:
        hint = "?sasl.username=NAME&sasl.password=PASSWORD behind the topic, with what else there is to set"
        raise InputError(
            "an address of a topic has no name and no password", accepted=ACCEPTED_TOPIC, hint=hint
        )
    hosts, _, topic = place.partition("/")
    found = [_HOST.fullmatch(host) for host in hosts.split(",")]
    if not all(found) or not _TOPIC.fullmatch(topic):
        raise InputError(
            "this is no address of a Kafka topic",
            received=f"{KAFKA_SCHEME}{place[:200]}",
            accepted=ACCEPTED_TOPIC,
        )
    named = tuple(f"{each[1]}:{each[2] or DEFAULT_PORT}" for each in found if each)
    return KafkaAddress(named, topic, tuple(map(_setting, settings.split("&") if settings else ())))


def _setting(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name.startswith(SETTING_PREFIXES):
        accepted = " and ".join(f"{each}NAME=VALUE" for each in SETTING_PREFIXES)
        raise InputError(
            "this is no setting of how to get in", received=name[:100], accepted=accepted, where="--log"
        )
    return name, unquote(value)
