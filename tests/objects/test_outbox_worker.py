"""From an outbox to notifications: each change is told once, whatever happens in between."""

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
from tests.objects.sources import TITLE, happens, outbox, university_at, university_in
from tests.objects.university import PLACED, PUML
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
    with Tidings(tmp_path / "home") as made:
        yield made


@pytest.fixture
def source(university: Database) -> OpenSource:
    return OpenSource("university", PLACED, university.site)


@pytest.fixture(params=["sqlite", "postgresql"])
def kept(request: pytest.FixtureRequest, tmp_path: Path) -> ObjectSource:
    """At an address that several can open."""
    if request.param == "sqlite":
        return university_in(tmp_path)
    server: Server = request.getfixturevalue("postgres_server")
    return university_at(server.empty())


def told(tidings: Tidings, who: str) -> list[tuple[int, str, str, list[str]]]:
    return [
        (one.sequence, one.publication, one.kind, [reason.predicate for reason in one.because])
        for one in tidings.notifications(who)
    ]


def test_the_example_of_the_paper(tidings: Tidings, university: Database, source: OpenSource) -> None:
    university.run(TITLE)
    assert list(drain_outbox(tidings, source)) == [DrainResult("university", 1, new=3, repeated=0)]
    script = "Second edition -usedIn-> "
    [[first, changed, kind, why]] = told(tidings, "Student:1")
    assert (first, changed, kind) == (1, "LearningMaterial:2", "updated")
    assert why == [f"{script}ProgrammingBasics (you watch it)"]
    [[_, _, _, several]] = told(tidings, "Student:2")
    assert several == [
        f"{script}ProgrammingBasics (you watch Course)",
        f"{script}ProgrammingBasics <-attends- you",
        f"{script}DataStructures (you watch Course)",
    ]
    [three] = tidings.notifications("Student:3")
    assert three.subscription == "university" and three.bindings is not None
    assert three.because[0].predicate == f"{script}DataStructures <-attends- you"
    assert three.because[0].at == "Course:2"
    assert (three.bindings["before"], three.bindings["after"]) == (
        {"title": "Script2"},
        {"title": "Second edition"},
    )
    assert outbox(source.database) == 0 and list(drain_outbox(tidings, source)) == []


def test_what_is_rolled_back_is_told_to_nobody(
    tidings: Tidings, university: Database, source: OpenSource
) -> None:
    for sql in ("BEGIN", TITLE, "ROLLBACK"):
        university.run(sql)
    assert list(drain_outbox(tidings, source)) == [] and told(tidings, "Student:3") == []


def test_changes_are_told_in_their_order_some_at_a_time(
    tidings: Tidings, university: Database, source: OpenSource
) -> None:
    for room in range(5):
        university.run(f"UPDATE course SET room = 'B{room}' WHERE id = 2")
    drained = list(drain_outbox(tidings, source, OutboxOptions(batch=2)))
    assert [one.changes for one in drained] == [2, 2, 1]
    rooms = [one.bindings["after"]["room"] for one in tidings.notifications("Student:3") if one.bindings]
    assert rooms == ["B0", "B1", "B2", "B3", "B4"]


