"""Addresses of Kafka topics: kafka://HOST:PORT,HOST:PORT/TOPIC?SETTING=VALUE.

The settings are those of librdkafka for authentication, for example `security.protocol` and `sasl.password`. They are
not part of the name that is stored and shown.
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
    """The address of a topic; `settings` may contain a password."""

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
    """Parse the address of a topic, or raise."""
    place, _, settings = url.removeprefix(KAFKA_SCHEME).partition("?")
    if "@" in place:
        hint = "append the credentials as settings: ?sasl.username=NAME&sasl.password=PASSWORD"
        raise InputError(
            "the address of a topic cannot contain credentials", accepted=ACCEPTED_TOPIC, hint=hint
        )
    hosts, _, topic = place.partition("/")
    matches = [_HOST.fullmatch(host) for host in hosts.split(",")]
    if not all(matches) or not _TOPIC.fullmatch(topic):
        raise InputError(
            "invalid address of a Kafka topic",
            received=f"{KAFKA_SCHEME}{place[:200]}",
            accepted=ACCEPTED_TOPIC,
        )
    brokers = tuple(f"{match[1]}:{match[2] or DEFAULT_PORT}" for match in matches if match)
    return KafkaAddress(brokers, topic, tuple(map(_parse_setting, settings.split("&") if settings else ())))


def _parse_setting(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name.startswith(SETTING_PREFIXES):
        accepted = " and ".join(f"{each}NAME=VALUE" for each in SETTING_PREFIXES)
        raise InputError(
            "not a setting for authentication", received=name[:100], accepted=accepted, where="--metadata-log"
        )
    return name, unquote(value)
