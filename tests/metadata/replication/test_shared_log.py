"""Providers that share a log in a database or in a topic of Kafka: each accepts registrations."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from tests.metadata.replication.nodes import PAGE, SCHEMA, TURTLE, Node, replicated_state, uri
from tidings.errors import InputError, NotFound, SetupError
from tidings.metadata.log import LogDraft, Operation
from tidings.metadata.provider.provider import Provider
from tidings.metadata.replication.kafka_log import KafkaLog
from tidings.metadata.replication.peer import SharedReplicationLog
from tidings.metadata.replication.routing import DatabaseLog, open_log, open_shared_log
from tidings.store.database import sqlite_url

DISK = b"\n:Disk a rdfs:Class .\n"


@pytest.fixture(
    params=["sqlite", "postgresql", pytest.param("kafka", marks=pytest.mark.xdist_group("kafka"))]
)
def log(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return sqlite_url(tmp_path / "log.db")
    server = "kafka_broker" if request.param == "kafka" else "postgres_server"
    new: Callable[[], str] = request.getfixturevalue(server).empty
    return new()


def test_shared_log_each_provider_accepts_registrations(
    first_node: Node, second_node: Node, log: str
) -> None:
    with first_node.run(log=log) as first, second_node.run(log=log) as second:
        assert first.load_schema().json()["applied"]
        second.wait_for(1)
        assert second.put(1, 92).json() == {"uri": uri(1), "position": 2, "applied": True}
        assert first.put(2, 92).json()["position"] == 3
        second.wait_for(3)
        assert second.delete(1).json()["position"] == 4
        first.wait_for(4)
        assert first.documents() == second.documents() == [uri(2)]
        assert any(shown in first.status()["leader"] for shown in (":***@", "sqlite", "kafka"))
    with first_node.store() as first_store, second_node.store() as second_store:
        assert replicated_state(first_store) == replicated_state(second_store)


def test_shared_log_remove_of_document_not_yet_applied_is_accepted(first_node: Node, log: str) -> None:
    with first_node.store() as store, open_shared_log(store, Provider(store), log) as shared:
        shared.append(LogDraft(Operation.REGISTER, uri(1), "text/turtle", b""))
        assert shared.forward(LogDraft(Operation.REMOVE, uri(1))).position == 2
        with pytest.raises(NotFound, match="no such document"):
            shared.forward(LogDraft(Operation.REMOVE, uri(1)))
        assert shared.page(0, 1, 0).head == 2


def test_shared_log_invalid_request_is_not_appended(first_node: Node, log: str) -> None:
    with first_node.run(log=log) as first:
        assert first.put(1, 92).status_code == 409
        first.load_schema()
        assert first.client.put("/metadata/schema", content=b"", headers=TURTLE).status_code == 422
        assert first.put(1, 92).json()["position"] == 2


def test_shared_log_inapplicable_entry_is_dead_letter_at_all_providers(
    first_node: Node, second_node: Node, log: str
) -> None:
    """Here a writer appended it without checking."""
    with (
        first_node.run(log=log) as first,
        second_node.run(log=log) as second,
        second_node.store() as store,
        open_shared_log(store, Provider(store), log) as shared,
    ):
        first.load_schema()
        assert shared.append(LogDraft(Operation.REGISTER, uri(1), "text/turtle", b"<#x> a <#Nothing> .")) == 2
        assert first.put(2, 92).json()["position"] == 3
        second.wait_for(3)
        assert first.documents() == second.documents() == [uri(2)]
    with first_node.store() as first_store, second_node.store() as second_store:
        assert replicated_state(first_store) == replicated_state(second_store)
        letter = first_store.dead_letters.find_at("metadata log", 2)
        assert letter is not None and "not a class of the schema" in letter.reason


def test_shared_log_conflicting_later_entry_is_rejected_with_reason(
    first_node: Node, log: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two schemas were both valid when they were checked, and contradict each other."""
    kind = KafkaLog if log.startswith("kafka") else DatabaseLog
    append = kind.append

    def append_after_other(self: SharedReplicationLog, draft: LogDraft) -> int:
        append(self, LogDraft(Operation.SCHEMA, "", "text/turtle", SCHEMA + DISK))
        return append(self, draft)

    with first_node.run(log=log) as first:
        first.load_schema()
        monkeypatch.setattr(kind, "append", append_after_other)
        disk = DISK.replace(b":Disk a", b":Disk rdfs:subClassOf :ServerInformation ; a")
        answer = first.client.put("/metadata/schema", content=SCHEMA + disk, headers=TURTLE)
        assert answer.status_code == 422 and "removes or changes" in answer.json()["message"]
        assert first.status()["position"] == 3


def test_shared_log_new_provider_catches_up(first_node: Node, second_node: Node, log: str) -> None:
    with first_node.run(log=log) as first:
        first.load_schema()
        for number in range(2 * PAGE):
            first.put(number, 92)
        with second_node.run(log=log) as second:
            second.wait_for(1 + 2 * PAGE)
            assert second.documents() == first.documents()


def test_shared_log_snapshot_is_rejected_with_hint(first_node: Node, log: str) -> None:
    with first_node.store() as store:
        opened_log = open_log(store, Provider(store), None, log)
        assert opened_log is not None
        with closing(opened_log), pytest.raises(SetupError, match="tidings provider follow URL --once"):
            opened_log.snapshot().__enter__()


def test_open_log_in_own_store_is_rejected(first_node: Node) -> None:
    with first_node.store() as store, pytest.raises(InputError, match="own store"):
        open_log(store, Provider(store), None, first_node.store_url)


def test_open_log_with_peer_and_shared_log_is_rejected(first_node: Node, log: str) -> None:
    with first_node.store() as store, pytest.raises(InputError, match="not both"):
        open_log(store, Provider(store), "http://127.0.0.1:1", log)


def test_open_log_shared_log_must_be_given_at_each_start(first_node: Node, log: str) -> None:
    """Its password is not stored."""
    with first_node.run(log=log) as first:
        first.load_schema()
    with first_node.store() as store, pytest.raises(InputError, match="--metadata-log"):
        open_log(store, Provider(store), None, None)
