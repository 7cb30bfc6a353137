"""A real Kafka broker for tests, whose jars Maven fetches and which is deleted when the tests end.

One process is broker and controller. It listens on loopback, without and with a password.
"""

from __future__ import annotations

import base64
import os
import secrets
import shutil
import socket
import subprocess
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from itertools import count
from pathlib import Path
from typing import Any

from confluent_kafka import KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic, OffsetSpec

from tests.support.packages import find_tool, java_jars

ARTIFACTS = ("org.apache.kafka:kafka_2.13:4.3.1", "org.slf4j:slf4j-simple:1.7.36")
SMALL = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
"""Options for a quick start rather than for throughput."""
STARTS_WITHIN, STOPS_WITHIN = 60, 30
USER = "tidings"

_Java = tuple[str, ...]


def find_java() -> _Java:
    """Return the command that runs a class of Kafka; raise `Unavailable` without Java or the jars."""
    java = find_tool("java")
    jars = os.pathsep.join(f"{java_jars(artifact)}/*" for artifact in ARTIFACTS)
    return (java, *SMALL, "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-cp", jars)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@dataclass
class Broker:
    """A broker that can be stopped and restarted at the same address; `empty` returns the address of a new topic."""

    java: _Java
    folder: Path
    password: str = field(default_factory=lambda: secrets.token_hex(16))
    port: int = field(default_factory=_free_port)
    guarded_port: int = field(default_factory=_free_port)
    _numbers: Iterator[int] = field(default_factory=lambda: count(1))
    _process: subprocess.Popen[bytes] | None = None

    @property
    def at(self) -> dict[str, str | int]:
        """Settings of a client."""
        return {"bootstrap.servers": f"127.0.0.1:{self.port}", "log_level": 0}

    @cached_property
    def admin(self) -> AdminClient:
        return AdminClient(self.at | {"reconnect.backoff.max.ms": 200})

    def url(self, topic: str) -> str:
        return f"kafka://127.0.0.1:{self.port}/{topic}"

    def empty(self, partitions: int = 1, **settings: str) -> str:
        """Create a topic and return its address. It keeps all entries unless the settings (`_` for `.`) differ."""
        topic = f"log-{next(self._numbers)}"
        self.create(topic, partitions, **settings)
        return self.url(topic)

    def create(self, topic: str, partitions: int = 1, **settings: str) -> None:
        named = {name.replace("_", "."): value for name, value in ({"retention_ms": "-1"} | settings).items()}
        self.admin.create_topics([NewTopic(topic, partitions, 1, config=named)])[topic].result()
        until = time.monotonic() + STARTS_WITHIN
        while not self._has_topic(topic, partitions):  # the broker answers before its metadata has the topic
            assert time.monotonic() < until, f"{topic} does not appear"

    def _has_topic(self, topic: str, partitions: int) -> bool:
        known = self.admin.list_topics(topic, timeout=STARTS_WITHIN).topics[topic]
        return known.error is None and len(known.partitions) == partitions

    def delete(self, topic: str) -> None:
        self.admin.delete_topics([topic])[topic].result()

    def trim(self, topic: str, upto: int) -> None:
        """Delete the entries up to a position, as retention does."""
        before = TopicPartition(topic, 0, upto)
        self.admin.delete_records([before])[before].result()

    def write(self, topic: str, message: dict[str, Any], transaction: str | None = None) -> None:
        """Write a message that no provider writes, in a transaction if it has a name."""
        producer = Producer(self.at | ({"transactional.id": transaction} if transaction else {}))
        before = self.head(topic)
        if transaction:
            producer.init_transactions()
            producer.begin_transaction()
        producer.produce(topic, partition=0, **message)
        assert producer.flush(STARTS_WITHIN) == 0
        if transaction:
            producer.commit_transaction()
            while (
                self.head(topic) < before + 2
            ):  # the end of the transaction is written later, so poll the broker
                pass

    def head(self, topic: str) -> int:
        last = TopicPartition(topic, 0)
        offset: int = self.admin.list_offsets({last: OffsetSpec.latest()})[last].result().offset
        return offset

    def start(self) -> None:
        with (self.folder / "log").open("ab") as log:
            command = [*self.java, "kafka.Kafka", str(self.folder / "server.properties")]
            self._process = subprocess.Popen(command, stdout=log, stderr=log, cwd=self.folder)
        for _ in range(2 * STARTS_WITHIN):
            if self._process.poll() is not None:
                break
            try:
                self.admin.list_topics(timeout=0.5)
            except KafkaException:  # not started yet
                continue
            return
        self.stop()
        raise RuntimeError(f"Kafka did not start:\n{(self.folder / 'log').read_text()}")

    def stop(self) -> None:
        """Stop the broker."""
        if self._process is None:
            return
        self._process.terminate()
        try:
            self._process.wait(STOPS_WITHIN)
        except subprocess.TimeoutExpired:
            self.kill()
        self._process = None

    def kill(self) -> None:
        """Kill the broker."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None


@contextmanager
def running_broker(java: _Java) -> Iterator[Broker]:
    folder = Path(tempfile.mkdtemp(prefix="tidings-kafka-"))
    broker = Broker(java, folder)
    try:
        _format(broker)
        broker.start()
        yield broker
    finally:
        broker.kill()  # an orderly shutdown would take ten seconds
        shutil.rmtree(folder)


def _format(broker: Broker) -> None:
    properties = broker.folder / "server.properties"
    properties.write_text("".join(f"{name}={value}\n" for name, value in _settings(broker).items()))
    cluster = (
        base64.urlsafe_b64encode(b"\0" + uuid.uuid4().bytes[1:]).decode().rstrip("=")
    )  # without a leading -
    command = [*broker.java, "kafka.tools.StorageTool", "format", "-t", cluster, "-c", str(properties)]
    subprocess.run(command, check=True, capture_output=True)


def _settings(broker: Broker) -> dict[str, object]:
    plain, guarded = f"PLAINTEXT://127.0.0.1:{broker.port}", f"GUARDED://127.0.0.1:{broker.guarded_port}"
    control = _free_port()
    module = "org.apache.kafka.common.security.plain.PlainLoginModule"
    return {
        "process.roles": "broker,controller",
        "node.id": 1,
        "controller.quorum.voters": f"1@127.0.0.1:{control}",
        "controller.listener.names": "CONTROLLER",
        "listeners": f"{plain},{guarded},CONTROLLER://127.0.0.1:{control}",
        "advertised.listeners": f"{plain},{guarded}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,GUARDED:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
        "inter.broker.listener.name": "PLAINTEXT",
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.guarded.plain.sasl.jaas.config": f'{module} required user_{USER}="{broker.password}";',
        "log.dirs": broker.folder / "data",
        "auto.create.topics.enable": "false",
        # There is one node, and internal topics need no fifty partitions.
        "offsets.topic.replication.factor": 1,
        "offsets.topic.num.partitions": 1,
        "transaction.state.log.replication.factor": 1,
        "transaction.state.log.min.isr": 1,
        "transaction.state.log.num.partitions": 1,
        "num.network.threads": 1,
        "num.io.threads": 2,
    }
