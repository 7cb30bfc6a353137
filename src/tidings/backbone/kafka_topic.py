"""A topic as a log: what it has to be like, and where it begins and ends.

One partition, because only the entries of one have an order. Offsets count from zero without gaps as long as nobody
writes in transactions (the end of one takes an offset) and nothing is compacted: then an offset and one is a position.
"""

from __future__ import annotations

import logging
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

from confluent_kafka import IsolationLevel, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, OffsetSpec

from tidings.backbone.kafka_client import LOOK_SECONDS, Client, Ear
from tidings.errors import InputError

ANSWER_SECONDS = 5.0
FOREVER = "-1"

_log = logging.getLogger("tidings.backbone")


@dataclass(frozen=True, slots=True)
class Seen:
    """A topic at one moment. `id` is another one when a topic is deleted and another made in its place."""

    id: str
    first: int
    head: int


class Topic:
    """Asks about a topic. It is refused if it is not one that can be a log."""

    def __init__(self, client: Client) -> None:
        self._client, self._ear = client, Ear(client)
        try:
            self._admin = AdminClient(client.settings({}, self._ear))
        except KafkaException as error:
            raise client.refused_settings(error.args[0]) from error
        self.look()
        self._check_cleaning()

    def look(self) -> Seen:
        """Where the log begins and ends now."""
        self._admin.poll(0)
        self._ear.down.clear()  # what was so before: it is asked anew
        wanted = TopicCollection([self._client.topic])
        described = self._admin.describe_topics(wanted, request_timeout=ANSWER_SECONDS)
        earliest, latest = self._offset(OffsetSpec.earliest()), self._offset(OffsetSpec.latest())
        found = self._answer(described[self._client.topic])
        if len(found.partitions) != 1:
            received, hint = f"{len(found.partitions)} partitions", "only one partition has one order"
            raise self._refused(received, "one partition", hint)
        first, head = self._answer(earliest).offset + 1, self._answer(latest).offset
        self._client.answered()
        return Seen(str(found.topic_id), first, head)

    def _offset(self, spec: OffsetSpec) -> Future[Any]:
        partition = TopicPartition(self._client.topic, 0)
        more = {"isolation_level": IsolationLevel.READ_COMMITTED, "request_timeout": ANSWER_SECONDS}
        found: Future[Any] = self._admin.list_offsets({partition: spec}, **more)[partition]
        return found

    def _check_cleaning(self) -> None:
        resource = ConfigResource(ConfigResource.Type.TOPIC, self._client.topic)
        found = self._answer(
            self._admin.describe_configs([resource], request_timeout=ANSWER_SECONDS)[resource]
        )
        policy = found["cleanup.policy"].value
        if "compact" in policy:
            hint = "a compacted topic forgets entries in the middle"
            raise self._refused(f"cleanup.policy={policy}", "cleanup.policy=delete", hint)
        kept = {name: found[name].value for name in ("retention.ms", "retention.bytes")}
        short = [f"{name}={value}" for name, value in kept.items() if value != FOREVER]
        if short:
            _log.warning("%s forgets its beginning: %s, not -1", self._client.name, ", ".join(short))

    def _refused(self, received: str, accepted: str, hint: str) -> InputError:
        what = "this topic cannot be a log"
        return InputError(what, where=self._client.name, received=received, accepted=accepted, hint=hint)

    def _answer(self, future: Future[Any]) -> Any:
        """What is asked for, which comes or fails in time; nobody waits for it when all of it ends."""
        while not self._client.ended.is_set():
            try:
                return future.result(LOOK_SECONDS)
            except TimeoutError:
                self._admin.poll(0)
                if self._ear.down.is_set():
                    raise self._client.problem() from None
            except KafkaException as error:
                self._admin.poll(0)
                raise self._client.problem(error.args[0]) from error
        raise self._client.no_more()
