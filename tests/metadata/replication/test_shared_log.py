"""Providers that share a log, in a database or in a topic of Kafka: any of them takes registrations."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from tests.metadata.replication.nodes import PAGE, SCHEMA, TURTLE, Node, everything, uri
from tidings.errors import Absent, InputError, SetupError
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


def test_any_of_them_takes_registrations(one: Node, two: Node, log: str) -> None:
    with one.runs(log=log) as first, two.runs(log=log) as second:
        assert first.load_schema().json()["applied"]
        second.reaches(1)
        assert second.put(1, 92).json() == {"uri": uri(1), "position": 2, "applied": True}
        assert first.put(2, 92).json()["position"] == 3
        second.reaches(3)
        assert second.delete(1).json()["position"] == 4
        first.reaches(4)
        assert first.documents() == second.documents() == [uri(2)]
        assert any(shown in first.status()["leader"] for shown in (":***@", "sqlite", "kafka"))
    with one.store() as ours, two.store() as theirs:
        assert everything(ours) == everything(theirs)


def test_what_is_registered_elsewhere_may_be_removed_before_it_is_applied_here(one: Node, log: str) -> None:
    with one.store() as store, open_shared_log(store, Provider(store), log) as here:
        here.append(LogDraft(Operation.REGISTER, uri(1), "text/turtle", b""))
        assert here.forward(LogDraft(Operation.REMOVE, uri(1))).position == 2
        with pytest.raises(Absent, match="no such document"):
            here.forward(LogDraft(Operation.REMOVE, uri(1)))
        assert here.page(0, 1, 0).head == 2


def test_what_is_wrong_does_not_come_into_the_log(one: Node, log: str) -> None:
    with one.runs(log=log) as first:
        assert first.put(1, 92).status_code == 409
        first.load_schema()
        assert first.client.put("/metadata/schema", content=b"", headers=TURTLE).status_code == 422
        assert first.put(1, 92).json()["position"] == 2


def test_what_cannot_be_applied_is_a_dead_letter_for_all(one: Node, two: Node, log: str) -> None:
    """Here it was put into the log by somebody who does not check."""
    with (
        one.runs(log=log) as first,
        two.runs(log=log) as second,
        two.store() as store,
        open_shared_log(store, Provider(store), log) as shared,
    ):
        first.load_schema()
        assert shared.append(LogDraft(Operation.REGISTER, uri(1), "text/turtle", b"<#x> a <#Nothing> .")) == 2
        assert first.put(2, 92).json()["position"] == 3
        second.reaches(3)
        assert first.documents() == second.documents() == [uri(2)]
    with one.store() as ours, two.store() as theirs:
        assert everything(ours) == everything(theirs)
        letter = ours.dead_letters.at("metadata log", 2)
        assert letter is not None and "not a class of the schema" in letter.reason


def test_who_comes_too_late_is_told_why(one: Node, log: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two schemas were both right when they were checked, and contradict each other."""
    kind = KafkaLog if log.startswith("kafka") else DatabaseLog
    append = kind.append

    def late(self: SharedReplicationLog, draft: LogDraft) -> int:
        append(self, LogDraft(Operation.SCHEMA, "", "text/turtle", SCHEMA + DISK))
        return append(self, draft)

    with one.runs(log=log) as first:
        first.load_schema()
        monkeypatch.setattr(kind, "append", late)
        disk = DISK.replace(b":Disk a", b":Disk rdfs:subClassOf :ServerInformation ; a")
        answer = first.client.put("/metadata/schema", content=SCHEMA + disk, headers=TURTLE)
        assert answer.status_code == 422 and "removes or changes" in answer.json()["message"]
        assert first.status()["position"] == 3


def test_one_that_comes_later(one: Node, two: Node, log: str) -> None:
    with one.runs(log=log) as first:
        first.load_schema()
        for number in range(2 * PAGE):
            first.put(number, 92)
        with two.runs(log=log) as second:
            second.reaches(1 + 2 * PAGE)
            assert second.documents() == first.documents()


def test_there_is_no_snapshot_of_a_shared_log(one: Node, log: str) -> None:
    with one.store() as store:
        found = open_log(store, Provider(store), None, log)
        assert found is not None
        with closing(found), pytest.raises(SetupError, match="tidings provider follow URL --once"):
            found.snapshot().__enter__()


def test_a_log_cannot_be_where_the_provider_is(one: Node) -> None:
    with one.store() as store, pytest.raises(InputError, match="own store"):
        open_log(store, Provider(store), None, one.store_url)


def test_one_or_the_other_is_followed(one: Node, log: str) -> None:
    with one.store() as store, pytest.raises(InputError, match="not both"):
        open_log(store, Provider(store), "http://127.0.0.1:1", log)


def test_a_shared_log_has_to_be_named_again(one: Node, log: str) -> None:
    """Its password is not kept."""
    with one.runs(log=log) as first:
        first.load_schema()
    with one.store() as store, pytest.raises(InputError, match="--log"):
        open_log(store, Provider(store), None, None)
