"""kill -9 of anything at any moment, while people publish, follow, edit and are called: nothing is lost, nothing comes
twice, and whatever is started again comes up by itself.

FAULTS says how many blows fall (`make faults`), SEED where. Shorter tests show the same of single parts: a stream that
is killed (`test_stream_faults.py`), a process that delivers (`tests/delivery/test_worker.py`), two services that want
one home (`tests/cli/operations/test_serve.py`).
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from time import monotonic

import psycopg
import pytest

from tests.cli.operations.test_serve import until
from tests.faults import oracle
from tests.faults.parts import Part, chosen, paused
from tests.faults.people import (
    PEOPLE,
    Crowd,
    Editor,
    Follower,
    Listener,
    Publisher,
    Reader,
    Receiver,
    Watcher,
)
from tests.spark import workload
from tests.support.servers.postgres import Server, find_binaries, running_server
from tests.support.servers.site import a_site
from tidings.client import Client, RetryPolicy
from tidings.errors import StoreError
from tidings.service.authorization import Access
from tidings.store.database import sqlite_url
from tidings.store.store import open_store

pytestmark = [pytest.mark.spark, pytest.mark.faults, pytest.mark.long]
BLOWS = int(os.environ.get("FAULTS", "2"))
SEED = int(os.environ.get("SEED", str(random.SystemRandom().randrange(1_000_000))))
EVENTS = 75
"""Of each publisher between two blows."""
WITHIN = (None, None, None, "1 second")


class Scene(ExitStack):
    """The parts, the people, and what has befallen them."""

    def __init__(self, parts: list[Part], store: str, seed: int, database: Server | None = None) -> None:
        super().__init__()
        self.parts, self.store, self.database = parts, store, database
        self.dice, self.turn = random.Random(seed), threading.Event()
        with open_store(store) as opened:
            token = Access(opened).make("all", ["administer"]).secret
        self.crowd = Crowd(parts[0].url, token, seed)
        self.publishing = Crowd(parts[0].url, token, seed)
        for part in parts:
            part.start()
            self.callback(part.kill_all)

    def begin(self) -> None:
        """Subscriptions and destinations first, then those who publish, follow and edit."""
        crowd = self.crowd
        site = self.enter_context(a_site())
        self.lasting = [replace(one, within=None) for one in workload.subscriptions(12, PEOPLE)]
        everybody = sorted({one.subscriber for one in self.lasting})
        secrets = {}
        with crowd.client() as client:
            for i, one in enumerate(self.lasting):
                client.subscribe(one.text, within=WITHIN[i % 4], id=one.id, subscriber=one.subscriber)
            for who in everybody:
                made = client.destinations.add("webhook", site.url(f"/{who}"), subscriber=who)
                secrets[who] = str(made.secret)
        self.receiver = Receiver(crowd, secrets)
        site.pages |= {f"/{who}": self.receiver for who in everybody}
        self.everybody = everybody
        self.publishers = [Publisher(crowd, "one", False, 0.3), Publisher(crowd, "many", True, 3.0)]
        self.streams = [
            Reader(crowd, "u0"),
            Reader(crowd, "u1"),
            Listener(crowd, "u2"),
            Listener(crowd, "u3"),
        ]
        self.streams += [Follower(crowd, "u4"), Reader(crowd, "u2"), Listener(crowd, "u0")]
        self.editors = [Editor(crowd, "e"), Editor(crowd, "f")]
        self.watcher = Watcher(crowd)
        for each in (*self.publishers, *self.editors):
            each.crowd = self.publishing
            self.publishing.begin(each)
        for each in (*self.streams, self.watcher):
            crowd.begin(each, ends=not isinstance(each, Follower))

    def say(self, what: str) -> None:
        """For whoever looks on (`-s`), or wants to know what happened before it failed."""
        sys.stderr.write(f"{monotonic() - STARTED:6.1f}  {what}\n")

    def tend(self) -> None:
        """Start what has ended by itself, as systemd would; that it did is written down."""
        for part in self.parts:
            if not part.is_alive and part.process:
                code = part.process.returncode
                self.say(f"{part.name} had ended by itself with {code}:\n{oracle.last_lines(part.log)}")
                part.start()

    def wait(self, seconds: float) -> None:
        end = monotonic() + seconds
        while monotonic() < end:
            self.tend()
            self.turn.wait(0.2)

    def blow(self) -> None:
        blows: list[Callable[[], None]] = [self.kill_all, self.kill_server, self.kill_spark, self.kill_worker]
        blows += [self.hold, self.ask_to_end, self.kill_all]
        blows += [self.kill_backend, self.terminate_backends, self.restart_database] if self.database else []
        self.dice.choice(blows)()

    def _part(self) -> Part:
        return self.dice.choice(self.parts)

    def _stream(self) -> Part:
        return self.parts[-1]

    def kill_all(self) -> None:
        part = self._part()
        self.say(f"kill -9 of all of {part.name}")
        part.kill_all()
        self.turn.wait(self.dice.choice((0, 0, 1)))
        part.start()

    def kill_server(self) -> None:
        part = self._part()
        self.say(f"kill -9 of the server of {part.name} alone")
        assert part.process
        with suppress(ProcessLookupError):
            os.kill(part.process.pid, signal.SIGKILL)
        part.process.wait()
        self.turn.wait(self.dice.choice((0, 0, 4)))
        part.start()

    def kill_spark(self) -> None:
        self.say("kill -9 of Spark's JVM")
        self._stream().kill("jvm")

    def kill_worker(self) -> None:
        found = chosen(self.dice, self._stream().running("worker"))
        self.say(f"kill -9 of a worker: {found.words[-80:] if found else None}")
        if found:
            with suppress(ProcessLookupError):
                os.kill(found.pid, signal.SIGKILL)

    def hold(self) -> None:
        part = self._part()
        found = chosen(self.dice, part.running("server", "jvm", "worker"))
        seconds = self.dice.choice((1, 3, 6, 12))
        self.say(f"SIGSTOP for {seconds} s: {part.name} {found.kind if found else None}")
        if found:
            with paused(found):
                self.turn.wait(seconds)

    def ask_to_end(self) -> None:
        part = self._part()
        was = part.state()
        code = part.end()
        self.say(f"SIGTERM to {part.name}, which was {was}: {code}")
        if was:
            assert code == 0, part.log
        part.start()

    def kill_backend(self) -> None:
        assert self.database
        with psycopg.connect(self.database.url(), autocommit=True) as connection:
            rows = connection.execute(
                "SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
            ).fetchall()
        if rows:
            self.say("kill -9 of a backend of the database")
            with suppress(ProcessLookupError):
                os.kill(self.dice.choice(rows)[0], signal.SIGKILL)

    def terminate_backends(self) -> None:
        assert self.database
        self.say("the connections of the database are ended")
        with psycopg.connect(self.database.url(), autocommit=True) as connection:
            connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE backend_type = 'client backend' AND pid <> pg_backend_pid() AND random() < 0.5"
            )

    def restart_database(self) -> None:
        assert self.database
        seconds = self.dice.choice((0, 2, 8))
        self.say(f"immediate restart of the database, after {seconds} s")
        self.database.stop()
        self.turn.wait(seconds)
        self.database.start()

    def settle(self) -> None:
        """No more blows: everything that was published is told, in all ways."""
        self.publishing.stop.set()
        for thread in self.publishing.threads:
            thread.join(120)
            assert not thread.is_alive(), "a publisher or an editor that never ends"
        assert not self.publishing.problems, self.publishing.problems[0]
        self.receiver.moody = False
        for part in self.parts:
            part.await_ready()
        self.say("all is ready")
        until(lambda: self.watcher.now.get("lag") == 0, "matching")
        self.say("all is matched")
        self.wait(2.5)
        with open_store(self.store) as opened:
            told = oracle.notifications(opened, self.everybody)
        total = sum(map(len, told.values()))
        until(lambda: self._delivered() >= total, "webhooks")
        self.say("all is delivered")
        until(lambda: all(len(each.heard) >= len(told[each.who]) for each in self.streams), "streams")
        self.crowd.stop.set()
        for part in self.parts:
            assert part.end() == 0, part.log
        for thread in self.crowd.threads:
            thread.join(60)
            assert not thread.is_alive(), "somebody who follows and never ends"
        assert not self.crowd.problems, self.crowd.problems[0]

    def give_up(self) -> None:
        self.crowd.stop.set()
        self.publishing.stop.set()
        for part in self.parts:
            part.kill_all()

    def _delivered(self) -> int:
        return len(
            {(each.destination, n) for each in list(self.receiver.calls) if each.taken for n in each.numbers}
        )

    def check(self) -> None:
        taken = [one for each in self.publishers for one in each.taken]
        with open_store(self.store) as store:
            oracle.check_journal(store, taken)
            told = oracle.notifications(store, self.everybody)
            for each in self.streams:
                if isinstance(each, Follower):
                    assert store.acknowledgements.cursor(each.who).acknowledged >= each.acknowledged
            assert list(store.dead_letters.read()) == []
        oracle.check_lasting(told, taken, self.lasting)
        certain = sum(
            oracle.check_edited(told, taken, each.versions, each.owners, self.watcher.seen)
            for each in self.editors
        )
        for each in self.streams:
            oracle.check_followed(told, each.who, each.heard)
        counts = oracle.check_webhooks(told, self.receiver.calls)
        edits = sum(len(one) for each in self.editors for one in each.versions.values())
        told_of = sum(map(len, told.values()))
        self.say(
            f"{len(taken)} publications, {told_of} notifications, {edits} edits, {certain} certain, {dict(counts)}"
        )


STARTED = monotonic()


def play(scene: Scene) -> None:
    with scene:
        scene.say(f"SEED={SEED}")
        try:
            scene.parts[0].await_ready()
            scene.begin()
            for blow in range(1, BLOWS + 1):
                scene.publishing.most = blow * EVENTS
                if scene.dice.random() < 0.4:
                    for part in scene.parts:
                        part.await_ready()
                scene.wait(scene.dice.uniform(0, 10))
                scene.blow()
            scene.wait(3)
            scene.settle()
            scene.check()
        except BaseException as problem:
            problem.add_note(f"SEED={SEED}; {', '.join(str(part.log) for part in scene.parts)}")
            scene.give_up()
            raise


def test_one_process(tmp_path: Path) -> None:
    part = Part("all", ("--home", str(tmp_path / "home")), tmp_path)
    (tmp_path / "home").mkdir()
    play(Scene([part], sqlite_url(tmp_path / "home" / "store.db"), SEED))


@pytest.fixture
def database() -> Iterator[Server]:
    """One of its own: it is killed."""
    binaries = find_binaries()
    if binaries is None:
        pytest.skip("no PostgreSQL here")
    with running_server(binaries) as server:
        yield server


def test_three_processes(tmp_path: Path, database: Server) -> None:
    store = database.empty()
    parts = [
        Part(name, ("--only", name, "--home", str(tmp_path / name), "--store", store), tmp_path)
        for name in ("api", "delivery", "stream")
    ]
    play(Scene(parts, store, SEED, database))


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """One that a test can fill."""
    place = tmp_path / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=40m", "tmpfs", str(place)]
    if subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("no right to mount a small disk here")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


def test_a_full_disk(small_disk: Path, tmp_path: Path) -> None:
    """What cannot be durable is not acknowledged, what is wrong is said, and all goes on when there is space again."""
    (small_disk / "home").mkdir()
    part = Part("all", ("--home", str(small_disk / "home")), tmp_path)
    store = sqlite_url(small_disk / "home" / "store.db")
    with Scene([part], store, SEED) as scene, scene.crowd.client() as client:
        part.await_ready()
        client.subscribe("price < 10", id="s", subscriber="ana")
        impatient = Client(part.url, scene.crowd.token, RetryPolicy(attempts=1))
        taken = [impatient.publish({"price": 1}, id=f"before-{i}").id for i in range(20)]
        free = shutil.disk_usage(small_disk).free
        (small_disk / "ballast").write_bytes(bytes(free - 40_000))
        with pytest.raises(StoreError, match="disk is full"):
            for i in range(1_000):
                taken.append(impatient.publish({"price": 1, "words": "x" * 2_000}, id=f"full-{i}").id)
        assert "disk is full" in part.state()["store"], "nobody else is to be sent here"
        problems = ("disk is full", "No space left")
        until(
            lambda: any(one in part.state().get("stream", "") for one in problems), "a stream that says why"
        )
        (small_disk / "ballast").unlink()
        taken += [client.publish({"price": 1}, id=f"after-{i}").id for i in range(20)]
        until(lambda: client.notifications(0, 1, subscriber="ana").last >= len(taken), "notifications")
        assert part.end() == 0
        with open_store(store) as opened:
            assert [one.id for one in opened.journal.read(0)] == taken
            assert [row[2] for row in oracle.notifications(opened, ["ana"])["ana"]] == taken


def test_two_that_start_at_the_same_moment(tmp_path: Path) -> None:
    """In a folder that is not there yet. One of them has the stream, one has told the token; when the first one is
    killed with all it has started, the other goes on in its place.
    """
    both = [Part(name, ("--home", str(tmp_path / "home")), tmp_path) for name in ("one", "other")]
    try:
        for part in both:
            part.start()
        until(lambda: any(part.is_ready for part in both), "one that is ready")
        [has_it] = [part for part in both if part.is_ready]
        [waits] = [part for part in both if part is not has_it]
        until(lambda: "another stream runs on this home folder" in waits.state().get("stream", ""), "why not")
        assert sum(part.log.read_text().count("administrator token") for part in both) == 1
        has_it.kill_all()
        until(lambda: waits.is_ready, "the other one in its place")
        assert waits.end() == 0
    finally:
        for part in both:
            part.kill_all()
