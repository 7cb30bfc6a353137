"""A topic of Kafka as a shared log, on a real broker. All shared logs: test_shared_log."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event

import pytest

from tests.metadata.replication.nodes import SCHEMA, Node, RunningProvider, host, replicated_state, uri
from tests.metadata.replication.test_killed_follower import follow_until
from tests.support.servers.kafka_broker import USER, Broker
from tests.support.servers.ports import free_port
from tidings.errors import InputError, SetupError
from tidings.metadata.log import LogDraft, LogEntry, Operation
from tidings.metadata.provider.provider import Provider
from tidings.metadata.replication import kafka_log, log_follower
from tidings.metadata.replication.kafka_log import to_message
from tidings.metadata.replication.log_follower import LogFollower, LogsDiverged
from tidings.metadata.replication.peer import Peer, SharedReplicationLog, Unreachable
from tidings.metadata.replication.routing import open_shared_log
from tidings.metadata.sql.log_rows import LogTrimmed
from tidings.operations.kafka_address import KafkaAddress, parse_kafka_address

pytestmark = pytest.mark.xdist_group("kafka")

KAFKA_MODULES = tuple(f"tidings.metadata.replication.kafka_{each}" for each in ("client", "log", "topic"))
DRAFTS = [
    LogDraft(Operation.SCHEMA, "", "text/turtle", b"any \x00 bytes"),
    LogDraft(Operation.REGISTER, "http://example.org/ö.rdf", "application/rdf+xml", b""),
    LogDraft(Operation.REMOVE, uri(1)),
    LogDraft(Operation.REGISTER, uri(2), "text/turtle", b"x" * 1000),
]


@contextmanager
def open_log_at(node: Node, url: str) -> Iterator[SharedReplicationLog]:
    with node.store() as store, open_shared_log(store, Provider(store), url) as log:
        yield log


def read_all(log: SharedReplicationLog, after: int) -> tuple[LogEntry, ...]:
    """Return the entries after a position, which may come on several pages."""
    page = log.page(after, 10, 0)
    return page.entries + read_all(log, page.entries[-1].position) if page.entries else ()


def topic_of(url: str) -> str:
    return url.rpartition("/")[2]


def wait_for_problem(provider: RunningProvider, condition: Callable[[str | None], bool]) -> str | None:
    """Return the problem of a provider once it fulfils a condition."""
    pause = Event()
    while not condition(problem := provider.status()["problem"]):
        pause.wait(0.05)
    return problem


def test_kafka_log_page_returns_appended_entries(first_node: Node, kafka_broker: Broker) -> None:
    with open_log_at(first_node, kafka_broker.empty()) as log:
        assert log.page(0, 10, 0).entries == ()
        assert [log.append(draft) for draft in DRAFTS] == [1, 2, 3, 4]
        expected = tuple(draft.at(position) for position, draft in enumerate(DRAFTS, 1))
        assert read_all(log, 0) == expected
        assert read_all(log, 1) == expected[1:]
        for position in (3, 1, 2):
            page = log.page(position, 1, 0)
            assert (page.first, page.head, page.entries) == (1, 4, expected[position : position + 1])
        beyond = log.page(9, 10, 0)
        assert (beyond.head, beyond.entries) == (4, ())


def test_kafka_log_end_interrupts_waiting_reader(first_node: Node, kafka_broker: Broker) -> None:
    with open_log_at(first_node, kafka_broker.empty()) as log:
        log.page(0, 10, 0)
        log.end()
        with pytest.raises(Unreachable, match="the connection is closed"):
            log.page(0, 10, 3600)


def test_kafka_log_killed_follower_continues_at_its_position(
    first_node: Node, second_node: Node, kafka_broker: Broker
) -> None:
    log = kafka_broker.empty()
    with first_node.run(log=log) as first:
        first.load_schema()
        for number in range(5):
            first.put(number % 3, 32 + number)
        with second_node.store() as store:
            follow_until(second_node, log, steps=2)
            follow_until(second_node, log, steps=1)
            assert store.metadata.position() >= 3
        with second_node.run(log=log) as second:
            assert second.put(7, 92).json() == {"uri": uri(7), "position": 7, "applied": True}
        first.wait_for(7)
    with first_node.store() as first_store, second_node.store() as second_store:
        assert replicated_state(first_store) == replicated_state(second_store)


def test_kafka_log_unavailable_broker_is_reported_and_recovers(
    first_node: Node, second_node: Node, kafka_broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_follower, "MAX_BACKOFF_SECONDS", 0.5)
    log = kafka_broker.empty()
    with first_node.run(log=log) as first, second_node.run(log=log) as second:
        first.load_schema()
        assert first.put(1, 92).json()["applied"]
        kafka_broker.stop()
        try:
            problem = wait_for_problem(first, lambda problem: problem is not None)
            assert (
                problem is not None
                and "Kafka does not respond" in problem
                and "is a broker running there?" in problem
            )
            with monkeypatch.context() as short_timeout:
                short_timeout.setattr(kafka_log, "WRITE_TIMEOUT_SECONDS", 1.0)
                response = second.put(2, 92)
            assert response.status_code == 503 and "did not confirm the entry" in response.json()["what"]
            assert first.documents() == [uri(1)]
            with (
                pytest.raises(Unreachable, match="Connection refused"),
                open_log_at(Node(first_node.folder / "new"), log),
            ):
                pass
        finally:
            kafka_broker.start()
        wait_for_problem(first, lambda problem: problem is None)
        assert first.put(3, 92).json() == {"uri": uri(3), "position": 3, "applied": True}
        second.wait_for(3)
        assert first.documents() == second.documents() == [uri(1), uri(3)]


@pytest.mark.parametrize(
    ("partitions", "settings", "message"),
    [
        (2, {}, "received 2 partitions; accepted: one partition"),
        (
            1,
            {"cleanup_policy": "compact"},
            "received cleanup.policy=compact; accepted: cleanup.policy=delete",
        ),
        (1, {"cleanup_policy": "compact,delete"}, "loses entries in the middle"),
    ],
)
def test_kafka_log_unsuitable_topic_is_rejected(
    first_node: Node, kafka_broker: Broker, partitions: int, settings: dict[str, str], message: str
) -> None:
    url = kafka_broker.empty(partitions, **settings)
    with pytest.raises(InputError, match="this topic cannot be a log") as error, open_log_at(first_node, url):
        pass
    assert message in str(error.value)


def test_kafka_log_missing_topic_is_rejected_with_hint(first_node: Node, kafka_broker: Broker) -> None:
    url = kafka_broker.url("nowhere")
    with (
        pytest.raises(InputError, match=r"no such topic .*--partitions 1 --config retention.ms=-1"),
        open_log_at(first_node, url),
    ):
        pass


def test_kafka_log_topic_with_retention_is_logged(
    first_node: Node, kafka_broker: Broker, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING), open_log_at(first_node, kafka_broker.empty()):
        assert caplog.text == ""
    with open_log_at(first_node, kafka_broker.empty(retention_ms="1000000")):
        assert "loses its first entries: retention.ms=1000000, not -1" in caplog.text


@pytest.mark.parametrize("behind", [True, False])
def test_kafka_log_gap_of_transaction_is_rejected(
    first_node: Node, kafka_broker: Broker, behind: bool
) -> None:
    """The end of a transaction occupies an offset without a message."""
    url = kafka_broker.empty()
    with open_log_at(first_node, url) as log:
        log.append(DRAFTS[2])
        kafka_broker.write(topic_of(url), to_message(DRAFTS[2]), transaction="elsewhere")
        if behind:
            assert log.append(DRAFTS[2]) == 4
        assert [log.page(after, 1, 0).entries[0].position for after in (0, 1)] == [1, 2]
        for _ in range(2):
            with pytest.raises(InputError, match=r"the topic has a gap, .* received offset 3 instead of 2"):
                log.page(2, 10, 0)


def test_kafka_log_foreign_message_is_rejected(first_node: Node, kafka_broker: Broker) -> None:
    """Earlier entries of the page are applied, so that all providers stop at the same place."""
    url = kafka_broker.empty()
    with open_log_at(first_node, url) as log:
        log.append(DRAFTS[2])
        kafka_broker.write(topic_of(url), {"value": b"hello"})
        log.append(DRAFTS[2])
        assert [entry.position for entry in log.page(0, 10, 0).entries] == [1]
        for _ in range(2):
            with pytest.raises(InputError, match=r"not an entry of a log; received offset 1: b'hello'"):
                log.page(1, 10, 5)


def test_kafka_log_trimmed_topic_needs_snapshot_of_peer(
    first_node: Node, second_node: Node, kafka_broker: Broker
) -> None:
    """A provider that needs deleted entries starts with a snapshot and continues with the topic."""
    url = kafka_broker.empty()
    with first_node.run(log=url) as first:
        first.load_schema()
        first.put(1, 92)
        first.put(2, 92)
        kafka_broker.trim(topic_of(url), 2)
        with second_node.store() as store, open_shared_log(store, Provider(store), url) as log:
            with pytest.raises(LogTrimmed, match="the log begins at position 3"):
                log.page(0, 10, 0)
            page = log.page(2, 10, 0)
            assert (page.first, page.head, len(page.entries)) == (3, 3, 1)
            with pytest.raises(SetupError, match="tidings provider follow URL --once"):
                LogFollower(store, Provider(store), log).step()
            with Peer(first_node.url) as leader:
                assert LogFollower(store, Provider(store), leader, page=1).step().restored
        with second_node.run(log=url) as second:
            assert second.put(3, 92).json()["position"] == 4
            first.wait_for(4)
            assert first.documents() == second.documents() == [uri(1), uri(2), uri(3)]


def test_kafka_log_recreated_topic_is_detected(first_node: Node, kafka_broker: Broker) -> None:
    url = kafka_broker.empty()
    with first_node.store() as store, open_shared_log(store, Provider(store), url) as log:
        follower = LogFollower(store, Provider(store), log)
        for draft in (LogDraft(Operation.SCHEMA, "", "text/turtle", SCHEMA), DRAFTS[2]):
            log.append(draft)
        assert follower.step().applied == 2
        kafka_broker.delete(topic_of(url))
        kafka_broker.create(topic_of(url))
        for _ in range(2):
            log.append(LogDraft(Operation.REMOVE, uri(5)))
        with pytest.raises(LogsDiverged, match=r"2: remove http://example.org/5.rdf there"):
            while True:  # metadata of the old topic expires first
                try:
                    follower.step()
                except Unreachable:
                    continue


def test_kafka_log_document_too_large_for_topic_is_rejected(first_node: Node, kafka_broker: Broker) -> None:
    with first_node.run(log=kafka_broker.empty(max_message_bytes="10000")) as first:
        first.load_schema()
        body = host(92) + b"<!--" + b"x" * 10_000 + b"-->"
        answer = first.client.put(
            "/metadata/documents",
            params={"uri": uri(1)},
            content=body,
            headers={"Content-Type": "application/rdf+xml"},
        )
        assert answer.status_code == 422 and "max.message.bytes" in answer.json()["hint"]
        assert first.put(1, 92).json()["position"] == 2


def test_kafka_log_password_is_used_and_not_shown(first_node: Node, kafka_broker: Broker) -> None:
    topic = topic_of(kafka_broker.empty())
    address = f"kafka://127.0.0.1:{free_port()},127.0.0.1:{kafka_broker.guarded_port}/{topic}"
    parameters = f"security.protocol=SASL_PLAINTEXT&sasl.mechanism=PLAIN&sasl.username={USER}&sasl.password="
    with first_node.run(log=f"{address}?{parameters}{kafka_broker.password}") as first:
        assert first.load_schema().json()["applied"]
        assert first.status()["leader"] == address
    with (
        pytest.raises(Unreachable, match="uthentication") as error,
        open_log_at(first_node, f"{address}?{parameters}wrong"),
    ):
        pass
    assert "wrong" not in str(error.value)


def test_kafka_log_unknown_client_setting_is_rejected(first_node: Node) -> None:
    with (
        pytest.raises(InputError, match=r"rejects a setting .*sasl\.nothing"),
        open_log_at(first_node, "kafka://h/t?sasl.nothing=1"),
    ):
        pass


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("kafka://h/t", KafkaAddress(("h:9092",), "t")),
        ("kafka://h:1,[::1]:2/a.b-c_d", KafkaAddress(("h:1", "[::1]:2"), "a.b-c_d")),
        ("kafka://h/t?sasl.password=a%26b+c", KafkaAddress(("h:9092",), "t", (("sasl.password", "a&b+c"),))),
    ],
)
def test_parse_kafka_address_hides_password(text: str, expected: KafkaAddress) -> None:
    assert parse_kafka_address(text) == expected
    assert "a&b" not in repr(expected) and "a&b" not in expected.name


@pytest.mark.parametrize(
    "text",
    [
        "kafka://",
        "kafka://h",
        "kafka:///t",
        "kafka://h:x/t",
        "kafka://h/a/b",
        "kafka://h,/t",
        "kafka://h/t?x=1",
    ],
)
def test_parse_kafka_address_invalid_address_is_rejected(text: str) -> None:
    with pytest.raises(InputError, match="accepted"):
        parse_kafka_address(text)


def test_parse_kafka_address_error_shows_given_address() -> None:
    with pytest.raises(InputError, match="received kafka://h;"):
        parse_kafka_address("kafka://h")


def test_parse_kafka_address_error_hides_credentials() -> None:
    with pytest.raises(InputError, match="cannot contain credentials") as error:
        parse_kafka_address("kafka://ana:secret@h/t")
    assert "secret" not in str(error.value)


def test_kafka_log_missing_client_names_package_to_install(
    first_node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [each for each in sys.modules if each.startswith(("confluent_kafka", *KAFKA_MODULES))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "confluent_kafka", None)
    with (
        pytest.raises(SetupError, match=r"pip install 'tidings\[kafka\]'"),
        open_log_at(first_node, "kafka://h/t"),
    ):
        pass
