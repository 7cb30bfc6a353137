"""kill -9 of any process at any moment, while clients publish, follow, edit and receive webhooks: nothing is lost
or repeated, and restarted parts recover by themselves.

FAULTS is the number of faults (`make faults`), SEED determines which. Shorter tests show the same for single parts:
a killed stream (`test_stream_faults.py`), a delivery process (`tests/delivery/test_worker.py`), and two services
with one home (`tests/cli/operations/test_serve.py`).
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
from tests.faults.clients import (
    SUBSCRIBERS,
    Crowd,
    Editor,
    Follower,
    Listener,
    Publisher,
    Reader,
    Receiver,
    Watcher,
)
from tests.faults.parts import Part, choose_process, suspended
from tests.spark import workload
from tests.support.servers.postgres import Server, find_binaries, running_server
from tests.support.servers.site import a_site
from tidings.client import Client, RetryPolicy
from tidings.errors import StoreError
from tidings.service.authorization import Access
from tidings.store.database import sqlite_url
from tidings.store.store import open_store

pytestmark = [pytest.mark.spark, pytest.mark.faults, pytest.mark.long]
FAULTS = int(os.environ.get("FAULTS", "2"))
SEED = int(os.environ.get("SEED", str(random.SystemRandom().randrange(1_000_000))))
EVENTS = 75
"""Events of each publisher between two faults."""
WITHIN = (None, None, None, "1 second")


class Scene(ExitStack):
    """The parts, their clients, and the faults."""

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
        """Create subscriptions and destinations, and then start the clients."""
        crowd = self.crowd
        site = self.enter_context(a_site())
        self.lasting = [replace(one, within=None) for one in workload.subscriptions(12, SUBSCRIBERS)]
        subscribers = sorted({one.subscriber for one in self.lasting})
        secrets = {}
        with crowd.client() as client:
            for i, one in enumerate(self.lasting):
                client.subscribe(one.text, within=WITHIN[i % 4], id=one.id, subscriber=one.subscriber)
            for subscriber in subscribers:
                created = client.destinations.add(
                    "webhook", site.url(f"/{subscriber}"), subscriber=subscriber
                )
                secrets[subscriber] = str(created.secret)
        self.receiver = Receiver(crowd, secrets)
        site.pages |= {f"/{subscriber}": self.receiver for subscriber in subscribers}
        self.subscribers = subscribers
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

    def report(self, what: str) -> None:
        """Print progress, for watching (`-s`) and for failures."""
        sys.stderr.write(f"{monotonic() - STARTED:6.1f}  {what}\n")

    def restart_ended(self) -> None:
        """Restart parts that ended by themselves, as systemd would, and report them."""
        for part in self.parts:
            if not part.is_alive and part.process:
                code = part.process.returncode
                self.report(f"{part.name} had ended by itself with {code}:\n{oracle.last_lines(part.log)}")
                part.start()

    def wait(self, seconds: float) -> None:
        end = monotonic() + seconds
        while monotonic() < end:
            self.restart_ended()
            self.turn.wait(0.2)

    def inject_fault(self) -> None:
        faults: list[Callable[[], None]] = [
            self.kill_all,
            self.kill_server,
            self.kill_spark,
            self.kill_worker,
        ]
        faults += [self.suspend, self.terminate, self.kill_all]
        faults += [self.kill_backend, self.terminate_backends, self.restart_database] if self.database else []
        self.dice.choice(faults)()

    def _part(self) -> Part:
        return self.dice.choice(self.parts)

    def _stream(self) -> Part:
        return self.parts[-1]

    def kill_all(self) -> None:
        part = self._part()
        self.report(f"kill -9 of all of {part.name}")
        part.kill_all()
        self.turn.wait(self.dice.choice((0, 0, 1)))
        part.start()

    def kill_server(self) -> None:
        part = self._part()
        self.report(f"kill -9 of the server of {part.name} alone")
        assert part.process
        with suppress(ProcessLookupError):
            os.kill(part.process.pid, signal.SIGKILL)
        part.process.wait()
        self.turn.wait(self.dice.choice((0, 0, 4)))
        part.start()

    def kill_spark(self) -> None:
        self.report("kill -9 of Spark's JVM")
        self._stream().kill("jvm")

    def kill_worker(self) -> None:
        process = choose_process(self.dice, self._stream().running("worker"))
        self.report(f"kill -9 of a worker: {process.words[-80:] if process else None}")
        if process:
            with suppress(ProcessLookupError):
                os.kill(process.pid, signal.SIGKILL)

    def suspend(self) -> None:
        part = self._part()
        process = choose_process(self.dice, part.running("server", "jvm", "worker"))
        seconds = self.dice.choice((1, 3, 6, 12))
        self.report(f"SIGSTOP for {seconds} s: {part.name} {process.kind if process else None}")
        if process:
            with suspended(process):
                self.turn.wait(seconds)

    def terminate(self) -> None:
        part = self._part()
        was = part.state()
        code = part.end()
        self.report(f"SIGTERM to {part.name}, which was {was}: {code}")
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
            self.report("kill -9 of a backend of the database")
            with suppress(ProcessLookupError):
                os.kill(self.dice.choice(rows)[0], signal.SIGKILL)

    def terminate_backends(self) -> None:
        assert self.database
        self.report("the connections of the database are ended")
        with psycopg.connect(self.database.url(), autocommit=True) as connection:
            connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE backend_type = 'client backend' AND pid <> pg_backend_pid() AND random() < 0.5"
            )

    def restart_database(self) -> None:
        assert self.database
        seconds = self.dice.choice((0, 2, 8))
        self.report(f"immediate restart of the database, after {seconds} s")
        self.database.stop()
        self.turn.wait(seconds)
        self.database.start()

    def settle(self) -> None:
        """Wait without faults until all notifications are delivered in all ways."""
        self.publishing.stop.set()
        for thread in self.publishing.threads:
            thread.join(120)
            assert not thread.is_alive(), "a publisher or an editor does not end"
        assert not self.publishing.problems, self.publishing.problems[0]
        self.receiver.is_flaky = False
        for part in self.parts:
            part.await_ready()
        self.report("all parts are ready")
        until(lambda: self.watcher.now.get("lag") == 0, "matching")
        self.report("all publications are matched")
        self.wait(2.5)
        with open_store(self.store) as opened:
            stored = oracle.notifications(opened, self.subscribers)
        total = sum(map(len, stored.values()))
        until(lambda: self._delivered() >= total, "webhooks")
        self.report("all notifications are delivered")
        until(
            lambda: all(len(each.received) >= len(stored[each.subscriber]) for each in self.streams),
            "streams",
        )
        self.crowd.stop.set()
        for part in self.parts:
            assert part.end() == 0, part.log
        for thread in self.crowd.threads:
            thread.join(60)
            assert not thread.is_alive(), "a client that follows does not end"
        assert not self.crowd.problems, self.crowd.problems[0]

    def abort(self) -> None:
        self.crowd.stop.set()
        self.publishing.stop.set()
        for part in self.parts:
            part.kill_all()

    def _delivered(self) -> int:
        return len(
            {
                (each.destination, n)
                for each in list(self.receiver.calls)
                if each.accepted
                for n in each.numbers
            }
        )

    def check(self) -> None:
        accepted = [one for each in self.publishers for one in each.accepted]
        with open_store(self.store) as store:
            oracle.check_journal(store, accepted)
            stored = oracle.notifications(store, self.subscribers)
            for each in self.streams:
                if isinstance(each, Follower):
                    assert store.acknowledgements.cursor(each.subscriber).acknowledged >= each.acknowledged
            assert list(store.dead_letters.read()) == []
        oracle.check_lasting(stored, accepted, self.lasting)
        certain = sum(
            oracle.check_edited(stored, accepted, each.versions, each.owners, self.watcher.positions)
            for each in self.editors
        )
        for each in self.streams:
            oracle.check_followed(stored, each.subscriber, each.received)
        counts = oracle.check_webhooks(stored, self.receiver.calls)
        edits = sum(len(one) for each in self.editors for one in each.versions.values())
        notified = sum(map(len, stored.values()))
        self.report(
            f"{len(accepted)} publications, {notified} notifications, {edits} edits, {certain} certain, {dict(counts)}"
        )


STARTED = monotonic()


def run_scene(scene: Scene) -> None:
    with scene:
        scene.report(f"SEED={SEED}")
        try:
            scene.parts[0].await_ready()
            scene.begin()
            for fault in range(1, FAULTS + 1):
                scene.publishing.most = fault * EVENTS
                if scene.dice.random() < 0.4:
                    for part in scene.parts:
                        part.await_ready()
                scene.wait(scene.dice.uniform(0, 10))
                scene.inject_fault()
            scene.wait(3)
            scene.settle()
            scene.check()
        except BaseException as problem:
            problem.add_note(f"SEED={SEED}; {', '.join(str(part.log) for part in scene.parts)}")
            scene.abort()
            raise


def test_service_in_one_process_survives_faults(tmp_path: Path) -> None:
    part = Part("all", ("--home", str(tmp_path / "home")), tmp_path)
    (tmp_path / "home").mkdir()
    run_scene(Scene([part], sqlite_url(tmp_path / "home" / "store.db"), SEED))


@pytest.fixture
def database() -> Iterator[Server]:
    """A server of its own, because it is killed."""
    binaries = find_binaries()
    if binaries is None:
        pytest.skip("no PostgreSQL here")
    with running_server(binaries) as server:
        yield server


def test_service_in_three_processes_with_postgresql_survives_faults(tmp_path: Path, database: Server) -> None:
    store = database.empty()
    parts = [
        Part(name, ("--only", name, "--home", str(tmp_path / name), "--store", store), tmp_path)
        for name in ("api", "delivery", "stream")
    ]
    run_scene(Scene(parts, store, SEED, database))


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk that a test can fill."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=40m", "tmpfs", str(folder)]
    if subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("no right to mount a small disk here")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def test_service_with_full_disk_recovers_without_loss(small_disk: Path, tmp_path: Path) -> None:
    """What is not durable is not acknowledged, the problem is reported, and all goes on when space is freed."""
    (small_disk / "home").mkdir()
    part = Part("all", ("--home", str(small_disk / "home")), tmp_path)
    store = sqlite_url(small_disk / "home" / "store.db")
    with Scene([part], store, SEED) as scene, scene.crowd.client() as client:
        part.await_ready()
        client.subscribe("price < 10", id="s", subscriber="ana")
        impatient = Client(part.url, scene.crowd.token, RetryPolicy(attempts=1))
        accepted = [impatient.publish({"price": 1}, id=f"before-{i}").id for i in range(20)]
        free = shutil.disk_usage(small_disk).free
        (small_disk / "ballast").write_bytes(bytes(free - 40_000))
        with pytest.raises(StoreError, match="disk is full"):
            for i in range(1_000):
                accepted.append(impatient.publish({"price": 1, "words": "x" * 2_000}, id=f"full-{i}").id)
        assert "disk is full" in part.state()["store"], "the service gets no more traffic"
        problems = ("disk is full", "No space left")
        until(
            lambda: any(one in part.state().get("stream", "") for one in problems),
            "a stream that reports the reason",
        )
        (small_disk / "ballast").unlink()
        accepted += [client.publish({"price": 1}, id=f"after-{i}").id for i in range(20)]
        until(lambda: client.notifications(0, 1, subscriber="ana").last >= len(accepted), "notifications")
        assert part.end() == 0
        with open_store(store) as opened:
            assert [one.id for one in opened.journal.read(0)] == accepted
            assert [row[2] for row in oracle.notifications(opened, ["ana"])["ana"]] == accepted


def test_two_services_started_at_once_share_one_stream_and_fail_over(tmp_path: Path) -> None:
    """In a folder that does not exist yet. One has the stream, and one prints the token; when the first is killed
    with all its processes, the other takes over.
    """
    both = [Part(name, ("--home", str(tmp_path / "home")), tmp_path) for name in ("one", "other")]
    try:
        for part in both:
            part.start()
        until(lambda: any(part.is_ready for part in both), "a ready service")
        [leader] = [part for part in both if part.is_ready]
        [standby] = [part for part in both if part is not leader]
        until(
            lambda: "another stream runs on this home folder" in standby.state().get("stream", ""),
            "the reason of the standby",
        )
        assert sum(part.log.read_text().count("administrator token") for part in both) == 1
        leader.kill_all()
        until(lambda: standby.is_ready, "the standby as leader")
        assert standby.end() == 0
    finally:
        for part in both:
            part.kill_all()
