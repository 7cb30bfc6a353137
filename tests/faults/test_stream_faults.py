"""kill -9 at any moment: started again, the stream has lost nothing and tells nobody twice.

Subscriptions come and go between the blows. They count from the next batch on, and which one that is nobody knows: so
those that were there all the time must have been told of everything, and the others of nothing that does not match.
Some accept a delay: what is held when the blow falls is handed over later, or in the end by whoever reads.
Metadata is registered meanwhile, for later and at once: what the owner of the rules was told adds up to their results.
FAULTS says how often it is killed (`make faults`), SEED when.
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
from tests.support.processes.streams import check_gapless, told
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
"""Delays: of a quarter all is handed over while the stream runs or is down, of another at the end."""


@pytest.fixture
def start(tmp_path):
    """Starts streams, each in a session of its own; all are gone in the end."""
    started = []

    def begin(url):
        command = [sys.executable, str(PROGRAM), "stream", url, str(tmp_path / "home"), "local[2]", "7"]
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, start_new_session=True
        )
        started.append(process)
        return process

    yield begin
    for process in started:
        kill_session(process.pid)
        process.stdout.close()
        process.wait()


def kill_session(leader):
    """Kill a stream with its JVM and its workers at the same moment, as when the machine goes."""
    for each in [each for each in processes() if each.session == leader]:
        with contextlib.suppress(ProcessLookupError):
            os.kill(each.pid, signal.SIGKILL)


def kill(driver):
    os.kill(driver, signal.SIGKILL)


def published(store, first):
    bodies = [*workload.events(EVENTS - 1, first), b'{"symbol": ']
    named = [Publication(f"p{first + i}", "application/json", body) for i, body in enumerate(bodies)]
    for i in range(0, EVENTS, 10):
        store.journal.append(named[i : i + 10])
    return {one.id: one.body for one in named}


def change(store, passing, dice):
    """Withdraw some of the subscriptions that come and go, and bring back others, under the same ids."""
    there = {one.id for one in store.subscriptions.list()}
    chosen = dice.sample(passing, len(passing) // 2)
    store.subscriptions.remove([one.id for one in chosen if one.id in there])
    store.subscriptions.add_many([one for one in chosen if one.id not in there])


def registered(provider, log, dice):
    """Documents for the log, and one at once, which applies what is before it."""
    drafts = [document(dice.randrange(12), 32 * dice.randrange(5)) for _ in range(40)]
    provider.append(drafts)
    log += drafts
    if dice.random() < 0.5:
        provider.register(uri(99), body(99, len(log)), TURTLE)
        log.append(document(99, len(log)))


def check_metadata(store, log):
    """The results are those of a provider that was never killed, and so is what was told of them, step by step."""
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
    found = set()
    told = store.notifications.read("ana", limit=100_000)
    assert [one.sequence for one in told] == list(range(1, len(told) + 1)), f"SEED={SEED}"
    for one in told:
        pair = (one.subscription, one.publication)
        assert (pair in found) == (one.kind != "entered"), f"SEED={SEED}"
        (found.discard if one.kind == "left" else found.add)(pair)
    assert found == expected, f"SEED={SEED}"


def test_killed_again_and_again(session, tmp_path, start):
    dice = random.Random(SEED)
    url = sqlite_url(tmp_path / "store.db")
    wanted = [replace(one, within=WITHIN[i // 2 % 4]) for i, one in enumerate(workload.subscriptions(40))]
    lasting, passing = wanted[::2], wanted[1::2]
    events, log = {}, []
    with open_store(url) as store:
        begin(store)
        store.subscriptions.add_many(lasting)
        for number in range(KILLS):
            events |= published(store, number * EVENTS)
            registered(Provider(store), log, dice)
            change(store, passing, dice)
            process = start(url)
            assert process.stdout.readline(), (tmp_path / "home" / "spark.log").read_text()
            for _ in range(dice.randrange(12)):
                process.stdout.readline()
            # Not a wait for something to happen: this is where in a batch the blow falls.
            time.sleep(dice.random() * 0.5)
            # Now and then only the driver: its JVM lives on for a while, and the next start has to wait.
            dice.choice((kill_session, kill))(process.pid)
            process.wait()
            change(store, passing, dice)
            registered(Provider(store), log, dice)
        last = published(store, KILLS * EVENTS)
        events |= last
        run_stream(session, tmp_path / "home", url, once=True)
        check_metadata(store, log)
    with open_store(url, lambda: datetime.now(UTC) + timedelta(days=1)) as store:
        everybody = sorted({one.subscriber for one in wanted})
        bad = [name for name, body in events.items() if body.endswith(b": ")]
        good = {name: body for name, body in events.items() if name not in bad}
        found = {row[1:] for rows in told(store, *everybody).values() for row in rows}
        assert workload.expected(good, lasting) <= found <= workload.expected(good, wanted), f"SEED={SEED}"
        late = {name: body for name, body in last.items() if name in good}
        there = list(store.subscriptions.list())
        assert {pair for pair in found if pair[0] in late} == workload.expected(late, there), f"SEED={SEED}"
        assert [one.publication for one in store.dead_letters.read()] == bad, f"SEED={SEED}"
        check_gapless(store, *everybody)
