"""From an outbox to notifications: each change is notified once, whatever happens in between."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier, Event

import psycopg
import pytest

from tests.objects.databases import Database
from tests.objects.sources import TITLE, count_outbox, happens, university_at, university_in
from tests.objects.university import MAPPED, PUML
from tests.support.servers.postgres import Server
from tidings.errors import InputError
from tidings.notification_text import format_limits
from tidings.objects.outbox.installation import install_triggers, remove_triggers
from tidings.objects.propagation import Limits
from tidings.objects.sources import OpenSource, open_source
from tidings.objects.sql.object_store import ObjectSource
from tidings.service.outbox_worker import (
    DrainResult,
    OutboxEvent,
    OutboxFollower,
    OutboxOptions,
    SourceRecovered,
    SourceUnreachable,
    drain_outbox,
)
from tidings.service.tidings import Tidings


@pytest.fixture
def tidings(tmp_path: Path) -> Iterator[Tidings]:
    with Tidings(tmp_path / "home") as opened:
        yield opened


@pytest.fixture
def source(university: Database) -> OpenSource:
    return OpenSource("university", MAPPED, university.site)


@pytest.fixture(params=["sqlite", "postgresql"])
def stored_source(request: pytest.FixtureRequest, tmp_path: Path) -> ObjectSource:
    """A source at an address that several processes can open."""
    if request.param == "sqlite":
        return university_in(tmp_path)
    server: Server = request.getfixturevalue("postgres_server")
    return university_at(server.empty())


def read_notifications(tidings: Tidings, subscriber: str) -> list[tuple[int, str, str, list[str]]]:
    return [
        (one.sequence, one.publication, one.kind, [reason.predicate for reason in one.because])
        for one in tidings.notifications(subscriber)
    ]


def test_drain_outbox_example_of_paper_notifies_three_students(
    tidings: Tidings, university: Database, source: OpenSource
) -> None:
    university.run(TITLE)
    assert list(drain_outbox(tidings, source)) == [DrainResult("university", 1, new=3, repeated=0)]
    script = "Second edition -usedIn-> "
    [[sequence, publication, kind, reasons]] = read_notifications(tidings, "Student:1")
    assert (sequence, publication, kind) == (1, "LearningMaterial:2", "updated")
    assert reasons == [f"{script}ProgrammingBasics (you watch it)"]
    [[_, _, _, reasons_of_second]] = read_notifications(tidings, "Student:2")
    assert reasons_of_second == [
        f"{script}ProgrammingBasics (you watch Course)",
        f"{script}ProgrammingBasics <-attends- you",
        f"{script}DataStructures (you watch Course)",
    ]
    [third] = tidings.notifications("Student:3")
    assert third.subscription == "university" and third.bindings is not None
    assert third.because[0].predicate == f"{script}DataStructures <-attends- you"
    assert third.because[0].at == "Course:2"
    assert (third.bindings["before"], third.bindings["after"]) == (
        {"title": "Script2"},
        {"title": "Second edition"},
    )
    assert count_outbox(source.database) == 0 and list(drain_outbox(tidings, source)) == []


def test_drain_outbox_rolled_back_change_is_not_notified(
    tidings: Tidings, university: Database, source: OpenSource
) -> None:
    for sql in ("BEGIN", TITLE, "ROLLBACK"):
        university.run(sql)
    assert list(drain_outbox(tidings, source)) == [] and read_notifications(tidings, "Student:3") == []


def test_drain_outbox_keeps_order_across_batches(
    tidings: Tidings, university: Database, source: OpenSource
) -> None:
    for room in range(5):
        university.run(f"UPDATE course SET room = 'B{room}' WHERE id = 2")
    drained = list(drain_outbox(tidings, source, OutboxOptions(batch=2)))
    assert [one.changes for one in drained] == [2, 2, 1]
    rooms = [one.bindings["after"]["room"] for one in tidings.notifications("Student:3") if one.bindings]
    assert rooms == ["B0", "B1", "B2", "B3", "B4"]


def test_drain_outbox_interrupted_before_delete_notifies_once(
    tidings: Tidings, university: Database, source: OpenSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    university.run(TITLE)

    def stopped(_: object, ids: object) -> int:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(type(source.database), "delete_changes", stopped)
        with pytest.raises(KeyboardInterrupt):
            list(drain_outbox(tidings, source))
    assert len(read_notifications(tidings, "Student:2")) == 1 and count_outbox(source.database) == 1
    assert list(drain_outbox(tidings, source)) == [DrainResult("university", 1, new=0, repeated=3)]
    assert len(read_notifications(tidings, "Student:2")) == 1 and count_outbox(source.database) == 0


AS_STUDENT_3 = {
    "sqlite": ("INSERT INTO tidings_author VALUES ('Student', 3)", TITLE, "DELETE FROM tidings_author"),
    "postgresql": ("SET LOCAL tidings.author = 'Student:3'", TITLE),
}


def test_drain_outbox_notifies_author_only_if_requested(
    tidings: Tidings, university: Database, source: OpenSource
) -> None:
    for is_requested in (False, True):
        university.run("UPDATE learning_material SET title = 'Script2' WHERE id = 2")
        list(drain_outbox(tidings, source))
        for sql in ("BEGIN", *AS_STUDENT_3[university.dialect.name], "COMMIT"):
            university.run(sql)
        assert (
            sum(one.new for one in drain_outbox(tidings, source, OutboxOptions(notify_author=is_requested)))
            == 2 + is_requested
        )
    changed = [one.bindings for one in tidings.notifications("Student:3")]
    assert [each.get("author_label") for each in changed if each] == [None, "S3"]


def test_drain_outbox_reached_limit_is_mentioned(
    tidings: Tidings, university: Database, source: OpenSource
) -> None:
    install_triggers(source.database, MAPPED, Limits(subscribers=1))
    university.run(TITLE)
    assert list(drain_outbox(tidings, source)) == [DrainResult("university", 1, new=1, repeated=0)]
    [notification] = tidings.notifications("Student:1")
    assert format_limits(notification) == "(only the first 1 of 3 subscribers were notified)"


KILLED = """
import os, signal, sys
from tidings.objects.outbox.database import ObjectDatabase
from tidings.service.tidings import Tidings
from tidings.objects.sources import open_source
from tidings.service.outbox_worker import OutboxOptions, drain_outbox
from tidings.objects.sql.object_store import ObjectSource