def test_who_is_stopped_before_the_outbox_forgets_tells_once(
    tidings: Tidings, university: Database, source: OpenSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    university.run(TITLE)

    def stopped(_: object, ids: object) -> int:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(type(source.database), "forget", stopped)
        with pytest.raises(KeyboardInterrupt):
            list(drain_outbox(tidings, source))
    assert len(told(tidings, "Student:2")) == 1 and outbox(source.database) == 1
    assert list(drain_outbox(tidings, source)) == [DrainResult("university", 1, new=0, repeated=3)]
    assert len(told(tidings, "Student:2")) == 1 and outbox(source.database) == 0


AS_STUDENT_3 = {
    "sqlite": ("INSERT INTO tidings_author VALUES ('Student', 3)", TITLE, "DELETE FROM tidings_author"),
    "postgresql": ("SET LOCAL tidings.author = 'Student:3'", TITLE),
}


def test_who_made_a_change_is_told_only_if_they_want_it(
    tidings: Tidings, university: Database, source: OpenSource
) -> None:
    for wanted in (False, True):
        university.run("UPDATE learning_material SET title = 'Script2' WHERE id = 2")
        list(drain_outbox(tidings, source))
        for sql in ("BEGIN", *AS_STUDENT_3[university.dialect.name], "COMMIT"):
            university.run(sql)
        assert (
            sum(one.new for one in drain_outbox(tidings, source, OutboxOptions(tell_author=wanted)))
            == 2 + wanted
        )
    changed = [one.bindings for one in tidings.notifications("Student:3")]
    assert [each.get("author_label") for each in changed if each] == [None, "S3"]


def test_a_limit_that_was_reached_is_told(tidings: Tidings, university: Database, source: OpenSource) -> None:
    install_triggers(source.database, PLACED, Limits(subscribers=1))
    university.run(TITLE)
    assert list(drain_outbox(tidings, source)) == [DrainResult("university", 1, new=1, repeated=0)]
    [one] = tidings.notifications("Student:1")
    assert format_limits(one) == "(only the first 1 of 3 subscribers were notified)"


KILLED = """
import os, signal, sys
from tidings.objects.outbox.database import ObjectDatabase
from tidings.service.tidings import Tidings
from tidings.objects.sources import open_source
from tidings.service.outbox_worker import OutboxOptions, drain_outbox
from tidings.objects.sql.object_store import ObjectSource

ObjectDatabase.forget = lambda self, ids: os.kill(os.getpid(), signal.SIGKILL)
with Tidings(sys.argv[1]) as tidings, open_source(ObjectSource(*sys.argv[2:])) as source:
    list(drain_outbox(tidings, source, OutboxOptions(publish=True)))
"""


def test_who_is_killed_before_the_outbox_forgets_tells_once(tidings: Tidings, tmp_path: Path) -> None:
    kept = university_in(tmp_path)
    happens(kept, TITLE)
    words = [str(tidings.home), kept.name, kept.model, kept.database]
    done = subprocess.run([sys.executable, "-c", KILLED, *words], check=False, env=os.environ)
    assert done.returncode == -signal.SIGKILL
    with open_source(kept) as source:
        again = list(drain_outbox(tidings, source, OutboxOptions(publish=True)))
    assert again == [DrainResult("university", 1, new=0, repeated=3, published=0)]
    assert len(told(tidings, "Student:3")) == 1 and tidings.store.journal.head() == 1


def test_several_empty_one_outbox_and_tell_once(tidings: Tidings, kept: ObjectSource) -> None:
    happens(kept, *(f"UPDATE course SET room = 'B{number}' WHERE id = 2" for number in range(40)))
    assert tidings.store.journal.head() == 0  # the store is made once
    together = Barrier(3)

    def drains(_: int) -> int:
        with Tidings(tidings.home) as own, open_source(kept) as source:
            together.wait()
            return sum(one.new for one in drain_outbox(own, source, OutboxOptions(batch=7)))

    with ThreadPoolExecutor(3) as pool:
        assert sum(pool.map(drains, range(3))) == 80
    for who in ("Student:2", "Student:3"):
        assert [number for number, *_ in told(tidings, who)] == list(range(1, 41))
    with open_source(kept) as source:
        assert outbox(source.database) == 0


def test_changes_are_published_as_events_once(
    tidings: Tidings, university: Database, source: OpenSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    university.run(TITLE)
    university.run("INSERT INTO course VALUES (3, 'Trees', 'A3', NULL)")
    with monkeypatch.context() as patched:
        patched.setattr(type(source.database), "forget", lambda self, ids: 1 / 0)
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


def test_an_event_has_all_values_of_now(tidings: Tidings, university: Database, source: OpenSource) -> None:
    university.run("UPDATE course SET room = 'B1' WHERE id = 2")
    university.run("INSERT INTO used_in VALUES (1, 2)")
    university.run("UPDATE course SET room = 'B2' WHERE id = 2")
    university.run("UPDATE student SET name = 'S4' WHERE id = 1")
    university.run("DELETE FROM student WHERE id = 1")
    [done] = drain_outbox(tidings, source, OutboxOptions(publish=True))
    room, linked, again, renamed, deleted = (json.loads(one.body) for one in tidings.store.journal.read(0))
    now = {"title": "DataStructures", "room": "B2"}
    assert (room["after"], room["now"], linked["now"], again["now"]) == ({"room": "B1"}, now, now, now)
    assert (linked["association"], linked["other"]) == ("usedIn", "LearningMaterial:1")
    assert "now" not in renamed and deleted["before"] == {"name": "S4"} and done.published == 5


def test_an_event_that_the_schema_refuses_is_a_dead_letter(
    tidings: Tidings, university: Database, source: OpenSource
) -> None:
    tidings.extend_schema(
        "attributes: {price: numeric}\nevent_types: {antiques: {attributes: {price: mandatory}}}"
    )
    university.run(TITLE)
    [done] = drain_outbox(tidings, source, OutboxOptions(publish=True))
    assert (done.new, done.published, done.dead) == (3, 0, 1)
    [letter] = tidings.dead_letters()
    assert letter.source == "university" and b"Second edition" in (letter.body or b"")


class Polls(Event):
    """Something happens whenever the follower waits; when nothing is left, it is to stop."""

    def __init__(self, *happens: Callable[[], object]) -> None:
        super().__init__()
        self._happens = iter(happens)

    def wait(self, timeout: float | None = None) -> bool:
        for does in self._happens:
            does()
            return False
        self.set()
        return True


def test_following_waits_out_what_cannot_be_used_for_a_while(tidings: Tidings, tmp_path: Path) -> None:
    """The problem is said once, however long it lasts, and what changes afterwards is told."""
    kept, heard = university_in(tmp_path), list[OutboxEvent]()

    def removed() -> None:
        with open_source(kept) as source:
            remove_triggers(source.database)

    def installed() -> None:
        with open_source(kept) as source:
            install_triggers(source.database, PLACED)
        happens(kept, TITLE)

    still = lambda: None  # noqa: E731
    OutboxFollower(tidings).follow([kept], heard.append, Polls(still, removed, still, still, installed))
    cut_off, drained, back = heard
    assert isinstance(cut_off, SourceUnreachable) and "no outbox" in str(cut_off.problem)
    assert drained == DrainResult("university", 1, new=2, repeated=0) and back == SourceRecovered(
        "university"
    )
    assert len(told(tidings, "Student:3")) == 1


def test_following_comes_back_after_a_connection_broke(tidings: Tidings, postgres_server: Server) -> None:
    kept, heard = university_at(f"{postgres_server.empty()}&application_name=following"), list[OutboxEvent]()
    ended = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'following'"

    def broken() -> None:
        with psycopg.connect(postgres_server.url(), autocommit=True) as other:
            other.execute(ended)

    def changed() -> None:
        happens(kept, TITLE)

    OutboxFollower(tidings).follow([kept], heard.append, Polls(broken, changed))
    assert [type(news) for news in heard] == [SourceUnreachable, DrainResult, SourceRecovered]
    assert len(told(tidings, "Student:3")) == 1


def test_whom_nobody_could_ever_follow_is_refused_at_once(tidings: Tidings, tmp_path: Path) -> None:
    heard = list[OutboxEvent]()
    nowhere = ObjectSource("university", PUML, f"sqlite:///{tmp_path}/none.db")
    with pytest.raises(InputError, match="cannot be opened"):
        OutboxFollower(tidings).follow([nowhere], heard.append, Polls())
    assert heard == []


def test_following_ends_between_batches(tidings: Tidings, tmp_path: Path) -> None:
    kept, heard, stop = university_in(tmp_path), list[OutboxEvent](), Event()
    happens(kept, *(f"UPDATE course SET room = 'B{number}' WHERE id = 2" for number in range(4)))

    def hear(news: OutboxEvent) -> None:
        heard.append(news)
        stop.set()

    OutboxFollower(tidings, OutboxOptions(batch=3)).follow([kept], hear, stop)
    assert len(heard) == 1 and len(told(tidings, "Student:3")) == 3
