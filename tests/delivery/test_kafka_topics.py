"""Delivery to a topic of a real broker."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Message, TopicPartition

from tests.delivery.delivery_setup import RULES, DeliverySetup, open_delivery
from tests.support.servers.kafka_broker import Broker
from tidings.delivery.delivery_policy import DeliveryPolicy
from tidings.errors import InputError
from tidings.operations.http_client import HttpLimits
from tidings.store.database import sqlite_url

pytestmark = pytest.mark.xdist_group("kafka")

PATIENT = replace(RULES, times=HttpLimits(2, 5, 20))


@pytest.fixture
def delivery(tmp_path: Path) -> Iterator[DeliverySetup]:
    with open_delivery(sqlite_url(tmp_path / "store.db"), PATIENT) as setup:
        setup.subscribe("ana", "s-1")
        setup.subscribe("ana", "s-2")
        yield setup


def read(broker: Broker, topic: str, partitions: int, count: int) -> list[Message]:
    consumer = Consumer(broker.at | {"group.id": "test", "auto.offset.reset": "earliest"})
    consumer.assign([TopicPartition(topic, each, 0) for each in range(partitions)])
    messages: list[Message] = []
    while len(messages) < count:
        message = consumer.poll(60)
        assert message is not None and not message.error()
        messages.append(message)
    consumer.close()
    return messages


def test_kafka_subscription_keeps_order_in_one_partition(
    delivery: DeliverySetup, kafka_broker: Broker
) -> None:
    url = kafka_broker.empty(3)
    to = delivery.destinations.add("ana", "kafka", url)
    names = [f"p-{number}" for number in range(30)]
    delivery.notify("ana", "s-1", *names)
    delivery.notify("ana", "s-2", *names)
    delivery.steps()
    assert delivery.store.destinations.health_of([to.id])[to.id].delivered == 60
    messages = read(kafka_broker, url.rpartition("/")[2], 3, 60)
    for id in ("s-1", "s-2"):
        mine = [one for one in messages if one.key() == id.encode()]
        assert len({one.partition() for one in mine}) == 1
        assert [json.loads(one.value())["subject"] for one in mine] == names  # type: ignore[arg-type]
    assert delivery.destinations.test(to).taken and delivery.destinations.mask_target(to) == url


def test_kafka_message_too_large_for_topic_is_dead_letter_without_retry(
    delivery: DeliverySetup, kafka_broker: Broker
) -> None:
    url = kafka_broker.empty(max_message_bytes="20000")
    to = delivery.destinations.add("ana", "kafka", url)
    delivery.notify("ana", "s-1", "p-1")
    delivery.notify("ana", "s-1", "p-2", body="x" * 30_000)
    delivery.notify("ana", "s-1", "p-3")
    delivery.steps()
    [letter] = delivery.store.dead_deliveries.list(to.id)
    assert (letter.first, letter.attempts) == (2, 1) and "large" in letter.problem.lower()
    messages = read(kafka_broker, url.rpartition("/")[2], 1, 2)
    assert [json.loads(one.value())["subject"] for one in messages] == ["p-1", "p-3"]  # type: ignore[arg-type]


def test_kafka_unavailable_broker_loses_no_notification(tmp_path: Path, kafka_broker: Broker) -> None:
    url = sqlite_url(tmp_path / "s.db")
    with open_delivery(url, replace(RULES, times=HttpLimits(2, 5, 1))) as delivery:
        delivery.subscribe("ana", "s-1")
        to = delivery.destinations.add("ana", "kafka", "kafka://127.0.0.1:1/nowhere")
        delivery.notify("ana", "s-1", "p-1")
        delivery.steps()
        health = delivery.store.destinations.health_of([to.id])[to.id]
        assert (health.delivered, health.consecutive_failures) == (0, 1)
        assert health.last_error and "Kafka" in health.last_error
    topic = kafka_broker.empty()
    with open_delivery(url, PATIENT) as delivery:
        delivery.destinations.change(to.id, topic)
        delivery.steps()
        [message] = read(kafka_broker, topic.rpartition("/")[2], 1, 1)
        assert json.loads(message.value())["subject"] == "p-1"  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("rules", "target", "message"),
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
def test_kafka_forbidden_broker_or_setting_is_rejected(
    tmp_path: Path, rules: DeliveryPolicy, target: str, message: str
) -> None:
    with (
        open_delivery(sqlite_url(tmp_path / "store.db"), rules) as delivery,
        pytest.raises(InputError, match=message),
    ):
        delivery.destinations.add("ana", "kafka", target)


def test_kafka_allowed_broker_is_shown_without_password(tmp_path: Path) -> None:
    with open_delivery(sqlite_url(tmp_path / "store.db"), DeliveryPolicy(brokers=("h:9092",))) as delivery:
        target = "kafka://h/t?security.protocol=SASL_SSL&sasl.password=secret"
        to = delivery.destinations.add("ana", "kafka", target)
        assert delivery.destinations.mask_target(to) == "kafka://h:9092/t"
