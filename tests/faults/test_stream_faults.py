"""kill -9 at any moment: after a restart, the stream has lost nothing and repeats no notification.

Subscriptions come and go between the kills. They count from the next batch on, which is not known: so those that
exist all the time must match everything, and the others nothing that does not match. Some accept a delay:
notifications deferred at a kill are released later, or in the end on read. Metadata is registered meanwhile, with
and without delay: the notifications of the rules must add up to their results. FAULTS is the number of kills (`make
faults`), SEED determines when.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.faults.parts import processes
from tests.metadata.spark.test_metadata_stream import RULES, TURTLE, begin, body, document, uri
from tests.spark import workload
from tests.support.paths import ROOT
from tests.support.processes.streams import check_gapless, read_notifications
from tidings.metadata.provider.provider import Provider
from tidings.model import Publication
from tidings.spark.stream.runner import run_stream
from tidings.store.database import sqlite_url
from tidings.store.store import open_store

pytestmark = [pytest.mark.spark, pytest.mark.faults]
PROGRAM = ROOT / "tests/support/processes/spark_program.py"
KILLS = int(os.environ.get("FAULTS", "1"))
SEED = int(os.environ.get("SEED", str(random.SystemRandom().randrange(1_000_000))))
EVENTS = 120
WITHIN = (None, None, 1, 3_600)
"""Delays: a quarter is released while the stream runs or is down, another quarter at the end."""


@pytest.fixture
def start(tmp_path):
    """Return a function that starts a stream in a session of its own; all are killed in the end."""
    started = []

    def start_stream(url):
        command = [sys.executable, str(PROGRAM), "stream", url, str(tmp_path / "home"), "local[2]", "7"]
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, start_new_session=True
        )
        started.append(process)
        return process

    yield start_stream
    for process in started:
        kill_session(process.pid)
        process.stdout.close()
        process.wait()


def kill_session(leader):
    """Kill a stream with its JVM and its workers at once, as in a failure of the machine."""
    for each in [each for each in processes() if each.session == leader]:
        with contextlib.suppress(ProcessLookupError):
            os.kill(each.pid, signal.SIGKILL)


def kill(driver):
    os.kill(driver, signal.SIGKILL)


def publish_events(store, first):
    bodies = [*workload.events(EVENTS - 1, first), b'{"symbol": ']
    publications = [Publication(f"p{first + i}", "application/json", body) for i, body in enumerate(bodies)]
    for i in range(0, EVENTS, 10):
        store.journal.append(publications[i : i + 10])
    return {one.id: one.body for one in publications}


def change_subscriptions(store, passing, dice):
    """Remove some of the passing subscriptions, and add others again under the same ids."""
    existing = {one.id for one in store.subscriptions.list()}
    chosen = dice.sample(passing, len(passing) // 2)
    store.subscriptions.remove([one.id for one in chosen if one.id in existing])
    store.subscriptions.add_many([one for one in chosen if one.id not in existing])


def register_documents(provider, log, dice):
    """Append documents to the log, and now and then register one at once, which applies the log before it."""
    drafts = [document(dice.randrange(12), 32 * dice.randrange(5)) for _ in range(40)]
    provider.append(drafts)
    log += drafts
    if dice.random() < 0.5:
        provider.register(uri(99), body(99, len(log)), TURTLE)
        log.append(document(99, len(log)))


def check_metadata(store, log):
    """Check results and notifications against a provider that was never killed."""
    provider = Provider(store)
    with TemporaryDirectory() as folder, open_store(sqlite_url(Path(folder) / "other.db")) as other:
        begin(other)
        other.metadata.log.append(log)
        Provider(other).catch_up()
        assert (provider.position, provider.documents()) == (
            other.metadata.position(),
            Provider(other).documents(),
        )
        expected = {(name, one.uri) for name in RULES for one in other.metadata.results(name)}
    assert {(name, one.uri) for name in RULES for one in provider.results(name)} == expected, f"SEED={SEED}"
    members = set()
    notifications = store.notifications.read("ana", limit=100_000)
    assert [one.sequence for one in notifications] == list(range(1, len(notifications) + 1)), f"SEED={SEED}"
    for one in notifications:
        pair = (one.subscription, one.publication)
        assert (pair in members) == (one.kind != "entered"), f"SEED={SEED}"
        (members.discard if one.kind == "left" else members.add)(pair)
    assert members == expected, f"SEED={SEED}"


def test_stream_killed_repeatedly_loses_and_repeats_nothing(session, tmp_path, start):
    dice = random.Random(SEED)
    url = sqlite_url(tmp_path / "store.db")
    subscriptions = [
        replace(one, within=WITHIN[i // 2 % 4]) for i, one in enumerate(workload.subscriptions(40))
    ]
    lasting, passing = subscriptions[::2], subscriptions[1::2]
    events, log = {}, []
    with open_store(url) as store:
        begin(store)
        store.subscriptions.add_many(lasting)
        for number in range(KILLS):
            events |= publish_events(store, number * EVENTS)
            register_documents(Provider(store), log, dice)
            change_subscriptions(store, passing, dice)
            process = start(url)
            assert process.stdout.readline(), (tmp_path / "home" / "spark.log").read_text()
            for _ in range(dice.randrange(12)):
                process.stdout.readline()
            # Not a wait for an event: this is the moment of the kill within a batch.
            time.sleep(dice.random() * 0.5)
            # Sometimes only the driver: its JVM survives for a while, and the next start has to wait.
            dice.choice((kill_session, kill))(process.pid)
            process.wait()
            change_subscriptions(store, passing, dice)
            register_documents(Provider(store), log, dice)
        last = publish_events(store, KILLS * EVENTS)
        events |= last
        run_stream(session, tmp_path / "home", url, once=True)
        check_metadata(store, log)
    with open_store(url, lambda: datetime.now(UTC) + timedelta(days=1)) as store:
        subscribers = sorted({one.subscriber for one in subscriptions})
        bad = [name for name, body in events.items() if body.endswith(b": ")]
        good = {name: body for name, body in events.items() if name not in bad}
        pairs = {row[1:] for rows in read_notifications(store, *subscribers).values() for row in rows}
        assert workload.expected(good, lasting) <= pairs <= workload.expected(good, subscriptions), (
            f"SEED={SEED}"
        )
        late = {name: body for name, body in last.items() if name in good}
        existing = list(store.subscriptions.list())
        assert {pair for pair in pairs if pair[0] in late} == workload.expected(late, existing), (
            f"SEED={SEED}"
        )
        assert [one.publication for one in store.dead_letters.read()] == bad, f"SEED={SEED}"
        check_gapless(store, *subscribers)