ObjectDatabase.delete_changes = lambda self, ids: os.kill(os.getpid(), signal.SIGKILL)
with Tidings(sys.argv[1]) as tidings, open_source(ObjectSource(*sys.argv[2:])) as source:
    list(drain_outbox(tidings, source, OutboxOptions(publish=True)))
"""


def test_drain_outbox_killed_before_delete_notifies_once(tidings: Tidings, tmp_path: Path) -> None:
    stored_source = university_in(tmp_path)
    happens(stored_source, TITLE)
    arguments = [str(tidings.home), stored_source.name, stored_source.model, stored_source.database]
    process = subprocess.run([sys.executable, "-c", KILLED, *arguments], check=False, env=os.environ)
    assert process.returncode == -signal.SIGKILL
    with open_source(stored_source) as source:
        again = list(drain_outbox(tidings, source, OutboxOptions(publish=True)))
    assert again == [DrainResult("university", 1, new=0, repeated=3, published=0)]
    assert len(read_notifications(tidings, "Student:3")) == 1 and tidings.store.journal.head() == 1


def test_drain_outbox_concurrent_workers_notify_once(tidings: Tidings, stored_source: ObjectSource) -> None:
    happens(stored_source, *(f"UPDATE course SET room = 'B{number}' WHERE id = 2" for number in range(40)))
    assert tidings.store.journal.head() == 0  # creates the store once
    barrier = Barrier(3)

    def drain(_: int) -> int:
        with Tidings(tidings.home) as own, open_source(stored_source) as source:
            barrier.wait()
            return sum(one.new for one in drain_outbox(own, source, OutboxOptions(batch=7)))

    with ThreadPoolExecutor(3) as pool:
        assert sum(pool.map(drain, range(3))) == 80
    for subscriber in ("Student:2", "Student:3"):
        assert [number for number, *_ in read_notifications(tidings, subscriber)] == list(range(1, 41))
    with open_source(stored_source) as source:
        assert count_outbox(source.database) == 0


def test_drain_outbox_publishes_changes_as_events_once(
    tidings: Tidings, university: Database, source: OpenSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    university.run(TITLE)
    university.run("INSERT INTO course VALUES (3, 'Trees', 'A3', NULL)")
    with monkeypatch.context() as patched:
        patched.setattr(type(source.database), "delete_changes", lambda self, ids: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            list(drain_outbox(tidings, source, OutboxOptions(publish=True)))
    university.run("UPDATE course SET room = 'A4' WHERE id = 3")
    [again] = drain_outbox(tidings, source, OutboxOptions(publish=True))
    assert (again.changes, again.published, tidings.store.journal.head()) == (3, 1, 3)
    first, second, _ = (json.loads(one.body) for one in tidings.store.journal.read(0))
    assert first.pop("at") and first == {
        "source": "university",
        "class": "LearningMaterial",
        "key": "2",
        "kind": "update",
        "changed": ["title"],
        "before": {"title": "Script2"},
        "after": {"title": "Second edition"},
        "now": {"title": "Second edition"},
    }
    assert (second["kind"], second["after"]["title"]) == ("insert", "Trees") and "before" not in second
    assert second["now"] == {"title": "Trees", "room": "A3"}


def test_drain_outbox_event_has_current_values(
    tidings: Tidings, university: Database, source: OpenSource
) -> None:
    university.run("UPDATE course SET room = 'B1' WHERE id = 2")
    university.run("INSERT INTO used_in VALUES (1, 2)")
    university.run("UPDATE course SET room = 'B2' WHERE id = 2")
    university.run("UPDATE student SET name = 'S4' WHERE id = 1")
    university.run("DELETE FROM student WHERE id = 1")
    [result] = drain_outbox(tidings, source, OutboxOptions(publish=True))
    room, linked, again, renamed, deleted = (json.loads(one.body) for one in tidings.store.journal.read(0))
    current = {"title": "DataStructures", "room": "B2"}
    assert (room["after"], room["now"], linked["now"], again["now"]) == (
        {"room": "B1"},
        current,
        current,
        current,
    )
    assert (linked["association"], linked["other"]) == ("usedIn", "LearningMaterial:1")
    assert "now" not in renamed and deleted["before"] == {"name": "S4"} and result.published == 5


def test_drain_outbox_event_invalid_by_schema_is_dead_letter(
    tidings: Tidings, university: Database, source: OpenSource
) -> None:
    tidings.extend_schema(
        "attributes: {price: numeric}\nevent_types: {antiques: {attributes: {price: mandatory}}}"
    )
    university.run(TITLE)
    [result] = drain_outbox(tidings, source, OutboxOptions(publish=True))
    assert (result.new, result.published, result.dead) == (3, 0, 1)
    [letter] = tidings.dead_letters()
    assert letter.source == "university" and b"Second edition" in (letter.body or b"")


class ScriptedPolls(Event):
    """Runs the next action whenever the follower waits, and stops it after the last one."""

    def __init__(self, *actions: Callable[[], object]) -> None:
        super().__init__()
        self._actions = iter(actions)

    def wait(self, timeout: float | None = None) -> bool:
        for action in self._actions:
            action()
            return False
        self.set()
        return True


def test_follow_unusable_source_recovers(tidings: Tidings, tmp_path: Path) -> None:
    """The problem is reported once, and later changes are notified."""
    stored_source, events = university_in(tmp_path), list[OutboxEvent]()

    def remove() -> None:
        with open_source(stored_source) as source:
            remove_triggers(source.database)

    def install() -> None:
        with open_source(stored_source) as source:
            install_triggers(source.database, MAPPED)
        happens(stored_source, TITLE)

    wait = lambda: None  # noqa: E731
    OutboxFollower(tidings).follow(
        [stored_source], events.append, ScriptedPolls(wait, remove, wait, wait, install)
    )
    unreachable, drained, recovered = events
    assert isinstance(unreachable, SourceUnreachable) and "no outbox" in str(unreachable.problem)
    assert drained == DrainResult("university", 1, new=2, repeated=0) and recovered == SourceRecovered(
        "university"
    )
    assert len(read_notifications(tidings, "Student:3")) == 1


def test_follow_reconnects_after_lost_connection(tidings: Tidings, postgres_server: Server) -> None:
    stored_source, events = (
        university_at(f"{postgres_server.empty()}&application_name=following"),
        list[OutboxEvent](),
    )
    terminate = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'following'"

    def break_connection() -> None:
        with psycopg.connect(postgres_server.url(), autocommit=True) as other:
            other.execute(terminate)

    def change() -> None:
        happens(stored_source, TITLE)

    OutboxFollower(tidings).follow([stored_source], events.append, ScriptedPolls(break_connection, change))
    assert [type(event) for event in events] == [SourceUnreachable, DrainResult, SourceRecovered]
    assert len(read_notifications(tidings, "Student:3")) == 1


def test_follow_unusable_address_is_rejected_immediately(tidings: Tidings, tmp_path: Path) -> None:
    events = list[OutboxEvent]()
    nowhere = ObjectSource("university", PUML, f"sqlite:///{tmp_path}/none.db")
    with pytest.raises(InputError, match="cannot be opened"):
        OutboxFollower(tidings).follow([nowhere], events.append, ScriptedPolls())
    assert events == []


def test_follow_stop_takes_effect_between_batches(tidings: Tidings, tmp_path: Path) -> None:
    stored_source, events, stop = university_in(tmp_path), list[OutboxEvent](), Event()
    happens(stored_source, *(f"UPDATE course SET room = 'B{number}' WHERE id = 2" for number in range(4)))

    def record_event(event: OutboxEvent) -> None:
        events.append(event)
        stop.set()

    OutboxFollower(tidings, OutboxOptions(batch=3)).follow([stored_source], record_event, stop)
    assert len(events) == 1 and len(read_notifications(tidings, "Student:3")) == 3
