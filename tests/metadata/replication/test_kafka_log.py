"""A topic of Kafka as the log that providers share, on a real broker. What all shared logs do is in test_shared_log."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event

import pytest

from tests.metadata.replication.nodes import SCHEMA, Asked, Node, everything, host, uri
from tests.metadata.replication.test_killed import follow_until
from tests.support.servers.kafka_broker import USER, Broker
from tests.support.servers.ports import free_port
from tidings.errors import InputError, SetupError
from tidings.metadata.log import LogDraft, LogEntry, Operation
from tidings.metadata.provider.provider import Provider
from tidings.metadata.replication import kafka_log, log_follower
from tidings.metadata.replication.kafka_log import to_message
from tidings.metadata.replication.log_follower import Diverged, LogFollower
from tidings.metadata.replication.peer import Peer, SharedReplicationLog, Unreachable
from tidings.metadata.replication.routing import open_shared_log
from tidings.metadata.sql.log_rows import Trimmed
from tidings.operations.kafka_address import KafkaAddress, parse_kafka_address

pytestmark = pytest.mark.xdist_group("kafka")

NEEDS_IT = tuple(f"tidings.metadata.replication.kafka_{each}" for each in ("client", "log", "topic"))
DRAFTS = [
    LogDraft(Operation.SCHEMA, "", "text/turtle", b"any \x00 bytes"),
    LogDraft(Operation.REGISTER, "http://example.org/ö.rdf", "application/rdf+xml", b""),
    LogDraft(Operation.REMOVE, uri(1)),
    LogDraft(Operation.REGISTER, uri(2), "text/turtle", b"x" * 1000),
]


@contextmanager
def opened(node: Node, url: str) -> Iterator[SharedReplicationLog]:
    with node.store() as store, open_shared_log(store, Provider(store), url) as log:
        yield log


def read_all(log: SharedReplicationLog, after: int) -> tuple[LogEntry, ...]:
    """What stands after a position; it may come on several pages."""
    page = log.page(after, 10, 0)
    return page.entries + read_all(log, page.entries[-1].position) if page.entries else ()


def topic_of(url: str) -> str:
    return url.rpartition("/")[2]


def problem_of(provider: Asked, wanted: Callable[[str | None], bool]) -> str | None:
    """What keeps a provider from following, as soon as it is as wanted."""
    pause = Event()
    while not wanted(problem := provider.status()["problem"]):
        pause.wait(0.05)
    return problem


def test_what_is_appended_is_read(one: Node, kafka_broker: Broker) -> None:
    with opened(one, kafka_broker.empty()) as log:
        assert log.page(0, 10, 0).entries == ()
        assert [log.append(draft) for draft in DRAFTS] == [1, 2, 3, 4]
        wanted = tuple(draft.at(position) for position, draft in enumerate(DRAFTS, 1))
        assert read_all(log, 0) == wanted
        assert read_all(log, 1) == wanted[1:]
        for position in (3, 1, 2):
            page = log.page(position, 1, 0)
            assert (page.first, page.head, page.entries) == (1, 4, wanted[position : position + 1])
        beyond = log.page(9, 10, 0)
        assert (beyond.head, beyond.entries) == (4, ())


def test_whoever_waits_is_let_go(one: Node, kafka_broker: Broker) -> None:
    with opened(one, kafka_broker.empty()) as log:
        log.page(0, 10, 0)
        log.end()
        with pytest.raises(Unreachable, match="the connection is closed"):
            log.page(0, 10, 3600)


def test_a_provider_that_is_killed_goes_on_where_it_was(one: Node, two: Node, kafka_broker: Broker) -> None:
    log = kafka_broker.empty()
    with one.runs(log=log) as first:
        first.load_schema()
        for number in range(5):
            first.put(number % 3, 32 + number)
        with two.store() as store:
            follow_until(two, log, steps=2)
            follow_until(two, log, steps=1)
            assert store.metadata.position() >= 3
        with two.runs(log=log) as second:
            assert second.put(7, 92).json() == {"uri": uri(7), "position": 7, "applied": True}
        first.reaches(7)
    with one.store() as ours, two.store() as theirs:
        assert everything(ours) == everything(theirs)


def test_a_broker_that_is_away(
    one: Node, two: Node, kafka_broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_follower, "MAX_BACKOFF_SECONDS", 0.5)
    log = kafka_broker.empty()
    with one.runs(log=log) as first, two.runs(log=log) as second:
        first.load_schema()
        assert first.put(1, 92).json()["applied"]
        kafka_broker.stop()
        try:
            said = problem_of(first, lambda problem: problem is not None)
            assert (
                said is not None and "Kafka does not respond" in said and "is a broker running there?" in said
            )
            with monkeypatch.context() as impatient:
                impatient.setattr(kafka_log, "WRITE_TIMEOUT_SECONDS", 1.0)
                refused = second.put(2, 92)
            assert refused.status_code == 503 and "did not confirm the entry" in refused.json()["what"]
            assert first.documents() == [uri(1)]
            with (
                pytest.raises(Unreachable, match="Connection refused"),
                opened(Node(one.folder / "new"), log),
            ):
                pass
        finally:
            kafka_broker.start()
        problem_of(first, lambda problem: problem is None)
        assert first.put(3, 92).json() == {"uri": uri(3), "position": 3, "applied": True}
        second.reaches(3)
        assert first.documents() == second.documents() == [uri(1), uri(3)]


@pytest.mark.parametrize(
    ("partitions", "settings", "said"),
    [
        (2, {}, "received 2 partitions; accepted: one partition"),
        (
            1,
            {"cleanup_policy": "compact"},
            "received cleanup.policy=compact; accepted: cleanup.policy=delete",
        ),
        (1, {"cleanup_policy": "compact,delete"}, "forgets entries in the middle"),
    ],
)
def test_topics_that_cannot_be_a_log(
    one: Node, kafka_broker: Broker, partitions: int, settings: dict[str, str], said: str
) -> None:
    url = kafka_broker.empty(partitions, **settings)
    with pytest.raises(InputError, match="this topic cannot be a log") as refused, opened(one, url):
        pass
    assert said in str(refused.value)


def test_a_topic_that_is_not_there(one: Node, kafka_broker: Broker) -> None:
    url = kafka_broker.url("nowhere")
    with (
        pytest.raises(InputError, match=r"no such topic .*--partitions 1 --config retention.ms=-1"),
        opened(one, url),
    ):
        pass


def test_a_topic_that_forgets_is_told_of(
    one: Node, kafka_broker: Broker, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING), opened(one, kafka_broker.empty()):
        assert caplog.text == ""
    with opened(one, kafka_broker.empty(retention_ms="1000000")):
        assert "forgets its beginning: retention.ms=1000000, not -1" in caplog.text


@pytest.mark.parametrize("behind", [True, False])
def test_a_transaction_makes_a_gap(one: Node, kafka_broker: Broker, behind: bool) -> None:
    """Its end takes an offset, though nothing can be read there."""
    url = kafka_broker.empty()
    with opened(one, url) as log:
        log.append(DRAFTS[2])
        kafka_broker.write(topic_of(url), to_message(DRAFTS[2]), transaction="elsewhere")
        if behind:
            assert log.append(DRAFTS[2]) == 4
        assert [log.page(after, 1, 0).entries[0].position for after in (0, 1)] == [1, 2]
        for _ in range(2):
            with pytest.raises(InputError, match=r"the topic has a gap, .* received offset 3 instead of 2"):
                log.page(2, 10, 0)


def test_what_others_write_is_no_entry(one: Node, kafka_broker: Broker) -> None:
    """Whatever a page has before it is applied, so that all providers stop at the same place."""
    url = kafka_broker.empty()
    with opened(one, url) as log:
        log.append(DRAFTS[2])
        kafka_broker.write(topic_of(url), {"value": b"hello"})
        log.append(DRAFTS[2])
        assert [entry.position for entry in log.page(0, 10, 0).entries] == [1]
        for _ in range(2):
            with pytest.raises(InputError, match=r"not an entry of a log; received offset 1: b'hello'"):
                log.page(1, 10, 5)


def test_what_retention_has_deleted(one: Node, two: Node, kafka_broker: Broker) -> None:
    """Who needs it begins with the snapshot of another provider, and goes on with the topic."""
    url = kafka_broker.empty()
    with one.runs(log=url) as first:
        first.load_schema()
        first.put(1, 92)
        first.put(2, 92)
        kafka_broker.trim(topic_of(url), 2)
        with two.store() as store, open_shared_log(store, Provider(store), url) as log:
            with pytest.raises(Trimmed, match="the log begins at position 3"):
                log.page(0, 10, 0)
            page = log.page(2, 10, 0)
            assert (page.first, page.head, len(page.entries)) == (3, 3, 1)
            with pytest.raises(SetupError, match="tidings provider follow URL --once"):
                LogFollower(store, Provider(store), log).step()
            with Peer(one.url) as leader:
                assert LogFollower(store, Provider(store), leader, page=1).step().restored
        with two.runs(log=url) as second:
            assert second.put(3, 92).json()["position"] == 4
            first.reaches(4)
            assert first.documents() == second.documents() == [uri(1), uri(2), uri(3)]


def test_another_topic_in_its_place(one: Node, kafka_broker: Broker) -> None:
    url = kafka_broker.empty()
    with one.store() as store, open_shared_log(store, Provider(store), url) as log:
        follower = LogFollower(store, Provider(store), log)
        for draft in (LogDraft(Operation.SCHEMA, "", "text/turtle", SCHEMA), DRAFTS[2]):
            log.append(draft)
        assert follower.step().applied == 2
        kafka_broker.delete(topic_of(url))
        kafka_broker.create(topic_of(url))
        for _ in range(2):
            log.append(LogDraft(Operation.REMOVE, uri(5)))
        with pytest.raises(Diverged, match=r"2: remove http://example.org/5.rdf there"):
            while True:  # what was known of the old one is forgotten first
                try:
                    follower.step()
                except Unreachable:
                    continue


def test_what_is_too_large_for_the_topic(one: Node, kafka_broker: Broker) -> None:
    with one.runs(log=kafka_broker.empty(max_message_bytes="10000")) as first:
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


def test_a_broker_that_wants_a_password(one: Node, kafka_broker: Broker) -> None:
    topic = topic_of(kafka_broker.empty())
    place = f"kafka://127.0.0.1:{free_port()},127.0.0.1:{kafka_broker.guarded_port}/{topic}"
    how = f"security.protocol=SASL_PLAINTEXT&sasl.mechanism=PLAIN&sasl.username={USER}&sasl.password="
    with one.runs(log=f"{place}?{how}{kafka_broker.password}") as first:
        assert first.load_schema().json()["applied"]
        assert first.status()["leader"] == place
    with pytest.raises(Unreachable, match="uthentication") as refused, opened(one, f"{place}?{how}wrong"):
        pass
    assert "wrong" not in str(refused.value)


def test_a_setting_that_the_client_does_not_know(one: Node) -> None:
    with (
        pytest.raises(InputError, match=r"rejects a setting .*sasl\.nothing"),
        opened(one, "kafka://h/t?sasl.nothing=1"),
    ):
        pass


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("kafka://h/t", KafkaAddress(("h:9092",), "t")),
        ("kafka://h:1,[::1]:2/a.b-c_d", KafkaAddress(("h:1", "[::1]:2"), "a.b-c_d")),
        ("kafka://h/t?sasl.password=a%26b+c", KafkaAddress(("h:9092",), "t", (("sasl.password", "a&b+c"),))),
    ],
)
def test_addresses(text: str, wanted: KafkaAddress) -> None:
    assert parse_kafka_address(text) == wanted
    assert "a&b" not in repr(wanted) and "a&b" not in wanted.name


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
def test_what_is_no_address(text: str) -> None:
    with pytest.raises(InputError, match="accepted"):
        parse_kafka_address(text)


def test_an_address_is_shown_as_it_was_written() -> None:
    with pytest.raises(InputError, match="received kafka://h;"):
        parse_kafka_address("kafka://h")


def test_a_password_is_not_shown() -> None:
    with pytest.raises(InputError, match="cannot contain credentials") as refused:
        parse_kafka_address("kafka://ana:secret@h/t")
    assert "secret" not in str(refused.value)


def test_without_the_client(one: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [each for each in sys.modules if each.startswith(("confluent_kafka", *NEEDS_IT))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "confluent_kafka", None)
    with pytest.raises(SetupError, match=r"pip install 'tidings\[kafka\]'"), opened(one, "kafka://h/t"):
        pass
