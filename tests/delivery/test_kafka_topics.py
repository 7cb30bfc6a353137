"""Delivery to a topic of a real broker."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Message, TopicPartition

from tests.delivery.delivering_store import RULES, Delivering, delivering
from tests.support.servers.kafka_broker import Broker
from tidings.delivery.retry_policy import DeliveryPolicy
from tidings.errors import InputError
from tidings.operations.http_client import HttpLimits
from tidings.store.database import sqlite_url

pytestmark = pytest.mark.xdist_group("kafka")

PATIENT = replace(RULES, times=HttpLimits(2, 5, 20))


@pytest.fixture
def at(tmp_path: Path) -> Iterator[Delivering]:
    with delivering(sqlite_url(tmp_path / "store.db"), PATIENT) as made:
        made.subscribe("ana", "s-1")
        made.subscribe("ana", "s-2")
        yield made


def read(broker: Broker, topic: str, partitions: int, count: int) -> list[Message]:
    consumer = Consumer(broker.at | {"group.id": "test", "auto.offset.reset": "earliest"})
    consumer.assign([TopicPartition(topic, each, 0) for each in range(partitions)])
    found: list[Message] = []
    while len(found) < count:
        message = consumer.poll(60)
        assert message is not None and not message.error()
        found.append(message)
    consumer.close()
    return found


def test_a_subscription_keeps_its_order_in_a_topic(at: Delivering, kafka_broker: Broker) -> None:
    url = kafka_broker.empty(3)
    to = at.destinations.add("ana", "kafka", url)
    names = [f"p-{number}" for number in range(30)]
    at.tell("ana", "s-1", *names)
    at.tell("ana", "s-2", *names)
    at.steps()
    assert at.store.destinations.health_of([to.id])[to.id].delivered == 60
    messages = read(kafka_broker, url.rpartition("/")[2], 3, 60)
    for id in ("s-1", "s-2"):
        mine = [one for one in messages if one.key() == id.encode()]
        assert len({one.partition() for one in mine}) == 1
        assert [json.loads(one.value())["subject"] for one in mine] == names  # type: ignore[arg-type]
    assert at.destinations.test(to).taken and at.destinations.shown(to) == url


def test_what_is_too_large_for_the_topic_is_a_dead_letter_at_once(
    at: Delivering, kafka_broker: Broker
) -> None:
    url = kafka_broker.empty(max_message_bytes="20000")
    to = at.destinations.add("ana", "kafka", url)
    at.tell("ana", "s-1", "p-1")
    at.tell("ana", "s-1", "p-2", body="x" * 30_000)
    at.tell("ana", "s-1", "p-3")
    at.steps()
    [letter] = at.store.dead_deliveries.list(to.id)
    assert (letter.first, letter.attempts) == (2, 1) and "large" in letter.problem.lower()
    messages = read(kafka_broker, url.rpartition("/")[2], 1, 2)
    assert [json.loads(one.value())["subject"] for one in messages] == ["p-1", "p-3"]  # type: ignore[arg-type]


def test_a_broker_that_is_away_loses_nothing(tmp_path: Path, kafka_broker: Broker) -> None:
    url = sqlite_url(tmp_path / "s.db")
    with delivering(url, replace(RULES, times=HttpLimits(2, 5, 1))) as at:
        at.subscribe("ana", "s-1")
        to = at.destinations.add("ana", "kafka", "kafka://127.0.0.1:1/nowhere")
        at.tell("ana", "s-1", "p-1")
        at.steps()
        health = at.store.destinations.health_of([to.id])[to.id]
        assert (health.delivered, health.consecutive_failures) == (0, 1)
        assert health.last_error and "Kafka" in health.last_error
    topic = kafka_broker.empty()
    with delivering(url, PATIENT) as at:
        at.destinations.change(to.id, topic)
        at.steps()
        [message] = read(kafka_broker, topic.rpartition("/")[2], 1, 1)
        assert json.loads(message.value())["subject"] == "p-1"  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("rules", "target", "said"),
    [
        (DeliveryPolicy(), "kafka://h/t", "this broker is not allowed"),
        (DeliveryPolicy(brokers=("h:9092",)), "kafka://h,other/t", "this broker is not allowed"),
        (
            DeliveryPolicy(inside=True),
            "kafka://h/t?sasl.kerberos.kinit.cmd=touch+x",
            "this Kafka setting is not allowed",
        ),
        (
            DeliveryPolicy(inside=True),
            "kafka://h/t?ssl.key.location=/etc/passwd",
            "this Kafka setting is not allowed",
        ),
        (DeliveryPolicy(inside=True), "http://h/t", "invalid address of a Kafka topic"),
    ],
)
def test_what_may_not_be_a_topic(tmp_path: Path, rules: DeliveryPolicy, target: str, said: str) -> None:
    with delivering(sqlite_url(tmp_path / "store.db"), rules) as at, pytest.raises(InputError, match=said):
        at.destinations.add("ana", "kafka", target)


def test_a_broker_that_may_be_named(tmp_path: Path) -> None:
    with delivering(sqlite_url(tmp_path / "store.db"), DeliveryPolicy(brokers=("h:9092",))) as at:
        target = "kafka://h/t?security.protocol=SASL_SSL&sasl.password=secret"
        to = at.destinations.add("ana", "kafka", target)
        assert at.destinations.shown(to) == "kafka://h:9092/t"
